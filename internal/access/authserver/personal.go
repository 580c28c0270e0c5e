package authserver

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with what people allowed clients.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "as_tokens", Where: "grant_id IN (SELECT id FROM as_grants WHERE person = PERSON)", Hidden: []string{"hash"}},
		{Name: "as_codes", Where: "grant_id IN (SELECT id FROM as_grants WHERE person = PERSON)", Hidden: []string{"hash", "challenge"}},
		{Name: "as_devices", Where: "grant_id IN (SELECT id FROM as_grants WHERE person = PERSON)", Hidden: []string{"hash", "code"}},
		{Name: "as_consents", Where: "person = PERSON"},
		{Name: "as_grants", Where: "person = PERSON"},
	}
}
