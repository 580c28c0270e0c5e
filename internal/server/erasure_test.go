package server

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/erasure"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/personal"
)

// impersonal are the tables without rows of people, with the reason.
var impersonal = map[string]string{
	"as_assertions":  "hashes that nobody can tell apart, for minutes",
	"as_attempts":    "likewise",
	"as_clients":     "programs",
	"as_requests":    "of browsers, for minutes; who will consent is not known yet",
	"signin_flows":   "of browsers, for minutes; who will sign in is not known yet",
	"audit_chains":   "hashes",
	"audit_log":      "a part of its own: audit.Log.Erase",
	"audit_sessions": "likewise",
	"erasures":       "deleted when the erasure is finished",
	"oauth_clients":  "this server at authorization servers", "oauth_revocations": "tokens to be ended at their issuers, for hours at most",
	"blobs": "contents by hash", "blob_parts": "contents by hash", "contents": "contents by hash",
	"artifact_words": "a part of its own: artifact.Erasing", "artifact_titles": "likewise", "content_claims": "hashes of contents, for hours", "org_storage": "sums of organisations",
	"publications": "names of tools", "learned_shapes": "of results of tools",
	"hoot_projects": "timelines of the studio, which all users share", "hoot_regions": "likewise", "hoot_markers": "likewise",
	"hoot_identities": "devices of the studio", "hoot_identity_hints": "likewise", "hoot_identity_tags": "likewise", "hoot_connections": "likewise",
	"quota_orgs": "sums of organisations", "kv_swaps": "random tokens of effects", "nodes": "servers", "errands": "calls between nodes, for seconds",
}

// TestEveryTableIsErased checks that every table is either erased with a person, or known to
// have nothing of people. If you add a table: list it in Personal of its package and in
// personalTables, or above.
func TestEveryTableIsErased(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, table := range personalTables() {
		covered[table.Name] = true
	}
	tables := tablesMade(t)
	for table, made := range tables {
		if covered[table] == (impersonal[table] != "") {
			t.Errorf("%s of %s: erased with a person %v, impersonal %q", table, made.path, covered[table], impersonal[table])
		}
	}
	for _, table := range personalTables() {
		if tables[table.Name].path == "" {
			t.Errorf("no table %s", table.Name)
		}
	}
}

// madeTable is a table as a migration makes it.
type madeTable struct{ path, columns string }

// tablesMade returns the tables that all migrations make.
func tablesMade(t *testing.T) map[string]madeTable {
	t.Helper()
	made, renamed := regexp.MustCompile(`(?m)^\s*CREATE (?:VIRTUAL )?TABLE (\w+)([^;]*)`), regexp.MustCompile(`(?m)^\s*ALTER TABLE (\w+) RENAME TO (\w+)`)
	tables := map[string]madeTable{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".sql") || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, found := range made.FindAllStringSubmatch(up, -1) {
			tables[found[1]] = madeTable{path, found[2]}
		}
		for _, found := range renamed.FindAllStringSubmatch(up, -1) {
			tables[found[2]] = tables[found[1]]
			delete(tables, found[1])
		}
		return err
	})
	if err != nil || len(tables) < 50 {
		t.Fatalf("%d tables: %v", len(tables), err)
	}
	return tables
}

// marker is in everything that the person of the test stores.
const marker = "zebrafinch"

// someone is a person with a browser session.
type someone struct {
	t        *testing.T
	url      string
	id       string
	cookie   string
	csrf     string
	fullName string
}

// newPerson signs somebody in, as a provider would.
func newPerson(t *testing.T, url string, srv *Server, subject string) someone {
	t.Helper()
	p, err := srv.people.SignIn(t.Context(), people.Arrival{
		Identity: people.Identity{Issuer: "https://login.example", Subject: subject + marker},
		Name:     "Ann " + subject + marker, Email: subject + marker + "@example.com", Roles: map[string][]string{"": {"author"}}, Source: "corp",
	})
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := srv.people.BeginSession(t.Context(), people.Begun{Person: p.ID, Provider: "corp"})
	if err != nil {
		t.Fatal(err)
	}
	s := someone{t: t, url: url, id: p.ID, cookie: cookie, fullName: p.Name}
	var me struct {
		CSRF string `json:"csrf_token"`
	}
	if _, body := s.request(http.MethodGet, "/api/v1/me", ""); json.Unmarshal([]byte(body), &me) != nil || me.CSRF == "" {
		t.Fatalf("me: %s", body)
	}
	s.csrf = me.CSRF
	return s
}

// cookieName is the name of the session's cookie.
func (s someone) cookieName() string {
	_, path, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	return strings.TrimRight("luanette_session_"+strings.ReplaceAll(path, "/", "_"), "_")
}

func (s someone) request(method, path, body string) (int, string) {
	s.t.Helper()
	answer, text := httpjsontest.Read(s.t, method, s.url+path, body, "Cookie", s.cookieName()+"="+s.cookie, "X-CSRF-Token", s.csrf, "Content-Type", "application/json")
	return answer.StatusCode, text
}

// do makes a request that must succeed, and returns one member of the answer.
func (s someone) do(method, path, body, member string) string {
	s.t.Helper()
	status, text := s.request(method, path, body)
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	var answer map[string]any
	_ = json.Unmarshal([]byte(text), &answer) // some answers are empty
	return fmt.Sprint(answer[member])
}

// work stores something of the person wherever tools and the API can.
func (s someone) work() {
	s.t.Helper()
	s.do("POST", "/tools/lua_eval", `{"session_id":"`+marker+`","code":"x = '`+marker+`' kv.set('`+marker+`', '`+marker+`') return string.rep('`+marker+` ', 20000)"}`, "")
	hash := s.do("POST", "/tools/script_store", `{"content":"function main(p) clock.sleep(p.seconds * 1000) return p end"}`, "hash")
	s.do("POST", "/tools/lua_execute", `{"script_hash":"`+hash+`","params":{"seconds":0,"text":"`+marker+`"},"tags":["`+marker+`"]}`, "job_id")
	s.do("POST", "/tools/lua_execute", `{"script_hash":"`+hash+`","params":{"seconds":3600,"text":"`+marker+`"}}`, "job_id")
	s.do("POST", "/tools/lua_execute", `{"script_hash":"`+hash+`","params":{"seconds":0,"text":"`+marker+`"},"schedule":"@daily"}`, "schedule_id")
	s.do("POST", "/api/v1/me/keys", `{"name":"`+marker+s.id+`","scopes":["mcp"],"expires":"1d"}`, "token")
}

// TestPersonIsExportedAndErased lets two people work, exports one and erases them, on both
// databases. Nothing of them is left in any table; the other person's work is untouched.
func TestPersonIsExportedAndErased(t *testing.T) {
	t.Parallel()
	tables.Each(t, func(t *testing.T, database string) {
		url, srv := startWithPeople(t, database)
		ann, bob := newPerson(t, url, srv, "ann"), newPerson(t, url, srv, "bob")
		ann.work()
		bob.work()
		clocktest.Await(t, func() bool { return srv.jobs.Running() >= 2 })
		exported := checkExport(t, ann, bob)
		status, body := requestAs(t, "root-token", http.MethodGet, url+"/api/v1/people/"+ann.id+"/export", "")
		if status != http.StatusOK || strings.Count(body, "\n") < strings.Count(exported, "\n") {
			t.Errorf("exported by an administrator: %d, %d lines", status, strings.Count(body, "\n"))
		}
		before := len(dbtest.TablesWith(t, database, bob.id))
		pseudonym := ann.do(http.MethodDelete, "/api/v1/me", "", "pseudonym")
		for _, text := range []string{ann.id, ann.fullName} {
			if left := dbtest.TablesWith(t, database, text); len(left) > 0 {
				t.Errorf("%s is left in %v", text, left)
			}
		}
		if status, _ := ann.request(http.MethodGet, "/api/v1/me", ""); status != http.StatusUnauthorized {
			t.Errorf("the session of an erased person: %d", status)
		}
		if after := len(dbtest.TablesWith(t, database, bob.id)); after < before {
			t.Errorf("another person was in %d tables, and is in %d", before, after)
		}
		checkAudit(t, srv, pseudonym)
		if status, body := requestAs(t, "root-token", http.MethodDelete, url+"/api/v1/people/"+bob.id, ""); status != http.StatusOK {
			t.Errorf("erased by an administrator: %d %s", status, body)
		}
		if left := dbtest.TablesWith(t, database, marker); len(left) > 0 {
			t.Errorf("what people stored is left in %v", left)
		}
		if status, _ := requestAs(t, "root-token", http.MethodDelete, url+"/api/v1/people/"+bob.id, ""); status != http.StatusNotFound {
			t.Errorf("erased again: %d", status)
		}
	})
}

// checkExport checks that an export has everything of the person, and nothing of another.
func checkExport(t *testing.T, ann, bob someone) string {
	t.Helper()
	status, exported := ann.request(http.MethodGet, "/api/v1/me/export", "")
	if status != http.StatusOK || strings.Contains(exported, bob.id) || strings.Contains(exported, "sealed\"") {
		t.Errorf("exported: %d %s", status, exported)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(exported) {
		var one struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kinds[one.Kind]++
	}
	for kind, count := range map[string]int{"people": 1, "people_identities": 1, "people_sessions": 1, "access_keys": 1, "jobs": 2, "job_schedules": 1, "journal": 2, "sessions": 1, "kv": 1, "kept_results": 1, "artifacts": 1, "content_owners": 1, "audit": 5} {
		if kinds[kind] < count {
			t.Errorf("%d of %s are exported, want %d at least: %v", kinds[kind], kind, count, kinds)
		}
	}
	return exported
}

// checkAudit checks that the log keeps what an erased person did, under the pseudonym.
func checkAudit(t *testing.T, srv *Server, pseudonym string) {
	t.Helper()
	entries, err := srv.audit.Find(t.Context(), audit.Filter{Who: pseudonym})
	if err != nil || len(entries) < 6 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	actions := map[string]bool{}
	for _, e := range entries {
		actions[e.Action] = true
		if e.Args != "" || e.Name != pseudonym || e.For != "" && e.For != pseudonym {
			if e.Action != "person.erase" {
				t.Errorf("%+v", e)
			}
		}
	}
	if !actions["call"] || !actions["person.erase"] {
		t.Errorf("actions %v", actions)
	}
	verified, err := srv.audit.Verify(t.Context())
	if err != nil || len(verified) != 1 || len(verified[0].Problems) > 0 || verified[0].Redacted == 0 {
		t.Errorf("%+v, %v", verified, err)
	}
}

// TestErasureGoesOn lets the process die before each table in turn. The next process goes on until nothing is left. What remains to be told is that the person's
// logins have ended.
func TestErasureGoesOn(t *testing.T) {
	t.Parallel()
	database := tables.SQLite(t)
	url, srv := startWithPeople(t, database)
	ann := newPerson(t, url, srv, "ann")
	ann.work()
	ann.logIn(srv)
	if _, err := dying(t, srv, 0).Erase(t.Context(), ann.id); err == nil {
		t.Fatal("it did not die")
	}
	for at := range personalTables() {
		if err := dying(t, srv, at).Continue(t.Context()); err != nil && !strings.Contains(err.Error(), "no_such_column") {
			t.Fatal(err)
		}
	}
	if err := srv.erasure.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := dbtest.TablesWith(t, database, ann.id); !slices.Equal(left, []string{"oauth_revocations"}) {
		t.Errorf("the person is left in %v", left)
	}
	for _, text := range []string{marker, ann.fullName} {
		if left := dbtest.TablesWith(t, database, text); len(left) > 0 {
			t.Errorf("%s is left in %v", text, left)
		}
	}
}

// dying returns an erasure by a process that dies before one of the tables.
func dying(t *testing.T, srv *Server, at int) *erasure.Service {
	t.Helper()
	last := personal.Table{Name: "people", Where: "no_such_column = PERSON"}
	s, err := erasure.Open(t.Context(), srv.store, erasure.Options{
		People: srv.people.Store, Keys: srv.keys, Tables: slices.Insert(personalTables(), at, last), Parts: []erasure.Part{job.Journals{Queue: srv.jobs}, artifact.Erasing{Store: srv.contents.Store}, srv.audit},
		Audit: srv.audit.RecordAction,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logIn stores a login to an upstream. Its tokens cannot be read, so that telling its end is
// tried for hours.
func (s someone) logIn(srv *Server) {
	s.t.Helper()
	err := srv.store.Exec(s.t.Context(), `INSERT INTO oauth_logins (upstream, owner, server, issuer, org, state, scopes, expires, updated, version, claimed_until, failures, retry_at, sealed)
			VALUES ('tracker', $1, 'https://tracker.example', 'https://auth.example', '', 'active', '', 0, 0, 1, 0, 0, 0, $2)`, "person:"+s.id, []byte("sealed"))
	if err != nil {
		s.t.Fatal(err)
	}
}
