package job

import "github.com/luanette/luanette/internal/store/cas"

// Contents lists the columns with hashes of contents. Rows have the source of their script
// too, so those of jobs that are over do not need it.
func Contents() []cas.Column {
	const notOver = "state IN ('pending', 'running', 'waiting')"
	return []cas.Column{
		{Table: "jobs", Name: "hash", Where: notOver},
		{Table: "job_schedules", Name: "hash", Where: cas.All},
	}
}
