package telemetry

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

// TestTracesBelongToTheirOwner checks a trace in which two people have spans, because one
// sent the trace id of the other.
func TestTracesBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	tel := setupInMemory(t, Options{RecentTraces: 5})
	as := func(ctx context.Context, id, org string, scopes ...principal.Scope) context.Context {
		return principal.With(ctx, principal.Principal{ID: id, Org: org, Scopes: scopes})
	}
	ctx, root := tel.Tracer("x").Start(as(t.Context(), "person:ada", "acme"), "of ada")
	_, theirs := tel.Tracer("x").Start(as(ctx, "person:bob", "acme"), "of bob")
	theirs.End()
	root.End()
	_, own := tel.Tracer("x").Start(t.Context(), "of the program")
	own.End()
	id := root.SpanContext().TraceID().String()
	for name, tt := range map[string]struct {
		ctx    context.Context
		traces int
		spans  int
		title  string
	}{
		"ada":           {as(t.Context(), "person:ada", "acme"), 1, 1, "of ada"},
		"bob":           {as(t.Context(), "person:bob", "acme"), 1, 1, "of bob"},
		"eve":           {as(t.Context(), "person:eve", "acme"), 0, 0, ""},
		"the org":       {as(t.Context(), "key:acme", "acme", principal.Org), 1, 2, "of ada"},
		"another org":   {as(t.Context(), "key:other", "other", principal.Admin), 0, 0, ""},
		"ada elsewhere": {as(t.Context(), "person:ada", "other"), 0, 0, ""},
		"the owner":     {t.Context(), 2, 2, "of ada"},
	} {
		got, found := tel.Traces().Get(tt.ctx, id)
		if list := tel.Traces().List(tt.ctx, 10); len(list) != tt.traces || found != (tt.spans > 0) || got.Count != tt.spans || len(got.Spans) != tt.spans || got.Name != tt.title {
			t.Errorf("%s sees %d traces, and of one %+v", name, len(list), got)
		}
		if _, err := tel.Traces().JSON(tt.ctx, id); (err == nil) != found {
			t.Errorf("%s, as JSON: %v", name, err)
		}
	}
}
