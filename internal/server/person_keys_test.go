package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestKeysOfAPersonActAsThePerson starts work with a key of a person: it belongs to the person,
// who sees it signed in and with every key that has the scope, and to nobody else, also not to
// somebody's key of the same name.
func TestKeysOfAPersonActAsThePerson(t *testing.T) {
	t.Parallel()
	database := tables.SQLite(t)
	url, srv := startWithPeople(t, database)
	ann, bob := newPerson(t, url, srv, "ann"), newPerson(t, url, srv, "bob")
	laptop, phone, reader, bobs := ann.key("laptop", "mcp"), ann.key("phone", "mcp"), ann.key("reader", "read"), bob.key("laptop", "mcp")
	made := workWith(t, url, laptop)
	for name, key := range map[string]string{"laptop": laptop, "phone": phone} {
		checkSeen(t, "ann with "+name, made, func(tool string) (int, string) { return requestAs(t, key, http.MethodPost, url+"/tools/"+tool, "{}") })
	}
	checkSeen(t, "ann in the page", made, func(tool string) (int, string) { return ann.request(http.MethodPost, "/tools/"+tool, "{}") })
	if status, _ := requestAs(t, reader, http.MethodPost, url+"/tools/job_list", "{}"); status != http.StatusForbidden {
		t.Errorf("a key without the scope: %d", status)
	}
	for tool, id := range made {
		if _, text := requestAs(t, bobs, http.MethodPost, url+"/tools/"+tool, "{}"); strings.Contains(text, id) {
			t.Errorf("bob's key of the same name sees %s", text)
		}
	}
	checkKeyInAudit(t, ann)
	checkNamesOfKeys(t, url, ann, bob)
	checkErasedWithKeys(t, url, database, ann, made)
}

func (s someone) key(name, scope string) (token string) {
	s.t.Helper()
	return s.do(http.MethodPost, "/api/v1/me/keys", `{"name":"`+name+`","scopes":["`+scope+`"]}`, "token")
}

// workWith makes something of each kind with a key, and returns by the tools that list them what
// the lists must have.
func workWith(t *testing.T, url, key string) map[string]string {
	t.Helper()
	do := func(tool, body, member string) string {
		status, text := requestAs(t, key, http.MethodPost, url+"/tools/"+tool, body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", tool, status, text)
		}
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return fmt.Sprint(answer[member])
	}
	do("lua_eval", `{"session_id":"kept-in-session","code":"x = 1"}`, "")
	hash := do("script_store", `{"content":"function main() return 'of the key' end"}`, "hash")
	return map[string]string{
		"session_list":  "kept-in-session",
		"script_search": hash,
		"job_list":      do("lua_execute", `{"script_hash":"`+hash+`"}`, "job_id"),
		"schedule_list": do("lua_execute", `{"script_hash":"`+hash+`","schedule":"@daily"}`, "schedule_id"),
	}
}

func checkSeen(t *testing.T, who string, made map[string]string, list func(tool string) (int, string)) {
	t.Helper()
	for tool, id := range made {
		_, text := list(tool)
		wantText(t, who+", "+tool, text, id)
		if tool == "job_list" || tool == "schedule_list" {
			wantText(t, who+", "+tool, text, `"by":"key laptop"`)
		}
	}
}

// checkKeyInAudit checks that the person finds what the key did, and by which key.
func checkKeyInAudit(t *testing.T, ann someone) {
	t.Helper()
	clocktest.Await(t, func() bool {
		_, text := ann.request(http.MethodGet, "/api/v1/audit?tool=lua_execute", "")
		return strings.Contains(text, `"by":"key laptop"`) && strings.Contains(text, `"grant":"key:laptop"`)
	}, func() string {
		_, text := ann.request(http.MethodGet, "/api/v1/audit?tool=lua_execute", "")
		return text
	})
}

// checkNamesOfKeys checks that names are those of a person, and that administrators name keys by
// ID where a name is not enough.
func checkNamesOfKeys(t *testing.T, url string, ann, bob someone) {
	t.Helper()
	if status, text := ann.request(http.MethodPost, "/api/v1/me/keys", `{"name":"laptop","scopes":["mcp"]}`); status != http.StatusConflict {
		t.Errorf("a second key of the same name: %d %s", status, text)
	}
	status, text := requestAs(t, "root-token", http.MethodDelete, url+"/api/v1/keys/laptop", "")
	wantText(t, "an administrator names two keys", text, ann.id+"/laptop", bob.id+"/laptop")
	if status != http.StatusConflict {
		t.Errorf("an administrator names two keys: %d %s", status, text)
	}
	if status, text := ann.request(http.MethodDelete, "/api/v1/me/keys/"+bob.id+"%2Flaptop", ""); status != http.StatusNotFound {
		t.Errorf("the key of somebody else: %d %s", status, text)
	}
	if status, text := requestAs(t, "root-token", http.MethodDelete, url+"/api/v1/keys/"+bob.id+"%2Flaptop", ""); status != http.StatusOK {
		t.Errorf("an administrator names one: %d %s", status, text)
	}
	_, keys := bob.request(http.MethodGet, "/api/v1/me/keys", "")
	wantText(t, "bob's keys", keys, `"id":"`+bob.id+`/laptop"`, `"state":"revoked"`)
	_, keys = ann.request(http.MethodGet, "/api/v1/me/keys", "")
	if strings.Contains(keys, "revoked") {
		t.Errorf("ann's keys: %s", keys)
	}
	if status, text := requestAs(t, "root-token", http.MethodPost, url+"/api/v1/keys", `{"name":"laptop","scopes":["mcp"]}`); status != http.StatusCreated {
		t.Errorf("a key of a service: %d %s", status, text)
	}
}

// checkErasedWithKeys erases a person: what their keys made is exported, and gone.
func checkErasedWithKeys(t *testing.T, url, database string, ann someone, made map[string]string) {
	t.Helper()
	_, exported := ann.request(http.MethodGet, "/api/v1/me/export", "")
	for tool, id := range made {
		wantText(t, "export, "+tool, exported, id)
	}
	if status, text := requestAs(t, "root-token", http.MethodDelete, url+"/api/v1/people/"+ann.id, ""); status != http.StatusOK {
		t.Fatalf("erase: %d %s", status, text)
	}
	delete(made, "script_search") // the bytes of contents stay, without an owner
	for tool, id := range made {
		if left := dbtest.TablesWith(t, database, id); len(left) > 0 {
			t.Errorf("%s of the erased person is left in %v", tool, left)
		}
	}
	if left := dbtest.TablesWith(t, database, ann.id); len(left) > 0 {
		t.Errorf("the erased person is left in %v", left)
	}
}

// TestWorkOfAPersonsKeyEndsWithTheKey checks that what a key started has its rights, and ends
// with it, although it belongs to the person.
func TestWorkOfAPersonsKeyEndsWithTheKey(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, withPeople)})
	ann := newPerson(t, url, srv, "ann")
	token := ann.do(http.MethodPost, "/api/v1/me/keys", `{"name":"laptop","scopes":["mcp"],"tools":["lua_*"],"budget":3}`, "token")
	who, err := srv.keys.Authenticate(t.Context(), token)
	if err != nil || who.ID != principal.PersonID(ann.id, "") || who.KeyLimits.Budget != 3 || who.CanSee("", "job_list") {
		t.Fatalf("%+v, %v", who, err)
	}
	now, err := srv.keys.Current(t.Context(), principal.Principal{ID: who.ID, Grant: who.Grant})
	if err != nil || now.CanSee("", "job_list") || !slices.Equal(now.Scopes, []principal.Scope{principal.MCP}) {
		t.Errorf("a job of the key: %+v, %v", now, err)
	}
	ann.do(http.MethodDelete, "/api/v1/me/keys/laptop", "", "")
	if err := srv.keys.Check(who); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a call with a revoked key: %v", err)
	}
	if _, err := srv.keys.Current(t.Context(), who); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a job of a revoked key: %v", err)
	}
	if err := srv.keys.Check(principal.Principal{ID: who.ID}); err != nil {
		t.Errorf("the person: %v", err)
	}
}
