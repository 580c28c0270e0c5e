package catalog_test

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func BenchmarkCall(b *testing.B) {
	result, err := tool.Output("done", map[string]int{"n": 1})
	if err != nil {
		b.Fatal(err)
	}
	instant := func(context.Context, tool.Call) (tool.Result, error) { return result, nil }
	plain := `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`
	m := manyTools(10_000, 100).with("fs", "plain", plain, instant).with("fs", "elaborate", searchSchema, instant)
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Mode: event.Latest})
	defer sub.Close()
	c := open(catalog.Options{Bus: bus}, quiet{m})
	for name, args := range map[string]string{
		"plain":     `{"path":"hello","limit":3,"tags":["a","b"]}`,
		"elaborate": `{"query":"hello","limit":3,"filter":{"tags":["a","b"]}}`,
	} {
		made := call("fs", name, args)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Call(b.Context(), made); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// quiet is a source that does not record its calls.
type quiet struct{ *memory }

func (q quiet) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return q.answers[call.Ref](ctx, call)
}
