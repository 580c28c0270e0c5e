package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestConversationsAreTheirPersons checks that nobody who is signed in reads what others say
// to the agent: neither an operator of the organisation, who sees its usage, nor an
// administrator.
func TestConversationsAreTheirPersons(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	url, srv := start(t, config.Sources{
		File: configtest.WriteFile(t, withPeople+"[chat]\nbase_url = \""+model.URL+"\"\n"), Env: config.Environment{"ANTHROPIC_API_KEY": llmtest.Key},
	})
	in := func(subject, org string, roles ...string) someone {
		t.Helper()
		p, err := srv.people.SignIn(t.Context(), people.Arrival{
			Identity: people.Identity{Issuer: "https://login.example", Subject: subject}, Name: subject, Roles: map[string][]string{org: roles}, Source: "corp",
		})
		if err != nil {
			t.Fatal(err)
		}
		cookie, _, err := srv.people.BeginSession(t.Context(), people.Begun{Person: p.ID, Org: org, Provider: "corp"})
		if err != nil {
			t.Fatal(err)
		}
		s := someone{t: t, url: url, id: p.ID, cookie: cookie}
		s.csrf = s.do(http.MethodGet, "/api/v1/me", "", "csrf_token")
		return s
	}
	bob, olga, root, colleague := in("bob", "acme", "user"), in("olga", "acme", "operator"), in("root", "", "admin"), in("max", "acme", "user", "author")
	const said = "only for the agent"
	bob.do(http.MethodPost, "/api/v1/chat", `{"user_id":"`+bob.id+`","org":"acme","client_id":"web","message":"`+said+`"}`, "")
	path := "/api/v1/orgs/acme/users/" + bob.id
	if status, text := bob.request(http.MethodGet, path+"/conversation?id=", ""); status != http.StatusOK || !strings.Contains(text, said) {
		t.Fatalf("their own: %d %s", status, text)
	}
	for name, other := range map[string]someone{"an operator": olga, "an administrator": root, "a colleague": colleague} {
		for _, what := range []string{"/conversation?id=", "/conversations", "/history", "/preferences"} {
			if status, text := other.request(http.MethodGet, path+what, ""); status != http.StatusForbidden || strings.Contains(text, said) {
				t.Errorf("%s, %s: %d %s", name, what, status, text)
			}
		}
	}
	if status, text := olga.request(http.MethodGet, "/api/v1/admin/orgs/acme/usage", ""); status != http.StatusOK || !strings.Contains(text, bob.id) || strings.Contains(text, said) {
		t.Errorf("usage for an operator: %d %s", status, text)
	}
	if status, _ := colleague.request(http.MethodGet, "/api/v1/admin/orgs/acme/usage", ""); status != http.StatusForbidden {
		t.Errorf("usage for a colleague: %d", status)
	}
}
