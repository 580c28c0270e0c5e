package upstreamstore

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with changes by people, which stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "wanted_upstreams", Where: "changed_by = FULLNAME OR OWNER(changed_by)", Hidden: []string{"settings"}, Set: "changed_by = PSEUDONYM"},
	}
}
