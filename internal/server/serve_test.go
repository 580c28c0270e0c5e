package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	idle := []goleak.Option{goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop")}
	goleak.VerifyTestMain(clocktest.Settled(everyTest{m}, idle...), idle...)
}

// everyTest runs the tests, and then ends what they share.
type everyTest struct{ *testing.M }

func (m everyTest) Run() int {
	code := m.M.Run()
	for _, end := range slices.Backward(shared.ends) {
		end()
	}
	return code
}

// shared is the test to which the server of all tests belongs. It outlives the others.
var shared = &sharedTest{}

type sharedTest struct {
	testing.TB
	once sync.Once
	url  string
	srv  *Server
	ends []func()
}

func (*sharedTest) Helper()                  {}
func (*sharedTest) Context() context.Context { return context.Background() }
func (s *sharedTest) Cleanup(end func())     { s.ends = append(s.ends, end) }

func (s *sharedTest) TempDir() string {
	folder, err := os.MkdirTemp("", "luanette-server-")
	s.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err != nil {
		s.Fatal(err)
	}
	return folder
}

// startShared returns a server with the default settings that all tests share: they call it and
// make things of their own, and change nothing that others see.
func startShared(t testing.TB) (url string, srv *Server) {
	t.Helper()
	shared.once.Do(func() {
		shared.TB = t
		shared.url, shared.srv = start(shared, config.Sources{})
	})
	if shared.srv == nil {
		t.Fatal("the shared server did not start")
	}
	return shared.url, shared.srv
}

// startOutput collects standard error and sends the URL of the server when it listens.
type startOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	url  chan string
	once sync.Once
}

func (b *startOutput) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var listening = regexp.MustCompile(`is listening on (\S+)`)

func (b *startOutput) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	if m := listening.FindSubmatch(b.text.Bytes()); m != nil {
		b.once.Do(func() { b.url <- string(m[1]) })
	}
	return len(p), nil
}

// tables is an empty database of a server, of which tests get copies.
var tables = dbtest.NewTemplate(dbtest.AllTables(knownMigrations(), func(ctx context.Context, d *db.DB) error {
	_, err := artifact.Open(ctx, d, nil, artifact.Options{}) // creates the index of words
	return errors.Join(err, job.CreateTables(ctx, d))
}))

// start runs a server until the test ends and returns its URL. The change functions may
// change its options before it is built.
func start(t testing.TB, sources config.Sources, change ...func(*Options)) (url string, srv *Server) {
	t.Helper()
	url, srv, _ = startStoppable(t, sources, change...)
	return url, srv
}

// startStoppable is start, and returns what stops the server as a signal does, and waits.
func startStoppable(t testing.TB, sources config.Sources, change ...func(*Options)) (url string, srv *Server, end func()) {
	t.Helper()
	if sources.Flags == nil {
		sources.Flags = map[string]string{}
	}
	sources.Flags["listen"] = "127.0.0.1:0"
	sources.Flags["data"] = t.TempDir()
	if sources.Flags["scripts.cache"] == "" {
		sources.Flags["scripts.cache"] = jstest.Cache()
	}
	loaded, err := config.Load(sources)
	if err == nil && loaded.Origins["local"] == "" { // guests_test.go is about guests: elsewhere whoever asks is the owner
		sources.Flags["local"] = string(owner.AsOwner)
		loaded, err = config.Load(sources)
	}
	if err == nil && loaded.Origins["scripts.code_timeout"] == "" { // the default is too short for a busy machine
		sources.Flags["scripts.code_timeout"] = "30s"
		loaded, err = config.Load(sources)
	}
	if err != nil {
		t.Fatal(err)
	}
	if path := db.PathOf(loaded.Database); path != "" {
		if _, err := os.Stat(path); err != nil {
			tables.WriteFile(t, path)
		}
	}
	stderr := &startOutput{url: make(chan string, 1)}
	options := Options{Version: "test", Stderr: stderr, Env: sources.Env, Jobs: true}
	for _, alter := range change {
		alter(&options)
	}
	srv, err = Build(t.Context(), loaded, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(end)
	select {
	case url = <-stderr.url:
		return url, srv, end
	case err := <-ended:
		t.Fatalf("Serve: %v\n%s", err, &stderr.text)
		return "", nil, nil
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	url, _ := startShared(t)
	answer, body := httpjsontest.Read(t, http.MethodGet, url+"/health", "")
	var health struct {
		Status  string
		Version string
		Uptime  *int64 `json:"uptime_secs"`

		Sessions struct{ Total, Connected *int }
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %v", answer.Status, body, err)
	}
	if health.Status != "healthy" || health.Version != "test" || health.Uptime == nil ||
		health.Sessions.Total == nil || health.Sessions.Connected == nil {
		t.Errorf("health = %s", body)
	}
	for _, path := range []string{"/nothing", "/register", "/.well-known/openid-configuration"} {
		if answer, body := httpjsontest.Read(t, http.MethodGet, url+path, ""); answer.StatusCode != http.StatusNotFound || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
}

func TestRequestSpans(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	url, _ := start(t, config.Sources{Flags: map[string]string{"telemetry.otlp_endpoint": sink.HTTP}})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	httpjsontest.Read(t, http.MethodGet, url+"/health", "", "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	span := sink.AwaitSpan(t, "GET /health")
	if got := span.TraceID; !strings.EqualFold(got, trace) {
		t.Errorf("the span's trace is %s, want the client's %s", got, trace)
	}
}

func TestUnreachableCollector(t *testing.T) {
	t.Parallel()
	url, _ := start(t, config.Sources{Flags: map[string]string{"telemetry.otlp_endpoint": "http://127.0.0.1:1"}})
	for range 20 {
		if answer, _ := httpjsontest.Read(t, http.MethodGet, url+"/health", ""); answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
	}
}

func TestReloadReconnectsOnlyChangedUpstreams(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "[upstreams.a]\nurl = \"http://127.0.0.1:1/a\"\n[upstreams.b]\nurl = \"http://127.0.0.1:1/b\"\n")
	_, srv := start(t, config.Sources{File: file})
	before, _ := srv.upstreams.Manager.Status("a")
	configtest.ReplaceFile(t, file, "[upstreams.a]\nurl = \"http://127.0.0.1:1/a\"\n[upstreams.c]\nurl = \"http://127.0.0.1:1/c\"\n")
	clocktest.Await(t, func() bool { return strings.Join(srv.upstreams.Namespaces(), " ") == "a c" })
	if after, _ := srv.upstreams.Manager.Status("a"); after.Generation != before.Generation {
		t.Error("an upstream that did not change was reconnected")
	}
	configtest.ReplaceFile(t, file, "[upstreams.c]\nurl = 7\n")
	srv.Reload(t.Context())
	if got := strings.Join(srv.upstreams.Namespaces(), " "); got != "a c" {
		t.Errorf("an invalid file changed the upstreams to %s", got)
	}
}

// TestConfiguredUpstreamIsNotReplaced checks that a configured upstream can be removed and
// added again, but not with another URL.
func TestConfiguredUpstreamIsNotReplaced(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "[upstreams.a]\nurl = \"http://127.0.0.1:1/a\"\nexpose = \"all\"\n")
	_, srv := start(t, config.Sources{File: file})
	before, _ := srv.upstreams.Manager.Status("a")
	if removed, err := srv.upstreams.Remove(t.Context(), "a"); !removed || err != nil {
		t.Fatalf("Remove = %v, %v", removed, err)
	}
	if err := srv.upstreams.Add(t.Context(), "a", upstream.Settings{URL: "http://127.0.0.1:1/evil"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("added with another URL: %v", err)
	}
	if err := srv.upstreams.Add(t.Context(), "a", upstream.Settings{URL: "http://127.0.0.1:1/a"}); err != nil {
		t.Fatal(err)
	}
	after, ok := srv.upstreams.Manager.Status("a")
	if !ok || !reflect.DeepEqual(after.Desired, before.Desired) {
		t.Errorf("added again as %+v, want %+v", after.Desired, before.Desired)
	}
}

// TestReloadOfAnImport checks that a reload logs unset variables, and that an invalid server
// does not prevent the others.
func TestReloadOfAnImport(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "[mcp]\nimport = [\"servers.json\"]\n")
	servers := filepath.Join(filepath.Dir(file), "servers.json")
	configtest.ReplaceFile(t, servers, `{"mcpServers": {}}`)
	_, srv := start(t, config.Sources{File: file})
	configtest.ReplaceFile(t, servers, `{"mcpServers": {
		"good": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "${NOT_SET}"}}, // a comment
		"none": {},
	}}`)
	clocktest.Await(t, func() bool { return strings.Join(srv.upstreams.Namespaces(), " ") == "good" })
	stderr := srv.options.Stderr.(*startOutput)
	clocktest.Await(t, func() bool { return strings.Contains(stderr.String(), "NOT_SET") })
}

// TestImportAddedLaterIsWatched checks that an import added to a running server is watched,
// even if its file is created later.
func TestImportAddedLaterIsWatched(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "")
	_, srv := start(t, config.Sources{File: file})
	servers := filepath.Join(t.TempDir(), "servers.json")
	configtest.ReplaceFile(t, file, "[mcp]\nimport = ["+strconv.Quote(servers)+"]\n")
	stderr := srv.options.Stderr.(*startOutput)
	clocktest.Await(t, func() bool { return strings.Contains(stderr.String(), "configuration reloaded") })
	for _, name := range []string{"one", "two"} {
		configtest.ReplaceFile(t, servers, `{"mcpServers": {"`+name+`": {"url": "http://127.0.0.1:1/mcp"}}}`)
		clocktest.Await(t, func() bool { return strings.Join(srv.upstreams.Namespaces(), " ") == name })
	}
}

// TestFileCreatedLaterIsRead checks that a server that started without a file reads the
// user's file once it is created.
func TestFileCreatedLaterIsRead(t *testing.T) {
	t.Parallel()
	env := config.Environment{"HOME": t.TempDir()}
	_, srv := start(t, config.Sources{Env: env})
	if _, err := config.AddUpstream(t.Context(), config.Sources{Env: env}, config.NewUpstream{Name: "late", Entry: config.Upstream{URL: "http://127.0.0.1:1/mcp"}}); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return strings.Join(srv.upstreams.Namespaces(), " ") == "late" })
}
