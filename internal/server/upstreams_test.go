package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// testNode is a server that may share its database with others.
type testNode struct {
	t   *testing.T
	url string
	srv *Server
}

// startNode starts a node on a database, with more configuration.
func startNode(t *testing.T, database, name, text string, change ...func(*Options)) testNode {
	t.Helper()
	sources := config.Sources{
		Flags: map[string]string{"database": database, "node": name},
		Env:   config.Environment{"LUANETTE_OAUTH_KEY": "a key that is long enough"},
	}
	if text != "" {
		sources.File = configtest.WriteFile(t, text)
	}
	url, srv := start(t, sources, change...)
	return testNode{t, url, srv}
}

// api sends a request, which must have the status, and returns the response.
func (f testNode) api(status int, method, path, body string) (answer object) {
	f.t.Helper()
	response, text := httpjsontest.Read(f.t, method, f.url+"/api/v1"+path, body)
	if response.StatusCode != status {
		f.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, response.StatusCode, status, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		f.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// await waits until an upstream has a state on the node; "" means that it does not exist.
func (f testNode) await(name, state string) adminapi.Upstream {
	f.t.Helper()
	sub := f.srv.bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	defer sub.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), clocktest.Timeout)
	defer cancel()
	upstreams := adminapi.UpstreamSet{Set: f.srv.upstreams, Counts: f.srv.catalog}
	for {
		u, err := upstreams.Get(ctx, name)
		if err == nil && u.State == state || err != nil && state == "" {
			return u
		}
		if _, wait := sub.Next(ctx); wait != nil {
			f.t.Fatalf("%s does not become %q on %s: it is %q %v", name, state, f.srv.node.Name(), u.State, err)
		}
	}
}

// TestUpstreamsOnAllNodes checks that upstreams that are added, changed or removed on one
// node are added, changed or removed on all.
func TestUpstreamsOnAllNodes(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	one, _ := startShared(t)
	other, _ := start(t, config.Sources{})
	a, b := startNode(t, database, "a", ""), startNode(t, database, "b", "")
	a.api(http.StatusOK, "POST", "/upstreams", `{"namespace": "docs", "url": "`+one+`/mcp", "headers": {"X-Mine": "secret-token"}}`)
	seen := b.await("docs", "connected")
	if seen.Origin != "added" || !seen.Editable || seen.Settings["url"] != one+"/mcp" || fmt.Sprint(seen.Settings["headers"]) != "map[X-Mine:<nil>]" || seen.By == "" {
		t.Errorf("upstream on b: %+v %+v", seen, seen.Settings)
	}
	a.api(http.StatusConflict, "POST", "/upstreams", `{"namespace": "docs", "url": "`+one+`/mcp"}`)
	refused := b.api(http.StatusBadRequest, "PATCH", "/upstreams/docs", `{"url": "`+other+`/mcp"}`)
	if !strings.Contains(refused.text("message"), "not sent to another server") {
		t.Errorf("change of the URL with stored headers: %v", refused)
	}
	b.api(http.StatusBadRequest, "PATCH", "/upstreams/docs", `{"url": "`+other+`/mcp", "headers": {"X-Mine": null}}`)
	b.api(http.StatusOK, "PATCH", "/upstreams/docs", `{"url": "`+other+`/mcp", "headers": {}, "expose": ["job_stats"]}`)
	awaitEndpoint(a, "docs", other+"/mcp")
	if got := a.await("docs", "connected"); got.Settings["headers"] != nil || fmt.Sprint(got.Settings["expose"]) != "[job_stats]" {
		t.Errorf("after the change, on a: %+v", got.Settings)
	}
	late := startNode(t, database, "late", "")
	if got := late.await("docs", "connected"); got.Endpoint != other+"/mcp" {
		t.Errorf("on a node that joins later: %s", got.Endpoint)
	}
	toolClient{t, connectPeer(t, a.url)}.call("mcp_disconnect", `{"namespace": "docs"}`)
	b.await("docs", "")
	late.await("docs", "")
	a.api(http.StatusNotFound, "DELETE", "/upstreams/docs", "")
	toolClient{t, connectPeer(t, b.url)}.call("lua_eval", `{"code": "tools.mcp_add('viascript', '`+one+`/mcp')"}`)
	a.await("viascript", "connected")
}

func awaitEndpoint(f testNode, name, endpoint string) {
	f.t.Helper()
	sub := f.srv.bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	defer sub.Close()
	for {
		if s, _ := f.srv.upstreams.Status(name); s.Endpoint == endpoint {
			return
		}
		if _, err := sub.Next(f.t.Context()); err != nil {
			f.t.Fatalf("%s does not get the endpoint %s", name, endpoint)
		}
	}
}

// TestRemovedConfiguredUpstream checks that a configured upstream which a user removed is
// shown as removed on every node, and can be restored.
func TestRemovedConfiguredUpstream(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	one, _ := startShared(t)
	text := "log.level = \"warn\"\n\n[upstreams.far]\nurl = \"" + one + "/mcp\"\n"
	a, b := startNode(t, database, "a", text), startNode(t, database, "b", text)
	if at := a.await("far", "connected").ConfiguredAt; !strings.HasSuffix(at, ".toml:3") {
		t.Errorf("configured at %s", at)
	}
	b.await("far", "connected")
	refused := a.api(http.StatusConflict, "PATCH", "/upstreams/far", `{"read_only": true}`)
	if !strings.Contains(refused.text("message"), ".toml:3") {
		t.Errorf("the error does not name the line: %v", refused)
	}
	if removed := a.api(http.StatusOK, "DELETE", "/upstreams/far", ""); removed["removed"] != true || !strings.HasSuffix(removed.text("configured_at"), ".toml:3") {
		t.Errorf("removed %v", removed)
	}
	for _, n := range []testNode{a, b} {
		if got := n.await("far", upstreamset.StateRemoved); got.Wanted || got.Origin != "config" || !strings.Contains(got.Hint, "restore") || got.Tools != 0 {
			t.Errorf("shown as %+v", got)
		}
	}
	late := startNode(t, database, "late", text)
	late.await("far", upstreamset.StateRemoved)
	b.api(http.StatusOK, "POST", "/upstreams/far/restore", "")
	a.await("far", "connected")
	late.await("far", "connected")
	b.api(http.StatusConflict, "POST", "/upstreams/far/restore", "")

	toolClient{t, connectPeer(t, a.url)}.call("mcp_disconnect", `{"namespace": "far"}`)
	b.await("far", upstreamset.StateRemoved)
	toolClient{t, connectPeer(t, b.url)}.call("mcp_connect", `{"namespace": "far", "url": "`+one+`/mcp"}`)
	a.await("far", "connected")

	toolClient{t, connectPeer(t, a.url)}.call("mcp_disconnect", `{"namespace": "far"}`)
	b.await("far", upstreamset.StateRemoved)
	b.srv.reloadLogged(t.Context(), false) // the entry in the file did not change
	b.await("far", upstreamset.StateRemoved)
	b.srv.Reload(t.Context())
	a.await("far", "connected")
}

// TestEditedEntryIsRestored checks that a removed upstream is restored when its entry in the
// file changes, and that others are not.
func TestEditedEntryIsRestored(t *testing.T) {
	t.Parallel()
	one, _ := startShared(t)
	file := configtest.WriteFile(t, "[upstreams.far]\nurl = \""+one+"/mcp\"\n[upstreams.near]\nurl = \""+one+"/mcp\"\n")
	url, srv := start(t, config.Sources{File: file})
	n := testNode{t, url, srv}
	for _, name := range []string{"far", "near"} {
		n.await(name, "connected")
		n.api(http.StatusOK, "DELETE", "/upstreams/"+name, "")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "[upstreams.near]", "read_only = true\n[upstreams.near]", 1)
	configtest.ReplaceFile(t, file, changed)
	n.await("far", "connected")
	if got := n.await("near", upstreamset.StateRemoved); !strings.HasSuffix(got.ConfiguredAt, ":4") {
		t.Errorf("near is configured at %s, want line 4", got.ConfiguredAt)
	}
}

// TestUpstreamsPersist checks that added and removed upstreams persist in SQLite across a
// restart, with encrypted secrets. Those of startup.lua are not stored.
func TestUpstreamsPersist(t *testing.T) {
	t.Parallel()
	one, _ := startShared(t)
	folder := t.TempDir()
	database := "sqlite:" + filepath.Join(folder, "test.db")
	text := "[scripts]\nstartup = " + strconv.Quote(filepath.Join(folder, "startup.lua")) + "\n[upstreams.far]\nurl = \"" + one + "/mcp\"\n"
	if err := os.WriteFile(filepath.Join(folder, "startup.lua"), []byte("tools.mcp_add('local', '"+one+"/mcp')"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("before", func(t *testing.T) {
		n := startNode(t, database, "", text)
		n.api(http.StatusOK, "POST", "/upstreams", `{"namespace": "docs", "url": "`+one+`/mcp", "headers": {"Authorization": "secret-token"}}`)
		n.api(http.StatusOK, "DELETE", "/upstreams/far", "")
		n.await("docs", "connected")
		if got := n.await("local", "connected"); got.Origin != "startup" || !got.Editable {
			t.Errorf("upstream of startup.lua: %+v", got)
		}
	})
	files, err := filepath.Glob(filepath.Join(folder, "test.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "secret-token") {
			t.Errorf("%s contains the secret: %v", file, err)
		}
	}
	t.Run("after", func(t *testing.T) {
		n := startNode(t, database, "", text)
		if got := n.await("docs", "connected"); fmt.Sprint(got.Settings["headers"]) != "map[Authorization:<nil>]" {
			t.Errorf("after the restart: %+v", got.Settings)
		}
		n.await("far", upstreamset.StateRemoved)
		n.await("local", "connected")
	})
}

func TestInvalidUpstreamsAreRefused(t *testing.T) {
	t.Parallel()
	url, srv := startShared(t)
	n := testNode{t, url, srv}
	for body, status := range map[string]int{
		`{"namespace": "x", "url": "https://example.org/mcp"}`:                     http.StatusForbidden,
		`{"namespace": "x", "url": "http://169.254.169.254/mcp"}`:                  http.StatusForbidden,
		`{"namespace": "x", "url": "zmq+ipc:///run/backend"}`:                      http.StatusBadRequest,
		`{"namespace": "x", "url": "/bin/sh"}`:                                     http.StatusBadRequest,
		`{"namespace": "x", "command": "sh"}`:                                      http.StatusBadRequest,
		`{"namespace": "x"}`:                                                       http.StatusBadRequest,
		`{"namespace": "a b", "url": "http://127.0.0.1:1/"}`:                       http.StatusBadRequest,
		`{"namespace": "own-x", "url": "http://127.0.0.1:1/"}`:                     http.StatusBadRequest,
		`{"namespace": "x", "url": "http://127.0.0.1:1/", "expose": 3}`:            http.StatusBadRequest,
		`{"namespace": "x", "url": "http://127.0.0.1:1/", "transport": "stdio"}`:   http.StatusBadRequest,
		`{"namespace": "x", "url": "http://127.0.0.1:1/", "headers": {"A": null}}`: http.StatusBadRequest,
	} {
		n.api(status, "POST", "/upstreams", body)
	}
	n.api(http.StatusNotFound, "PATCH", "/upstreams/unknown", `{}`)
	n.api(http.StatusNotFound, "DELETE", "/upstreams/unknown", ``)
	if list := n.api(http.StatusOK, "GET", "/upstreams", ""); len(list["upstreams"].([]any)) != 0 {
		t.Errorf("upstreams %v, want none", list)
	}
}
