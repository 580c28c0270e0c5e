package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
)

// limitPages lets the database grow to that many pages; SQLite reports more as a full
// disk. 1 is as many as it has.
func limitPages(t *testing.T, srv *Server, pages int) {
	t.Helper()
	err := srv.store.Write(t.Context(), func(tx *db.Tx) error {
		var now int
		return tx.QueryRow(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(&now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk checks that with a full disk the server is not ready, that tools that may
// change something are refused with the cause, that those that read go on, and that
// nothing is lost when there is space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, reaction := range []string{config.AuditRefuse, config.AuditContinue} {
		t.Run(reaction, func(t *testing.T) {
			t.Parallel()
			upstream := &shop{}
			url, srv := start(t, config.Sources{File: configtest.WriteFile(t, "[audit]\non_failure = \""+reaction+"\"\n[upstreams.fine]\nurl = \""+serveTools(t, "fine", upstream)+"\"\n")})
			srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
			client := keyClient{t, url, ""}
			buy := func() string { return client.call("call_tool", `{"name":"fine.buy","arguments":{}}`) }
			ready := func() (int, string) {
				answer, text := httpjsontest.Read(t, http.MethodGet, url+"/ready", "")
				return answer.StatusCode, text
			}
			if text := buy(); strings.Contains(text, `"isError":true`) {
				t.Fatal(text)
			}
			limitPages(t, srv, 1)
			reads, text := 0, ""
			clocktest.Await(t, func() bool { // until the free pages are used
				text = client.call("search_tools", `{"query":"`+strings.Repeat("x", 100)+`"}`)
				reads++
				status, _ := ready()
				return status == http.StatusServiceUnavailable
			}, func() string { return "it stays ready: " + text })
			if status, text := ready(); status != http.StatusServiceUnavailable || !strings.Contains(text, "the disk is full") {
				t.Errorf("not ready: %d %s", status, text)
			}
			if answer, text := httpjsontest.Read(t, http.MethodGet, url+"/health", ""); answer.StatusCode != http.StatusOK || !strings.Contains(text, `"degraded"`) || !strings.Contains(text, "the disk is full") {
				t.Errorf("health: %d %s", answer.StatusCode, text)
			}
			if strings.Contains(text, `"isError":true`) {
				t.Errorf("a tool that reads: %s", text)
			}
			refused := func() bool {
				sold, _, _ := upstream.counts()
				text = buy()
				after, _, _ := upstream.counts()
				return strings.Contains(text, "audit log cannot be written") && strings.Contains(text, "disk is full") && after == sold
			}
			if reaction == config.AuditRefuse { // as soon as an entry did not fit
				clocktest.Await(t, refused, func() string { return "a tool that may change something: " + text })
			} else if refused() {
				t.Errorf("a tool that may change something: %s", text)
			}
			if answer, text := httpjsontest.Read(t, http.MethodPost, url+"/api/v1/keys", `{"name":"`+strings.Repeat("k", 60)+`","tools":["`+strings.Repeat("t", 62_000)+`"]}`); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "disk is full") {
				t.Errorf("a key: %d %s", answer.StatusCode, text)
			}
			limitPages(t, srv, 1<<30)
			if text := buy(); strings.Contains(text, `"isError":true`) {
				t.Errorf("the first call with space again: %s", text)
			}
			clocktest.Await(t, func() bool { status, _ := ready(); return status == http.StatusOK }, func() string { return "it stays not ready" })
			clocktest.Await(t, func() bool {
				found, err := srv.audit.Find(t.Context(), audit.Filter{Tool: "search_tools", Limit: 100_000})
				return err == nil && len(found) == reads
			}, func() string { return "entries were lost" })
			if verified, err := srv.audit.Verify(t.Context()); err != nil || len(verified) != 1 || len(verified[0].Problems) > 0 {
				t.Errorf("%+v, %v", verified, err)
			}
			if text := buy(); strings.Contains(text, `"isError":true`) {
				t.Errorf("with space again: %s", text)
			}
		})
	}
}
