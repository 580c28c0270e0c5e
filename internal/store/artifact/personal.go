package artifact

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with artifacts that a person stored.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "artifact_annotations", Where: "number IN (SELECT number FROM artifacts WHERE OWNER(creator))"},
		{Name: "artifact_tags", Where: "number IN (SELECT number FROM artifacts WHERE OWNER(creator))"},
		{Name: "artifacts", Where: "OWNER(creator)"},
	}
}
