package people

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with who somebody is. The person itself is the last, since the others refer to it.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "people_sessions", Where: "person = PERSON", Hidden: []string{"hash", "sealed"}},
		{Name: "people_members", Where: "person = PERSON"},
		{Name: "people_identities", Where: "person = PERSON"},
		{Name: "people", Where: "id = PERSON"},
	}
}
