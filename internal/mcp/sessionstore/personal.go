package sessionstore

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with sessions of MCP clients.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "visits", Where: "OWNER(who)", Hidden: []string{"id"}},
	}
}
