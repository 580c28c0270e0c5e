package policy

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with what conversations and results of people have read.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "flow_labels", Where: "name LIKE '%' || PERSON || '%'"},
	}
}
