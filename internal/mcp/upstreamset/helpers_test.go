package upstreamset_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// unreachable is the address of no server: nothing listens on port 1.
const unreachable = "http://127.0.0.1:1/mcp"

// fixture is a set of upstreams with the parts that it connects.
type fixture struct {
	*upstreamset.Set
	t *testing.T

	mu      sync.Mutex
	log     bytes.Buffer
	audited []string
}

func (f *fixture) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

func (f *fixture) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// open opens a set as a node on that database does. key encrypts stored secrets.
func open(t *testing.T, database *db.DB, key string, persistent bool) *fixture {
	t.Helper()
	store, err := upstreamstore.Open(t.Context(), database, secret.Box{
		Key: func() (secret.Text, error) { return secret.New(key), nil }, RecoveryHint: "add it again",
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t}
	bus := event.New(event.BusOptions{})
	log := slog.New(slog.NewTextHandler(f, nil))
	manager := upstream.New(upstream.Options{Events: bus})
	t.Cleanup(func() { manager.Close(); bus.Close() })
	tools := overlay.New(manager, manager)
	f.Set, err = upstreamset.New(t.Context(), upstreamset.Options{
		Manager: manager, Overlay: tools, Store: store, Events: bus, Log: log, Persistent: persistent,
		Catalog: catalog.New(catalog.Options{Sources: []tool.Source{tools}, Bus: bus, Log: log, Private: upstreamset.IsPrivate}),
		Audit: func(_ context.Context, action, subject string, detail []byte) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.audited = append(f.audited, action+" "+subject+" "+string(detail))
		},
		Address:  func() string { return "http://hub.test" },
		Warnings: func(string) []string { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const key = "0123456789abcdef0123456789abcdef"

// openAlone opens a set that stores nothing.
func openAlone(t *testing.T) *fixture {
	t.Helper()
	return open(t, dbtest.Open(t, dbtest.SQLite(t)), key, false)
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// configure sets the upstreams of the configuration, by name and URL.
func (f *fixture) configure(servers map[string]string) {
	f.t.Helper()
	specs, places := []upstream.Spec{}, map[string]string{}
	for name, url := range servers {
		specs = append(specs, upstream.Spec{Name: name, Settings: upstream.Settings{URL: url}})
		places[name] = "luanette.toml:7"
	}
	f.must(f.Configure(specs, places, nil))
}

func (f *fixture) add(name, url string) error {
	return f.Add(f.t.Context(), name, upstream.Settings{URL: url})
}

// want checks the origin and the address of an upstream; "" means that there is none.
func (f *fixture) want(name, origin, url string) upstreamset.Status {
	f.t.Helper()
	status, ok := f.Status(name)
	if ok != (origin != "") || status.Origin != origin || status.Endpoint != url {
		f.t.Errorf("%s is %+v, want %q at %q", name, status, origin, url)
	}
	return status
}

// refused checks the code of an error, and what its text or its hint contains.
func refused(t *testing.T, err error, code fault.Code, text string) {
	t.Helper()
	if fault.CodeOf(err) != code || !strings.Contains(err.Error()+" "+fault.HintOf(err), text) {
		t.Errorf("error %v (%s, hint %q), want %s with %q", err, fault.CodeOf(err), fault.HintOf(err), code, text)
	}
}
