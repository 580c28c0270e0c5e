package hootenanny

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with what a person added to artifacts, and opened. Timelines and
// identities of devices are of the studio, which all users share.
func Personal() []personal.Table {
	const of = "(OWNER(owner) OR OWNER(person))"
	return []personal.Table{
		{Name: "hoot_variations", Where: of}, {Name: "hoot_metadata", Where: of},
		{Name: "hoot_project_sessions", Where: "OWNER(session)"},
	}
}
