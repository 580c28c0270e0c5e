package usage

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with which tools somebody used.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "tool_usage", Where: "owner LIKE '%' || PERSON"},
	}
}
