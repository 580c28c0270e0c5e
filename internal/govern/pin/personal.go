package pin

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with decisions of people, which stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "pins", Where: "OWNER(decider) OR decided_by = FULLNAME", Set: "decided_by = PSEUDONYM, decider = PSEUDONYM"},
	}
}
