package kv

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with values that scripts of a person stored.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "kv", Where: "OWNER(owner)"},
	}
}
