package server

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db/dbtest"
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
	in := func(subject, org string, roles ...string) someone { return member(t, url, srv, subject, org, roles...) }
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
	checkReadersInAudit(t, url, srv, bob, said)
}

// checkReadersInAudit reads a conversation and what the agent remembers with keys of programs,
// which the audit log says: by whom, whose and which, but not the content.
func checkReadersInAudit(t *testing.T, url string, srv *Server, bob someone, said string) {
	t.Helper()
	program, operator := newKey(t, srv, "program", principal.Chat), newKey(t, srv, "operator", principal.Org)
	path, memory := "/api/v1/orgs/acme/users/"+bob.id, "/api/v1/admin/orgs/acme/users/"+bob.id+"/memory"
	for _, request := range [][3]string{
		{program, http.MethodGet, path + "/conversation?id="}, {program, http.MethodGet, path + "/conversations"}, {program, http.MethodGet, path + "/history"},
		{operator, http.MethodGet, memory}, {operator, http.MethodDelete, memory}, {operator, http.MethodDelete, path + "/conversation?id=other"},
	} {
		if status, text := requestAs(t, request[0], request[1], url+request[2], ""); status != http.StatusOK {
			t.Errorf("%s %s: %d %s", request[1], request[2], status, text)
		}
	}
	want := map[string]int{"key:program conversation.read": 3, "key:operator memory.read": 1, "key:operator memory.delete": 1, "key:operator conversation.delete other": 1}
	if got := auditedOf(t, srv, bob, said, len(want)); !maps.Equal(got, want) {
		t.Errorf("audit log: %v", got)
	}
}

// auditedOf counts what the audit log has about conversations of somebody, once it has so many
// different entries. None may have the content.
func auditedOf(t *testing.T, srv *Server, p someone, said string, different int) map[string]int {
	t.Helper()
	got := map[string]int{}
	clocktest.Await(t, func() bool {
		entries, err := srv.audit.Find(t.Context(), audit.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		clear(got)
		for _, e := range entries {
			if strings.HasPrefix(e.Subject, "acme:"+p.id) {
				got[e.Who+" "+e.Action+strings.TrimPrefix(e.Subject, "acme:"+p.id)]++
			}
			if strings.Contains(e.Subject, said) {
				t.Errorf("the content is in %+v", e)
			}
		}
		return len(got) >= different
	}, func() string { return fmt.Sprint(got) })
	return got
}

// newKey makes a key of the organisation acme.
func newKey(t *testing.T, srv *Server, name string, scopes ...principal.Scope) (token string) {
	t.Helper()
	_, token, err := srv.keys.Create(t.Context(), apikey.Key{Name: name, Rights: apikey.Rights{Scopes: scopes, Org: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// member signs somebody in to an organisation, as a provider would.
func member(t *testing.T, url string, srv *Server, subject, org string, roles ...string) someone {
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

// firstFile is the address of the first file of a message.
var firstFile = regexp.MustCompile(`/api/v1/chat/msg_\w+/media/in\.1`)

// TestErasureEndsSharesOfConversations checks that nothing of the owner or the recipient of a
// shared conversation is left after their erasure, and that a copy stays.
func TestErasureEndsSharesOfConversations(t *testing.T) {
	t.Parallel()
	database := tables.SQLite(t)
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	url, srv := start(t, config.Sources{
		File: configtest.WriteFile(t, withPeople+"[chat]\nbase_url = \""+model.URL+"\"\n"),
		Env:  config.Environment{"ANTHROPIC_API_KEY": llmtest.Key, "LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"},
	})
	bob, max, eva := member(t, url, srv, "bob", "acme", "user"), member(t, url, srv, "max", "acme", "user"), member(t, url, srv, "eva", "acme", "user")
	share := func(owner someone, id string, with someone) {
		owner.do(http.MethodPost, "/api/v1/shares", `{"kind":"conversation","id":"`+id+`","to":"person:`+with.id+`","may":"use"}`, "id")
	}
	own := func(p someone, path string) string { return "/api/v1/orgs/acme/users/" + p.id + path }
	bob.do(http.MethodPost, "/api/v1/chat", `{"user_id":"`+bob.id+`","org":"acme","client_id":"web","chat_id":"trip","message":"to Lisbon",
		"attachments":[{"name":"map.txt","mime_type":"text/plain","data":"dHJhbQ=="}]}`, "")
	share(bob, "trip", max)
	_, shared := max.request(http.MethodGet, own(max, "/conversation?id=acme/"+bob.id+"/trip"), "")
	max.do(http.MethodGet, firstFile.FindString(shared), "", "")
	copied := max.do(http.MethodPost, own(max, "/conversation/copy"), `{"id":"acme/`+bob.id+`/trip"}`, "id")
	share(max, copied, eva)
	by := "person:" + max.id + "/acme conversation."
	if got := auditedOf(t, srv, bob, "Lisbon", 2); !maps.Equal(got, map[string]int{by + "read trip": 2, by + "copy trip": 1}) {
		t.Errorf("audit log: %v", got)
	}
	bob.do(http.MethodDelete, "/api/v1/me", "", "")
	eva.do(http.MethodDelete, "/api/v1/me", "", "")
	for _, gone := range []someone{bob, eva} {
		if left := dbtest.TablesWith(t, database, gone.id); len(left) > 0 {
			t.Errorf("%s is left in %v", gone.id, left)
		}
	}
	if _, list := max.request(http.MethodGet, own(max, "/conversations"), ""); !strings.Contains(list, copied) || strings.Contains(list, "shared") {
		t.Errorf("conversations: %s", list)
	}
	_, text := max.request(http.MethodGet, own(max, "/conversation?id="+copied), "")
	if _, content := max.request(http.MethodGet, firstFile.FindString(text), ""); content != "tram" || !strings.Contains(text, "to Lisbon") {
		t.Errorf("the copy: %s, its file: %s", text, content)
	}
	if _, list := max.request(http.MethodGet, "/api/v1/shares", ""); !strings.Contains(list, `"shares":[]`) {
		t.Errorf("shares: %s", list)
	}
}
