package processes

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// erasureMoments are changes of rows during which the server is killed, in the order in which
// an erasure makes them, each with a query that is true once the one before it is stored.
var erasureMoments = []struct{ change, reached string }{
	{"UPDATE ON people", "SELECT count(*) > 0 FROM erasures WHERE person = $1"},
	{"DELETE ON content_owners", "SELECT count(*) = 0 FROM people_sessions WHERE person = $1"},
	{"UPDATE ON audit_log", "SELECT count(*) = 0 FROM content_owners WHERE owner LIKE '%' || $1"},
	{"DELETE ON jobs", "SELECT count(*) = 0 FROM audit_log WHERE entry LIKE '%' || $1 || '%'"},
	{"DELETE ON kv", "SELECT count(*) = 0 FROM sessions WHERE owner LIKE '%' || $1"},
	{"DELETE ON people_identities", "SELECT count(*) = 0 FROM kv WHERE owner LIKE '%' || $1"},
	{"DELETE ON erasures", "SELECT count(*) = 0 FROM people WHERE id = $1"},
}

// erasureOver is true when an erasure is over.
const erasureOver = "SELECT count(*) = 0 FROM erasures WHERE person = $1"

// TestKilledDuringAnErasure kills the server at several moments of the erasure of a person
// with many things. Each server that follows goes on by itself. In the end nothing of the
// person is left, and a colleague has everything.
func TestKilledDuringAnErasure(t *testing.T) {
	t.Parallel()
	o := newErasing(t)
	ann, bob := o.newPerson(t, "ann"), o.newPerson(t, "bob")
	o.Start(t)
	for _, p := range []*erasable{&ann, &bob} {
		p.signIn(t, o.URL())
		p.work(t)
	}
	before := o.exported(t, bob)
	var answered chan struct{}
	for n, moment := range erasureMoments {
		o.hold(t, moment.change)
		if n == 0 {
			answered = o.erase(t, ann)
		} else {
			o.Begin(t)
		}
		o.await(t, moment.reached, ann.id)
		o.Kill()
		next := erasureOver
		if n+1 < len(erasureMoments) {
			next = erasureMoments[n+1].reached
		}
		if o.holds(t, next, ann.id) {
			t.Fatalf("%s was not held: %s", moment.change, next)
		}
		o.release(t)
	}
	<-answered
	o.Start(t)
	o.await(t, erasureOver, ann.id)
	for _, text := range []string{ann.id, ann.marker} {
		if left := dbtest.TablesWith(t, o.database, text); len(left) > 0 {
			t.Errorf("%s is left in %v", text, left)
		}
	}
	if answer, body := httpjsontest.Read(t, "GET", o.URL()+"/api/v1/people", "", "Authorization", "Bearer root-token"); answer.StatusCode != 200 || strings.Contains(body, ann.id) || !strings.Contains(body, bob.id) {
		t.Errorf("people: %d %s", answer.StatusCode, body)
	}
	if after := o.exported(t, bob); !maps.Equal(before, after) {
		t.Errorf("a colleague had %v, and has %v", before, after)
	}
	if value := bob.do(t, "/tools/lua_eval", `{"code":"return kv.get('value 7')"}`); !strings.Contains(value, bob.marker) {
		t.Errorf("a colleague's value: %s", value)
	}
	clocktest.Await(t, func() bool { // a job that was interrupted goes on
		return strings.Count(bob.do(t, "/tools/job_list", `{"status":"running"}`), bob.marker) > 0
	}, func() string { return bob.do(t, "/tools/job_list", `{}`) })
}

// erasing is a server that is killed, and its database.
type erasing struct {
	*programtest.Server
	database string
	store    *db.DB
	people   *people.Store
}

func newErasing(t *testing.T) *erasing {
	t.Helper()
	config := "public_url = \"http://localhost:8081\"\n[identity.corp]\nissuer = \"http://127.0.0.1:1\"\nclient_id = \"hub\"\nroles = [\"user\"]\n" +
		"[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n"
	o := &erasing{Server: programtest.New(t, config)}
	o.Env = []string{"ROOT=root-token", "LUANETTE_OAUTH_KEY=a key that is long enough"}
	o.Args = []string{"--config", "luanette.toml"}
	o.database = "sqlite:" + filepath.Join(o.Folder, programtest.DataFolder, "luanette.db")
	var err error
	if o.store, err = db.Open(t.Context(), o.database, db.Options{OutageTimeout: clocktest.Timeout}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.store.Close() })
	if o.people, err = people.Open(t.Context(), o.store, people.Options{Key: func() (secret.Text, error) { return secret.New("a key that is long enough"), nil }}); err != nil {
		t.Fatal(err)
	}
	return o
}

// erasable is a person with a browser session, whose things all contain the marker.
type erasable struct{ id, marker, cookie, csrf, url string }

// newPerson stores a person and a session, as signing in at a provider does.
func (o *erasing) newPerson(t *testing.T, name string) erasable {
	t.Helper()
	p := erasable{marker: "zebrafinch-" + name}
	stored, err := o.people.SignIn(t.Context(), people.Arrival{
		Identity: people.Identity{Issuer: "http://127.0.0.1:1", Subject: p.marker}, Name: p.marker, Email: p.marker + "@example.com",
		Roles: map[string][]string{"": {"author"}}, Source: "corp",
	})
	if err != nil {
		t.Fatal(err)
	}
	p.id = stored.ID
	if p.cookie, _, err = o.people.BeginSession(t.Context(), people.Begun{Person: p.id, Provider: "corp"}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *erasable) signIn(t *testing.T, url string) {
	t.Helper()
	p.url = url
	_, body := httpjsontest.Read(t, "GET", url+"/api/v1/me", "", "Cookie", "luanette_session="+p.cookie)
	var me struct {
		CSRF string `json:"csrf_token"`
	}
	if err := json.Unmarshal([]byte(body), &me); err != nil || me.CSRF == "" {
		t.Fatalf("me: %s, %v", body, err)
	}
	p.csrf = me.CSRF
}

// do makes a request that must succeed, and returns the answer.
func (p *erasable) do(t *testing.T, path, body string) string {
	t.Helper()
	answer, text := httpjsontest.Read(t, "POST", p.url+path, body, "Cookie", "luanette_session="+p.cookie, "X-CSRF-Token", p.csrf, "Content-Type", "application/json")
	if answer.StatusCode/100 != 2 {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	return text
}

// work stores many things: a session, values, contents, jobs of which one goes on, a schedule
// and a key.
func (p *erasable) work(t *testing.T) {
	t.Helper()
	p.do(t, "/tools/lua_eval", fmt.Sprintf(`{"session_id":%[1]q,"code":"for i = 1, 50 do kv.set('value ' .. i, '%[1]s') cas.store('%[1]s ' .. i) end x = '%[1]s' return string.rep(x, 2000)"}`, p.marker))
	var script struct{ Hash string } // the same for both people
	if err := json.Unmarshal([]byte(p.do(t, "/tools/script_store", `{"content":"function main(p) clock.sleep(p.seconds * 1000) return p end"}`)), &script); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{`0}`, `0}`, `0},"schedule":"@daily"`, `3600}`} {
		p.do(t, "/tools/lua_execute", fmt.Sprintf(`{"script_hash":%q,"tags":[%q],"params":{"text":%q,"seconds":%s}`, script.Hash, p.marker, p.marker, more))
	}
	p.do(t, "/api/v1/me/keys", fmt.Sprintf(`{"name":%q,"scopes":["mcp"],"expires":"1d"}`, "key-"+p.id))
}

// exported is how many things of each kind are stored of a person, besides audit entries.
func (o *erasing) exported(t *testing.T, p erasable) map[string]int {
	t.Helper()
	answer, body := httpjsontest.Read(t, "GET", o.URL()+"/api/v1/people/"+p.id+"/export", "", "Authorization", "Bearer root-token")
	kinds := map[string]int{}
	for line := range strings.Lines(body) {
		var one struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &one); err != nil || answer.StatusCode != 200 {
			t.Fatalf("%d %s: %v", answer.StatusCode, line, err)
		}
		kinds[one.Kind]++
	}
	delete(kinds, "audit")
	if kinds["kv"] < 50 || kinds["content_owners"] < 50 || kinds["jobs"] < 3 {
		t.Fatalf("exported: %v", kinds)
	}
	return kinds
}

// erase begins to erase a person. The channel is closed when the request has ended.
func (o *erasing) erase(t *testing.T, p erasable) chan struct{} {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, o.URL()+"/api/v1/people/"+p.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer root-token")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if answer, err := httpjsontest.Client.Do(request); err == nil {
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			t.Errorf("the server was killed, and has answered: %d %s", answer.StatusCode, body)
		}
	}()
	return ended
}

// hold lets a change of rows of a table take longer than any test, within its transaction.
func (o *erasing) hold(t *testing.T, change string) {
	t.Helper()
	o.exec(t, "CREATE TRIGGER held BEFORE "+change+" BEGIN SELECT count(*) FROM "+strings.Repeat("sqlite_schema, ", 9)+"sqlite_schema; END")
}

func (o *erasing) release(t *testing.T) {
	t.Helper()
	o.exec(t, "DROP TRIGGER held")
}

func (o *erasing) exec(t *testing.T, statement string) {
	t.Helper()
	err := o.store.Exec(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until a query about a person is true.
func (o *erasing) await(t *testing.T, query, person string) {
	t.Helper()
	clocktest.Await(t, func() bool { return o.holds(t, query, person) }, func() string { return query })
}

// holds reports whether a query about a person is true.
func (o *erasing) holds(t *testing.T, query, person string) (holds bool) {
	t.Helper()
	err := o.store.QueryRow(t.Context(), query, person).Scan(&holds)
	if err != nil {
		t.Fatal(err)
	}
	return holds
}
