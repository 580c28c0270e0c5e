package spending

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with what conversations cost.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "spending_days", Where: "person = PERSON"},
		{Name: "spending_turns", Where: "person = PERSON"},
	}
}
