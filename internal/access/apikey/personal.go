package apikey

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with people's keys, and how often they were used.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "access_sessions", Where: "token IN (SELECT hash FROM access_keys WHERE OWNER(owner))", Hidden: []string{"hash", "token"}},
		{Name: "access_use", Where: "OWNER(principal)"},
		{Name: "access_keys", Where: "OWNER(owner)", Hidden: []string{"hash"}},
	}
}
