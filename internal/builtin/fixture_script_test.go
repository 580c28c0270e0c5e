package builtin_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/results"
)

// scriptFixture runs, stores and publishes scripts.
type scriptFixture struct {
	runner    *script.Runner
	scripts   *artifact.Store
	published *publish.Published
	sessions  *session.Sessions
	results   *results.Store
}

// javaScript is one engine for all tests: compiling it is the expensive part.
var javaScript = sync.OnceValue(func() *script.JavaScriptEngine {
	e, err := script.NewJavaScript(script.JavaScriptOptions{CacheDir: jstest.Cache()})
	if err != nil {
		panic(err)
	}
	return e
})

func newStudy(t *testing.T, c *catalog.Catalog) scriptFixture {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	database, err := db.Open(t.Context(), dbtest.Fresh(t), db.Options{})
	must(err)
	t.Cleanup(func() { _ = database.Close() })
	blobs, err := cas.OpenDir(t.TempDir(), cas.DirOptions{})
	must(err)
	scripts, err := artifact.Open(t.Context(), database, blobs, artifact.Options{})
	must(err)
	stored, err := results.Open(t.Context(), database, results.Options{})
	must(err)
	t.Cleanup(stored.Close)
	runner := script.NewRunner(script.Options{
		Tools: c, Events: event.New(event.BusOptions{}), Log: slog.New(slog.DiscardHandler), Clock: clock.Real(), TempDir: t.TempDir(),
		JavaScript: javaScript(), Language: func(ctx context.Context, hash cas.Ref) string {
			a, _ := scripts.Get(ctx, hash)
			return script.LanguageOf(a.MIME)
		},
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: metricnoop.NewMeterProvider().Meter(""),
	})
	published, err := publish.Open(t.Context(), database, runner, scripts, publish.Options{
		Reserved: func(name string) bool { return name == "lua_eval" }, Changed: c.Refresh,
	})
	must(err)
	sessions, err := session.Open(t.Context(), database, runner, session.Options{})
	must(err)
	return scriptFixture{runner, scripts, published, sessions, stored}
}
