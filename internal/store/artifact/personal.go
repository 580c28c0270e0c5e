package artifact

import "github.com/luanette/luanette/internal/store/personal"

// The rows of a person, and those from before artifacts had owners.
const (
	ofPerson  = "(OWNER(owner) OR OWNER(person))"
	orCreator = " OR owner = '' AND OWNER(creator)"
)

// Personal lists the tables with artifacts and contents that a person stored, also in chats.
// Erasing erases the rest.
func Personal() []personal.Table {
	const of = ofPerson + orCreator
	return []personal.Table{
		{Name: "artifact_annotations", Where: "number IN (SELECT number FROM artifacts WHERE " + of + ")"},
		{Name: "artifact_tags", Where: "number IN (SELECT number FROM artifacts WHERE " + of + ")"},
		{Name: "artifacts", Where: of},
		{Name: "artifacts_deleted", Where: ofPerson},
		{Name: "content_owners", Where: ofPerson},
	}
}
