package server

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

// sharedAttempt is a call of a tool, or a request, about a thing of the owner. Whoever may
// make it receives shows.
type sharedAttempt struct {
	needs             principal.Level // Nothing: no share permits it
	tool, args, shows string
}

// sharedThings are the kinds that can be shared: a thing, the levels that it has, and what
// each level permits.
var sharedThings = map[principal.Kind]struct {
	id       string
	levels   []principal.Level
	attempts []sharedAttempt
}{
	principal.Job: {"LATER", []principal.Level{principal.See, principal.Edit}, []sharedAttempt{
		{principal.See, "job_status", `{"job_id":"LATER"}`, mark},
		{principal.See, "job_list", `{}`, "LATER"},
		{principal.See, "job_logs", `{"job_id":"LATER"}`, ""},
		{principal.Nothing, "job_status", `{"job_id":"JOB"}`, ""},
		{principal.Edit, "job_cancel", `{"job_id":"LATER"}`, ""},
	}},
	principal.Schedule: {"SCHEDULE", []principal.Level{principal.See, principal.Edit}, []sharedAttempt{
		{principal.See, "schedule_list", `{}`, "SCHEDULE"},
		{principal.Edit, "schedule_pause", `{"schedule_id":"SCHEDULE"}`, ""},
		{principal.Edit, "schedule_resume", `{"schedule_id":"SCHEDULE"}`, ""},
	}},
	principal.Session: {"SESSION", []principal.Level{principal.See, principal.Use, principal.Edit}, []sharedAttempt{
		{principal.See, "session_list", `{}`, "SESSION"},
		{principal.Use, "lua_preview", `{"code":"return 1","session_id":"SESSION"}`, ""},
		{principal.Use, "session_fork", `{"session_id":"SESSION"}`, ""},
		{principal.Nothing, "lua_eval", `{"code":"return 1","session_id":"SESSION"}`, ""},
		{principal.Edit, "session_reset", `{"session_id":"SESSION"}`, ""},
	}},
	principal.Artifact: {"HASH", []principal.Level{principal.See, principal.Edit}, []sharedAttempt{
		{principal.See, "script_get", `{"script_hash":"HASH"}`, mark},
		{principal.See, "lua_describe", `{"script_hash":"HASH"}`, ""},
		{principal.Nothing, "lua_eval", `{"code":"return cas.read('CONTENT')"}`, ""},
		{principal.See, "lua_execute", `{"script_hash":"HASH","delay_ms":3600000}`, ""},
		{principal.Edit, "DELETE /api/v1/library/HASH", "", ""},
		{principal.Edit, "POST /api/v1/library/HASH/restore", "", ""},
	}},
	principal.Conversation: {"CONVERSATION", []principal.Level{principal.See, principal.Use}, []sharedAttempt{
		{principal.See, "GET /api/v1/orgs/acme/users/CALLER/conversations", "", "CONVERSATION"},
		{principal.See, "GET /api/v1/orgs/acme/users/CALLER/conversation?id=CONVERSATION", "", mark},
		{principal.See, "GET /api/v1/chat/MESSAGE", "", mark},
		{principal.See, "GET /api/v1/chat/MESSAGE/stream", "", mark},
		{principal.See, "GET /api/v1/chat/MESSAGE/media/in.1", "", mark},
		{principal.Use, "POST /api/v1/orgs/acme/users/CALLER/conversation/copy", `{"id":"CONVERSATION"}`, `"id"`},
		{principal.Nothing, "POST /api/v1/shares", `{"kind":"conversation","id":"CONVERSATION","to":"org","may":"see"}`, ""},
		{principal.Nothing, "GET /api/v1/orgs/acme/users/OWNER/conversation?id=plans", "", ""},
		{principal.Nothing, "GET /api/v1/orgs/acme/users/CALLER/conversation?id=acme/OWNER/", "", mark},
		{principal.Nothing, "POST /api/v1/chat/MESSAGE/stop", "", ""},
		{principal.Nothing, "DELETE /api/v1/orgs/acme/users/CALLER/conversation?id=CONVERSATION", "", `"removed":1`},
	}},
}

// TestAttackMatrixOfShares shares things with one colleague, who gets exactly the level, and
// tries them as everybody else, of both organisations, and after the end of the share.
func TestAttackMatrixOfShares(t *testing.T) {
	t.Parallel()
	eachMatrix(t, func(m *matrix) {
		for kind := range sharedThings {
			m.tryShare(kind)
		}
	})
}

// tryShare shares a thing with ben at each level.
func (m *matrix) tryShare(kind principal.Kind) {
	m.t.Helper()
	thing := sharedThings[kind]
	m.tryLevel(kind, "not shared", principal.Nothing)
	var share string
	for _, level := range thing.levels {
		share = m.shareWithBen(kind, level)
		m.tryLevel(kind, "shared to "+string(level), level)
	}
	if status, text := m.request(m.owner, http.MethodDelete, "/api/v1/shares/"+share, ""); status != http.StatusOK {
		m.t.Fatalf("end the share of the %s: %d %s", kind, status, text)
	}
	m.tryLevel(kind, "shared no more", principal.Nothing)
}

func (m *matrix) shareWithBen(kind principal.Kind, level principal.Level) (id string) {
	m.t.Helper()
	for _, a := range m.actors {
		if a.name == "ben" {
			status, text := m.request(m.owner, http.MethodPost, "/api/v1/shares",
				m.ids.Replace(`{"kind":"`+string(kind)+`","id":"`+sharedThings[kind].id+`","to":"person:`+a.user+`","may":"`+string(level)+`"}`))
			if status != http.StatusCreated {
				m.t.Fatalf("share the %s to %s: %d %s", kind, level, status, text)
			}
			id = m.member(text, "id")
		}
	}
	return id
}

// tryLevel tries everything with a thing of which ben has a level, and nobody else anything.
// Ben is the last, because he changes it.
func (m *matrix) tryLevel(kind principal.Kind, when string, level principal.Level) {
	m.t.Helper()
	var ben actor
	for _, a := range m.actors {
		switch {
		case a.name == "ben":
			ben = a
		case !m.needsNoShare(a, kind):
			m.trySharedThing(a, kind, when, principal.Nothing)
		}
	}
	m.trySharedThing(ben, kind, when, level)
}

// needsNoShare reports whether somebody sees things of the owner anyway: administrators of the
// organisation, except that conversations are read only by keys that chat for everybody.
func (m *matrix) needsNoShare(a actor, kind principal.Kind) bool {
	if kind == principal.Conversation {
		return a.chats && a.user == ""
	}
	return a.sees
}

func (m *matrix) trySharedThing(a actor, kind principal.Kind, when string, level principal.Level) {
	m.t.Helper()
	for _, try := range sharedThings[kind].attempts {
		args := strings.ReplaceAll(m.ids.Replace(try.args), "CONTENT", m.content)
		call := m.call
		if method, path, ok := strings.Cut(strings.ReplaceAll(m.ids.Replace(try.tool), "CALLER", cmp.Or(a.user, "somebody")), " "); ok {
			call = func(a actor, _, body string) (int, string) { return m.request(a, method, path, body) }
		}
		status, text := call(a, try.tool, args)
		worked := status < http.StatusBadRequest && !isFailure(text) && strings.Contains(text, m.ids.Replace(try.shows))
		if worked != level.Permits(try.needs) {
			m.t.Errorf("%s, %s: %s: %s %s: %d %.400s", kind, when, a.name, try.tool, args, status, text)
		}
	}
}
