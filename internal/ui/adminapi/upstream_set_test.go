package adminapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/base/tagged/taggedtest"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// upstreamServer serves a set of upstreams, of which the configuration has "fixed".
// Their server answers every request with 404, so that a connection fails at once.
func upstreamServer(t *testing.T) (s *adminapi.Server, address string) {
	t.Helper()
	return upstreamServerWith(t, nil)
}

func upstreamServerWith(t *testing.T, connections adminapi.Egress, more ...upstream.Spec) (s *adminapi.Server, address string) {
	t.Helper()
	remote := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(remote.Close)
	bus := event.New(event.BusOptions{})
	manager := upstream.New(upstream.Options{Events: bus})
	t.Cleanup(manager.Close)
	store, err := upstreamstore.Open(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), secret.Box{
		Key: func() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	tools := catalog.New(catalog.Options{})
	set, err := upstreamset.New(t.Context(), upstreamset.Options{
		Manager: manager, Overlay: overlay.New(manager, manager), Catalog: tools, Store: store, Events: bus,
		Log: slog.New(slog.DiscardHandler), Persistent: true, Address: func() string { return "" },
		Audit: func(context.Context, string, string, []byte) {}, Warnings: func(string) []string { return nil },
	})
	if err == nil {
		err = set.Configure(append(more, upstream.Spec{Name: "fixed", Settings: upstream.Settings{URL: remote.URL + "/fixed"}}), map[string]string{"fixed": "luanette.toml:3"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return adminapi.New(adminapi.Options{
		Upstreams: adminapi.UpstreamSet{Set: set, Node: "n1", Counts: tools, Policy: servertools.AllowHosts(nil)}, Egress: connections, Sandbox: wire{},
	}), remote.URL
}

func settings(t *testing.T, answer object) object {
	t.Helper()
	found, ok := answer["settings"].(map[string]any)
	if !ok {
		t.Fatalf("no settings: %v", answer)
	}
	return found
}

func TestAddAndEditUpstream(t *testing.T) {
	t.Parallel()
	s, address := upstreamServer(t)
	expect(t, s, http.StatusBadRequest, "POST", "/api/v1/upstreams", `{"namespace":"docs"}`)
	expect(t, s, http.StatusBadRequest, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"/bin/sh"}`)
	expect(t, s, http.StatusForbidden, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"https://docs.example/mcp"}`)
	expect(t, s, http.StatusConflict, "POST", "/api/v1/upstreams", `{"namespace":"fixed","url":"`+address+`"}`)

	added := expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams",
		`{"namespace":"docs","url":"`+address+`/mcp?token=hidden","headers":{"X-Key":"hidden","A":"b"},"expose":["find"],"timeout_ms":1500}`)
	if got := settings(t, added); added["editable"] != true || added["by"] != "local" || got["url"] != address+"/mcp?(hidden)" ||
		fmt.Sprintf("%v %v %v", got["headers"], got["expose"], got["timeout"]) != "map[A:<nil> X-Key:<nil>] [find] 1.5s" {
		t.Errorf("added %v", added)
	}
	expect(t, s, http.StatusConflict, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"`+address+`"}`)

	edited := settings(t, expect(t, s, http.StatusOK, "PATCH", "/api/v1/upstreams/docs", `{"read_only":true,"expose":"all","headers":{"X-Key":null}}`))
	if edited["read_only"] != true || edited["timeout"] != "1.5s" || fmt.Sprintf("%v %v", edited["headers"], edited["expose"]) != "map[X-Key:<nil>] all" {
		t.Errorf("edited %v", edited)
	}
	expect(t, s, http.StatusNotFound, "PATCH", "/api/v1/upstreams/other", `{"read_only":true}`)
	if answer := expect(t, s, http.StatusConflict, "PATCH", "/api/v1/upstreams/fixed", `{"read_only":true}`); answer["message"] != "upstream fixed belongs to the configuration: luanette.toml:3" {
		t.Errorf("editing a configured one: %v", answer)
	}
}

// TestHeadersStayWithTheirServer checks that stored headers, which may hold secrets, are
// not sent to another origin.
func TestHeadersStayWithTheirServer(t *testing.T) {
	t.Parallel()
	s, address := upstreamServer(t)
	_, elsewhere := upstreamServer(t)
	expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"`+address+`/one","headers":{"X-Key":"hidden"}}`)
	expect(t, s, http.StatusOK, "PATCH", "/api/v1/upstreams/docs", `{"url":"`+address+`/two"}`)
	for _, body := range []string{
		`{"url":"` + elsewhere + `/two"}`,
		`{"url":"` + elsewhere + `/two","headers":{"X-Key":null}}`,
		`{"headers":{"X-Other":null}}`,
	} {
		expect(t, s, http.StatusBadRequest, "PATCH", "/api/v1/upstreams/docs", body)
	}
	moved := settings(t, expect(t, s, http.StatusOK, "PATCH", "/api/v1/upstreams/docs", `{"url":"`+elsewhere+`/two","headers":{}}`))
	if moved["url"] != elsewhere+"/two" || moved["headers"] != nil {
		t.Errorf("moved %v", moved)
	}
}

func TestRemoveAndRestoreUpstream(t *testing.T) {
	t.Parallel()
	s, address := upstreamServer(t)
	expect(t, s, http.StatusConflict, "POST", "/api/v1/upstreams/fixed/restore", "")
	if answer := expect(t, s, http.StatusOK, "DELETE", "/api/v1/upstreams/fixed", ""); answer["removed"] != true || answer["configured_at"] != "luanette.toml:3" {
		t.Errorf("removed: %v", answer)
	}
	if answer := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/fixed", ""); answer["state"] != "removed" || answer["wanted"] != false {
		t.Errorf("a configured one after its removal: %v", answer)
	}
	if answer := expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams/fixed/restore", ""); answer["wanted"] != true || answer["editable"] != false {
		t.Errorf("restored: %v", answer)
	}
	expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"`+address+`"}`)
	expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams/docs/retry", "")
	expect(t, s, http.StatusOK, "DELETE", "/api/v1/upstreams/docs", "")
	for _, c := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/retry"}} {
		expect(t, s, http.StatusNotFound, c[0], "/api/v1/upstreams/docs"+c[1], "")
	}
}

// TestUpstreamsOfAReader checks what a key sees that is not an administrator's:
// the state of the namespaces that it may use, without their settings.
func TestUpstreamsOfAReader(t *testing.T) {
	t.Parallel()
	s, address := upstreamServer(t)
	expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"`+address+`"}`)
	who := reader()
	who.Namespaces = []string{"docs"}
	status, answer := request(t, s, who, "GET", "/api/v1/upstreams", "")
	list, _ := answer["upstreams"].([]any)
	if status != http.StatusOK || answer["node"] != "n1" || len(list) != 1 {
		t.Fatalf("listed: %d %v, want docs only", status, answer)
	}
	if docs, _ := list[0].(map[string]any); docs["namespace"] != "docs" || docs["settings"] != nil || docs["by"] != nil {
		t.Errorf("shown to a reader: %v", docs)
	}
	if status, answer := request(t, s, who, "GET", "/api/v1/upstreams/fixed", ""); status != http.StatusNotFound {
		t.Errorf("a namespace that the key may not use: %d %v", status, answer)
	}
	if all := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams", ""); len(all["upstreams"].([]any)) != 2 {
		t.Errorf("an administrator sees %v", all)
	}
}

// TestSettingsOfTheAPI checks for every setting that a server which was added can have that the
// API sets and shows it, and for all others that it refuses them.
func TestSettingsOfTheAPI(t *testing.T) {
	t.Parallel()
	s, address := upstreamServer(t)
	expect(t, s, http.StatusOK, "POST", "/api/v1/upstreams", `{"namespace":"docs","url":"`+address+`","headers":{"x":"y"}}`)
	for f := range reflect.TypeFor[upstream.Settings]().Fields() {
		var all upstream.Settings
		field := reflect.ValueOf(&all).Elem().FieldByIndex(f.Index)
		if field.Kind() == reflect.Struct {
			continue // only the configuration has tables of settings: checked where they are stored
		}
		taggedtest.Change(field, valid(f.Name, address))
		body, err := json.Marshal(tagged.Object(all))
		if err != nil {
			t.Fatal(err)
		}
		status, answer := request(t, s, principal.Local(), "PATCH", "/api/v1/upstreams/docs", string(body))
		if _, added := f.Tag.Lookup("added"); added != (status == http.StatusOK) {
			t.Errorf("%s (added: %v): %d %v", f.Name, added, status, answer)
		} else if added && settings(t, answer)[tagged.Key(f)] == nil {
			t.Errorf("%s is not shown: %v", f.Name, answer["settings"])
		}
	}
}

// valid is a text that a setting may have.
func valid(setting, address string) string {
	return cmp.Or(map[string]string{"URL": address + "/2", "Transport": "http", "Protocol": "modern"}[setting], "y")
}

func TestSandboxOfAnUpstream(t *testing.T) {
	t.Parallel()
	s, _ := upstreamServerWith(t, nil,
		upstream.Spec{Name: "open", Settings: upstream.Settings{Command: "/no/such/program"}},
		upstream.Spec{Name: "shut", Settings: upstream.Settings{Command: "/no/such/program"}, Profile: profile.Profile{Level: profile.Strict, Network: []string{"api.example:443"}, Credentials: []profile.Credential{{Name: "token"}}}},
	)
	shut := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/shut", "")
	if raw, _ := json.Marshal(shut["sandbox"]); string(raw) != `{"level":"strict","network":["api.example:443"],"secrets":["token"]}` || shut["restarts"] != 0.0 {
		t.Errorf("sandbox %s of %v", raw, shut)
	}
	reader := principal.Principal{ID: "reader", Scopes: []principal.Scope{principal.Read}}
	if _, seen := request(t, s, reader, "GET", "/api/v1/upstreams/shut", ""); len(seen["sandbox"].(map[string]any)) != 1 {
		t.Errorf("shown to a reader: %v", seen)
	}
	if open := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/open", ""); open["sandbox"].(map[string]any)["level"] != "off" {
		t.Errorf("without a sandbox: %v", open)
	}
	if fixed := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/fixed", ""); fixed["sandbox"] != nil {
		t.Errorf("a URL has a sandbox: %v", fixed)
	}
}

// wire has one connection of the upstream fixed.
type wire struct{}

func (wire) Connections(name string) []egress.Connection {
	return []egress.Connection{{Server: name, Host: "evil.example", Port: 443, Outcome: egress.Refused, Allow: "evil.example:443"}}
}

func (wire) Hosts(string) []egress.Host { return nil }

func (wire) Refusals(name string) ([]profile.Refusal, error) {
	return []profile.Refusal{{Name: name, Action: profile.Reading, Object: "/srv/a", Allow: `read = ["/srv/a"]`}}, nil
}

func TestRefusalsOfAnUpstream(t *testing.T) {
	t.Parallel()
	s, _ := upstreamServerWith(t, wire{})
	got := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/fixed/refusals", "")
	if raw, _ := json.Marshal(got); !strings.Contains(string(raw), `"allow":"read = [\"/srv/a\"]"`) {
		t.Errorf("%s", raw)
	}
	expect(t, s, http.StatusNotFound, "GET", "/api/v1/upstreams/nobody/refusals", "")
}

func TestConnectionsOfAnUpstream(t *testing.T) {
	t.Parallel()
	s, _ := upstreamServerWith(t, wire{})
	got := expect(t, s, http.StatusOK, "GET", "/api/v1/upstreams/fixed/connections", "")
	if raw, _ := json.Marshal(got); !strings.Contains(string(raw), `"host":"evil.example"`) || !strings.Contains(string(raw), `"hosts":[]`) {
		t.Errorf("%s", raw)
	}
	expect(t, s, http.StatusNotFound, "GET", "/api/v1/upstreams/nobody/connections", "")
}
