package server

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestAdministratorsShareSessionsOfTheirOrganisation lets administrators share a session of a key:
// those of its organisation can, and those of another do not learn of it.
func TestAdministratorsShareSessionsOfTheirOrganisation(t *testing.T) {
	t.Parallel()
	database := tables.SQLite(t)
	var keys strings.Builder
	env := config.Environment{"LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"}
	for _, name := range []string{"web", "other", "boss", "rival"} {
		org, scopes := "acme", `"mcp"`
		if name == "rival" {
			org = "beta"
		}
		if name == "boss" || name == "rival" {
			scopes += `, "org"`
		}
		keys.WriteString("[keys." + name + "]\nenv = \"" + strings.ToUpper(name) + "\"\norg = \"" + org + "\"\nscopes = [" + scopes + "]\n")
		env[strings.ToUpper(name)] = name + "-token"
	}
	url, _ := start(t, config.Sources{File: configtest.WriteFile(t, keys.String()), Env: env})
	do := func(who, path, body string) (int, string) {
		return requestAs(t, who+"-token", http.MethodPost, url+path, body)
	}
	_, made := do("web", "/tools/session_create", `{"name":"work"}`)
	found := regexp.MustCompile(`"session_id":"([^"]+)"`).FindStringSubmatch(made)
	if found == nil {
		t.Fatalf("session: %s", made)
	}
	share := `{"kind":"session","id":"` + found[1] + `","to":"org","may":"see"}`
	for _, who := range []string{"rival", "other"} {
		if status, text := do(who, "/api/v1/shares", share); status != http.StatusNotFound {
			t.Errorf("%s shares it: %d %s", who, status, text)
		}
	}
	if status, text := do("boss", "/api/v1/shares", share); status != http.StatusCreated {
		t.Errorf("an administrator shares it: %d %s", status, text)
	}
	for who, sees := range map[string]bool{"other": true, "rival": false} {
		if _, text := do(who, "/tools/session_list", `{}`); strings.Contains(text, found[1]) != sees {
			t.Errorf("%s lists %s", who, text)
		}
	}
}
