package artifact

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with artifacts and contents that a person stored, also in chats.
// Their contents stay restricted: nobody but administrators can read what nobody owns any
// more.
func Personal() []personal.Table {
	const of, orCreator = "(OWNER(owner) OR OWNER(person))", " OR owner = '' AND OWNER(creator)" // from before artifacts had owners
	return []personal.Table{
		{Name: "artifact_annotations", Where: "number IN (SELECT number FROM artifacts WHERE " + of + orCreator + ")"},
		{Name: "artifact_tags", Where: "number IN (SELECT number FROM artifacts WHERE " + of + orCreator + ")"},
		{Name: "artifacts", Where: of + orCreator},
		{Name: "artifacts_deleted", Where: of},
		{Name: "content_owners", Where: of},
	}
}
