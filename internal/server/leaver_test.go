package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
