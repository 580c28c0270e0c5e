package results

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with results of tools that a person called.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "kept_results", Where: "OWNER(owner)"},
		{Name: "kept_result_numbers", Where: "OWNER(owner)"},
	}
}
