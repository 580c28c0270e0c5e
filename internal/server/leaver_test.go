package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestBlockedPersonsJobEnds blocks somebody whose job calls tools in a loop: the job, the
// stream of events, the session and the key end, and no call follows.
func TestBlockedPersonsJobEnds(t *testing.T) {
	t.Parallel()
	bank := &recordingTools{}
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, withPeople+"[upstreams.bank]\nurl = \""+serveTools(t, "bank", bank)+"\"\n")})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	ann := newPerson(t, url, srv, "ann")
	key := ann.do(http.MethodPost, "/api/v1/me/keys", `{"name":"anns","scopes":["mcp"],"expires":"1d"}`, "token")
	hash := ann.do(http.MethodPost, "/tools/script_store", `{"content":"function main() while true do mcp.bank.post{ text = 'x' } end end"}`, "hash")
	ann.do(http.MethodPost, "/tools/lua_execute", `{"script_hash":"`+hash+`"}`, "job_id")
	calls := func() int { return strings.Count(bank.received(), "x") }
	clocktest.Await(t, func() bool { return calls() > 2 })
	stream := httpjsontest.Open(t, http.MethodGet, url+"/api/v1/events", "", "Cookie", "luanette_session="+ann.cookie)
	defer stream.Body.Close()
	if err := srv.people.Block(t.Context(), ann.id); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stream.Body) // it ends, or the test does not
	clocktest.Await(t, func() bool { return srv.jobs.Running() == 0 }, func() string { return "the job of a blocked person goes on" })
	after := calls()
	if status, _ := ann.request(http.MethodGet, "/api/v1/me", ""); status != http.StatusUnauthorized {
		t.Errorf("the session of a blocked person: %d", status)
	}
	if status, text := requestAs(t, key, http.MethodPost, url+"/tools/job_list", "{}"); status/100 == 2 {
		t.Errorf("the key of a blocked person: %d %s", status, text)
	}
	if now := calls(); now != after {
		t.Errorf("%d calls after the job had ended", now-after)
	}
}

// departures are ways to lose rights, and what the schedules of such people say afterwards.
var departures = []struct {
	name, says string
	leave      func(*Server, someone, *testing.T) error
}{
	{"blocked", "may not use this server any more", func(srv *Server, who someone, t *testing.T) error { return srv.people.Block(t.Context(), who.id) }},
	{"leaving", "has no role here any more", func(srv *Server, who someone, t *testing.T) error { return srv.people.Leave(t.Context(), who.id, "") }},
	{"viewing", "may not call tools any more", func(srv *Server, who someone, t *testing.T) error {
		_, err := srv.people.SignIn(t.Context(), people.Arrival{
			Identity: people.Identity{Issuer: "https://login.example", Subject: "viewing" + marker}, Name: who.fullName, Roles: map[string][]string{"": {"viewer"}}, Source: "corp",
		})
		return err
	}},
}

// TestLeaversWorkAtNight lets people whose calls were approved once and for all have schedules
// and a request for approval. When they have left, nothing of that is done any more, whatever
// administrators allow, and it says why.
func TestLeaversWorkAtNight(t *testing.T) {
	t.Parallel()
	bank := &recordingTools{}
	url, srv := start(t, config.Sources{
		File: configtest.WriteFile(t, withPeople+"[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n[upstreams.bank]\nurl = \""+serveTools(t, "bank", bank)+"\"\napprove = \"all\"\n"),
		Env:  config.Environment{"ROOT": "root-token"},
	})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	root := keyClient{t, url, "root-token"}
	requestOf := func(job string) (id string) { // once it waits
		clocktest.Await(t, func() bool {
			a, ok, err := srv.approvals.PendingOf(t.Context(), "job:"+job)
			id = a.ID
			return err == nil && ok
		}, func() string { return root.call("job_status", `{"job_id":"`+job+`"}`) })
		return id
	}
	calls := func(text string) int { return strings.Count(bank.received(), text) }
	staff := make([]someone, len(departures))
	asked := make([]string, len(departures))
	for i, how := range departures {
		who := newPerson(t, url, srv, how.name)
		begin := func(text, more string) string {
			hash := who.do(http.MethodPost, "/tools/script_store", `{"content":"function main() return mcp.bank.post{ text = '`+text+" "+how.name+`' } end"}`, "hash")
			return who.do(http.MethodPost, "/tools/lua_execute", `{"script_hash":"`+hash+`"`+more+`}`, "job_id")
		}
		root.call("approval_decide", `{"approval_id":"`+requestOf(begin("nightly", ""))+`","decision":"allow","remember":"script"}`)
		begin("nightly", `,"schedule":"@every 1s"`)
		asked[i] = begin("later", "")
		staff[i] = who
	}
	for i, how := range departures {
		clocktest.Await(t, func() bool { return calls("nightly "+how.name) > 1 }, func() string { return root.call("schedule_list", "{}") })
		requestOf(asked[i])
		if err := how.leave(srv, staff[i], t); err != nil {
			t.Fatal(err)
		}
	}
	for i, how := range departures {
		paused := func() bool { return strings.Contains(root.call("schedule_list", "{}"), how.says) }
		clocktest.Await(t, paused, func() string { return how.name + ": " + root.call("schedule_list", "{}") })
		root.call("approval_decide", decision(requestOf(asked[i])))
		if text := root.call("job_poll", `{"job_ids":["`+asked[i]+`"],"timeout_ms":60000}`); !strings.Contains(text, how.says) || !strings.Contains(text, `"status":"failed"`) {
			t.Errorf("%s: a request that was allowed afterwards: %.900s", how.name, text)
		}
		if calls("later") > 0 {
			t.Errorf("%s: the bank received %s", how.name, bank.received())
		}
	}
	clocktest.Await(t, func() bool { return srv.jobs.Running() == 0 })
	before := calls("text")
	all, err := srv.jobs.Schedules(t.Context())
	if err != nil || len(all) != len(departures) {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, schedule := range all {
		root.call("schedule_resume", `{"schedule_id":"`+schedule.ID+`"}`)
	}
	clocktest.Await(t, func() bool {
		return strings.Count(root.call("schedule_list", "{}"), `"paused_because":`) == len(departures)
	})
	if now := calls("text"); now != before {
		t.Errorf("%d calls after all have left", now-before)
	}
}
