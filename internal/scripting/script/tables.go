package script

import (
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/personal"
)

// Personal lists the tables with sessions and publications. What somebody published stays a tool of others.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "session_turns", Where: "session IN (SELECT id FROM sessions WHERE OWNER(owner))"},
		{Name: "sessions", Where: "OWNER(owner)"},
		{Name: "publication_versions", Where: "OWNER(publisher)", Set: "publisher = PSEUDONYM"},
	}
}

// Contents lists the columns with hashes of contents. Every version of a published script
// stays: it can become the tool again.
func Contents() []cas.Column {
	return []cas.Column{{Table: "publication_versions", Name: "hash", Where: cas.All}}
}
