package oauth

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with logins of people.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "oauth_logins", Where: "OWNER(owner)", Hidden: []string{"sealed"}},
		{Name: "oauth_flows", Where: "OWNER(owner)", Hidden: []string{"state", "browser", "sealed"}},
		{Name: "oauth_challenges", Where: "OWNER(owner)"},
	}
}
