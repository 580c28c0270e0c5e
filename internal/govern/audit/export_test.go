package audit_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// collector stores the records that it gets.
type collector struct {
	slog.Handler
	mu      sync.Mutex
	records []map[string]string
	traces  []string
}

func (c *collector) Handle(ctx context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fields := map[string]string{"level": r.Level.String(), "message": r.Message}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.String()
		return true
	})
	c.records, c.traces = append(c.records, fields), append(c.traces, trace.SpanContextFromContext(ctx).TraceID().String())
	return nil
}

// Entries are exported after they are stored, with their place in the chain and in the
// trace that they belong to.
func TestExport(t *testing.T) {
	t.Parallel()
	c := &collector{}
	l := opened(t, dbtest.Open(t, dbtest.SQLite(t)), audit.Options{Node: "a", Export: c})
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := principal.With(trace.ContextWithSpanContext(t.Context(), span), principal.Principal{ID: "key:web", Name: "web", Org: "acme", Person: "acme/ada", Grant: "g-1", Client: "An app"})
	l.RecordAction(ctx, "key.created", "ci", nil)
	l.RecordLogin(t.Context(), "login", "127.0.0.1", false)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := l.Store.Find(t.Context(), audit.Filter{Node: "a"})
	if err != nil || len(stored) != 2 || len(c.records) != 2 {
		t.Fatalf("%d entries (%v), exported %v", len(stored), err, c.records)
	}
	first, second := c.records[0], c.records[1]
	for key, want := range map[string]string{
		"level": "INFO", "message": "audit: key.created ci", "audit.who": "key:web", "audit.org": "acme", "audit.for": "acme/ada", "audit.by": "An app", "audit.grant": "g-1",
		"audit.node": "a", "audit.seq": "1", "audit.hash": stored[0].Hash, "audit.decision": "allow",
	} {
		if first[key] != want {
			t.Errorf("%s is %q, want %q", key, first[key], want)
		}
	}
	if second["level"] != "WARN" || second["audit.prev"] != stored[0].Hash || c.traces[0] != span.TraceID().String() {
		t.Errorf("%v in %v", second, c.traces)
	}
}
