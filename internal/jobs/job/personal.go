package job

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with jobs and schedules. Which are whose is the last, since the others are found by it.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "job_said", Where: "job IN " + owned},
		{Name: "job_live", Where: "job IN " + owned},
		{Name: "job_keys", Where: "job IN " + owned, Hidden: []string{"key"}},
		{Name: "job_tags", Where: "job IN " + owned},
		{Name: "jobs", Where: ownedJobs},
		{Name: "job_schedules", Where: ownedJobs},
		{Name: "job_owners", Where: "OWNER(owner) OR person LIKE '%/' || PERSON"},
	}
}

// owned are the ids of a person's jobs and schedules.
const (
	owned     = "(SELECT id FROM job_owners WHERE OWNER(owner) OR person LIKE '%/' || PERSON)"
	ownedJobs = "id IN " + owned
)
