package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// startKeyless starts a server without keys that has all routes it can have, and whose
// upstream named hub may use it.
func startKeyless(t *testing.T, more string) (url string, srv *Server) {
	t.Helper()
	file := configtest.WriteFile(t, "local = \"guest\"\n"+more+"\n[music]\nenabled = true\n[telemetry]\nmetrics = \"on\"\n[upstreams.hub]\ncommand = \"unused\"\nenabled = false\nhub = true\n")
	return start(t, config.Sources{File: file})
}

// ownerToken is the owner's secret of a server.
func ownerToken(t *testing.T, srv *Server) string {
	t.Helper()
	own, err := owner.Read(srv.config.Data)
	if err != nil {
		t.Fatal(err)
	}
	return own.Reveal()
}

// localCaller sends requests from this machine to a server without keys.
type localCaller struct {
	name    string
	run     func(cmd launch.Program) *exec.Cmd // nil: the requests come from a program that the server started
	start   *profile.Profile
	headers []string
	uses    bool // it is served at routes for guests
	manages bool // and at all others that need a scope
}

// TestEveryRouteForEveryLocalCaller sends a request for each route as each kind of caller on the
// machine of a server without keys. A new route is tried as well.
func TestEveryRouteForEveryLocalCaller(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed (make system)")
	}
	at, srv := startKeyless(t, "")
	other, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(p launch.Program) *exec.Cmd { return &exec.Cmd{Path: p.Path, Args: p.Args, Env: p.Env} }
	nobody := func(p launch.Program) *exec.Cmd {
		cmd := plain(p)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	asOwner := "Authorization: Bearer " + ownerToken(t, srv)
	for _, c := range []localCaller{
		{name: "owner", run: plain, headers: []string{asOwner}, uses: true, manages: true},
		{name: "guest", run: plain, uses: true},
		{name: "guest with any key", run: plain, headers: []string{"Authorization: Bearer x"}},
		{name: "guest through a proxy", run: plain, headers: []string{"X-Forwarded-For: 10.0.0.1"}},
		{name: "owner through a proxy", run: plain, headers: []string{asOwner, "X-Forwarded-For: 10.0.0.1"}},
		{name: "page of another site", run: plain, headers: []string{"Origin: https://evil.example"}},
		{name: "name that leads here", run: plain, headers: []string{asOwner, "Host: evil.example:" + other.Port()}},
		{name: "other user", run: nobody},
		{name: "other user with the secret", run: nobody, headers: []string{asOwner}},
		{name: "program", start: &profile.Profile{Name: "x"}},
		{name: "program in an open sandbox", start: &profile.Profile{Name: "x", Level: profile.Open}},
		{name: "program with the secret", start: &profile.Profile{Name: "x"}, headers: []string{asOwner}},
		{name: "upstream with hub", start: &profile.Profile{Name: "hub"}, uses: true},
		{name: "upstream with hub in an open sandbox", start: &profile.Profile{Name: "hub", Level: profile.Open}, uses: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.start == nil && c.run(launch.Program{}).SysProcAttr != nil && os.Getuid() != 0 {
				t.Skip("only root can be another user")
			}
			routes := srv.routes()
			program := launch.Program{Path: curl, Args: []string{"curl", "-s", "-K", "-"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
			for i, status := range c.send(t, srv, program, requestsOf(at, routes, c.headers), len(routes)) {
				want := c.manages
				if routes[i].Guests {
					want = c.uses
				}
				served := status != http.StatusUnauthorized && status != http.StatusForbidden
				if needsRight := routes[i].Scope != principal.Open && !routes[i].Authenticates; needsRight && served != want {
					t.Errorf("%s: status %d, want it served: %v", routes[i].Pattern, status, want)
				}
			}
		})
	}
}

// requestsOf is a configuration of curl with a request for each route, which ends soon.
func requestsOf(at string, routes []principal.Route, headers []string) string {
	var list strings.Builder
	for i, route := range routes {
		method, path := requestOf(route.Pattern)
		if i > 0 {
			list.WriteString("next\nsilent\n")
		}
		if path == "/debug/pprof/profile" || path == "/debug/pprof/trace" {
			path += "?seconds=x" // who may not is refused before it is read
		}
		fmt.Fprintf(&list, "url = %q\nrequest = %q\noutput = \"/dev/null\"\nmax-time = 20\nwrite-out = \"%%{http_code}\\n\"\n", at+path, method)
		if path == "/mcp/sse" || path == "/api/v1/events" {
			list.WriteString("max-time = 1\n") // an answer without end
		}
		for _, header := range headers {
			fmt.Fprintf(&list, "header = %q\n", header)
		}
	}
	return list.String()
}

// send sends requests, and returns their statuses.
func (c localCaller) send(t *testing.T, srv *Server, program launch.Program, requests string, count int) (statuses []int) {
	t.Helper()
	cmd := (*exec.Cmd)(nil)
	run := func() error { return cmd.Run() }
	if c.start != nil {
		started, err := srv.sandbox.Command(*c.start, program)
		if err != nil {
			t.Fatal(err)
		}
		cmd, run = started.Cmd, started.Run
	} else {
		cmd = c.run(program)
	}
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(requests), &out, &problem
	ended := run() // a request that ran out of its time is an error of curl
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		status := 0
		if _, err := fmt.Sscan(lines.Text(), &status); err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, status)
	}
	if len(statuses) != count {
		t.Fatalf("%d answers to %d requests (%v): %s", len(statuses), count, ended, &problem)
	}
	return statuses
}

// TestLocalSettings checks what the settings do with requests without credentials.
func TestLocalSettings(t *testing.T) {
	t.Parallel()
	for local, want := range map[string][2]int{
		"guest": {http.StatusOK, http.StatusUnauthorized}, "owner": {http.StatusOK, http.StatusOK}, "none": {http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		t.Run(local, func(t *testing.T) {
			t.Parallel()
			at, srv := start(t, config.Sources{Flags: map[string]string{"local": local}})
			const list = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
			if a, body := httpjsontest.Read(t, http.MethodPost, at+"/mcp", list, "Accept", "application/json, text/event-stream"); a.StatusCode != want[0] {
				t.Errorf("/mcp: %s %s", a.Status, body)
			}
			if a, body := httpjsontest.Read(t, http.MethodGet, at+"/api/v1/keys", ""); a.StatusCode != want[1] {
				t.Errorf("/api/v1/keys: %s %s", a.Status, body)
			}
			name, bearer := httpjsontest.Bearer(ownerToken(t, srv))
			if a, body := httpjsontest.Read(t, http.MethodGet, at+"/api/v1/keys", "", name, bearer); a.StatusCode != http.StatusOK {
				t.Errorf("/api/v1/keys as the owner: %s %s", a.Status, body)
			}
		})
	}
}

// TestGuestsJobsEndWithTheFirstKey checks that jobs and schedules of guests end when the first
// key is made, and say why. Clients that need no key go on.
func TestGuestsJobsEndWithTheFirstKey(t *testing.T) {
	t.Parallel()
	bank := &recordingTools{}
	url, srv := startKeyless(t, "[upstreams.bank]\nurl = \""+serveTools(t, "bank", bank)+"\"\n")
	srv.upstreams.Await(t.Context(), "bank")
	srv.catalog.Refresh(t.Context())
	guest := keyClient{t, url, ""}
	running := jobOf(guest, "function main() while true do mcp.bank.post{text='of a guest'} end end")
	clocktest.Await(t, func() bool { return strings.Count(bank.received(), "of a guest") > 2 })
	name, bearer := httpjsontest.Bearer(ownerToken(t, srv))
	answer, text := httpjsontest.Read(t, http.MethodPost, url+"/api/v1/keys", `{"name":"root","scopes":["admin"]}`, name, bearer)
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s", answer.Status, text)
	}
	clocktest.Await(t, func() bool { return srv.jobs.Running() == 0 }, func() string { return "the job of a guest goes on" })
	boss := keyClient{t, url, ownerToken(t, srv)}
	if text := boss.own("job_status", `{"job_id":"`+running+`"}`); !strings.Contains(text, "failed") || !strings.Contains(text, "guests may not use this server any more") {
		t.Errorf("the job: %s", text)
	}
	if _, err := srv.currentPrincipal(t.Context(), principal.Guest()); fault.CodeOf(err) != fault.Denied { // of a schedule
		t.Errorf("a guest's rights: %v", err)
	}
	attached, err := srv.AttachedClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := srv.CallTool(attached, tool.Call{Ref: tool.Ref{Name: "lua_eval"}, Args: []byte(`{"code":"return mcp.bank.post{text='attached'}"}`)})
	if err != nil || rawjson.GetBool(result.Raw, "isError") || !strings.Contains(bank.received(), "attached") {
		t.Errorf("a client of the socket: %v %s", err, result.Raw)
	}
}

// TestOwnerSignsIn checks the link that signs a browser in: once, and for longer than the first
// key, which must be an administrator's.
func TestOwnerSignsIn(t *testing.T) {
	t.Parallel()
	at, srv := startKeyless(t, "")
	browser := &http.Client{Transport: httpjsontest.Client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	link := at + srv.auth.OwnerLink()
	signIn := func() *http.Response {
		answer, err := browser.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	stream := httpjsontest.Open(t, http.MethodGet, at+"/mcp/sse", "") // of a guest
	first := signIn()
	if first.StatusCode != http.StatusSeeOther || len(first.Cookies()) != 1 || first.Cookies()[0].SameSite != http.SameSiteStrictMode || !first.Cookies()[0].HttpOnly {
		t.Fatalf("%s %v", first.Status, first.Cookies())
	}
	if again := signIn(); again.StatusCode != http.StatusForbidden || len(again.Cookies()) != 0 {
		t.Errorf("the link a second time: %s", again.Status)
	}
	session := first.Cookies()[0].String()
	_, me := httpjsontest.Read(t, http.MethodGet, at+"/api/v1/me", "", "Cookie", session)
	csrf := strings.Split(strings.Split(me+`"csrf_token":"`, `"csrf_token":"`)[1], `"`)[0]
	if csrf == "" {
		t.Fatalf("me: %s", me)
	}
	for _, c := range []struct {
		body string
		want int
	}{{`{"name":"k","scopes":["mcp"]}`, http.StatusBadRequest}, {`{"name":"root","scopes":["admin"]}`, http.StatusCreated}, {`{"name":"k","scopes":["mcp"]}`, http.StatusCreated}} {
		if a, body := httpjsontest.Read(t, http.MethodPost, at+"/api/v1/keys", c.body, "Cookie", session, "X-CSRF-Token", csrf); a.StatusCode != c.want {
			t.Errorf("%s: %s %s, want %d", c.body, a.Status, body, c.want)
		}
	}
	if a, _ := httpjsontest.Read(t, http.MethodPost, at+"/mcp", `{}`); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a guest after the first key: %s", a.Status)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // it ends
		t.Error(err)
	}
}
