package taskrelay

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with tasks of upstreams that a person began.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "relayed_tasks", Where: "OWNER(owner)"},
	}
}
