package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// toolbox is a source with many tools: calc.double, which answers at once, slow.wait, which
// answers when released is closed, and tools that are never called and come before them
// in the list.
type toolbox struct {
	infos    []tool.Info
	answer   tool.Result
	arrived  chan struct{} // a token for each call that waits
	released chan struct{} // closed to end the calls that wait
}

func newToolbox(count int) *toolbox {
	object := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	add := func(infos []tool.Info, space, name string) []tool.Info {
		return append(infos, tool.Info{Ref: tool.Ref{Space: space, Name: name}, Description: "does " + name, Input: object})
	}
	infos := add(add(nil, "calc", "double"), "slow", "wait")
	for i := range count - len(infos) {
		infos = add(infos, fmt.Sprintf("area%03d", i/100), fmt.Sprintf("tool%02d", i%100))
	}
	slices.SortFunc(infos, func(x, y tool.Info) int { return strings.Compare(x.String(), y.String()) })
	return &toolbox{
		infos:    infos,
		answer:   tool.Result{Raw: []byte(`{"content":[{"type":"text","text":"{\"n\":2}"}],"structuredContent":{"n":2}}`)},
		arrived:  make(chan struct{}),
		released: make(chan struct{}),
	}
}

func (b *toolbox) Tools(context.Context) ([]tool.Info, error) { return b.infos, nil }

func (b *toolbox) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if call.Ref.Space != "slow" {
		return b.answer, nil
	}
	b.arrived <- struct{}{}
	select {
	case <-b.released:
		return b.answer, nil
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

// newCatalog returns a catalog of the tools without limits.
func newCatalog(ctx context.Context, box *toolbox) *catalog.Catalog {
	c := catalog.New(catalog.Options{
		Sources: []tool.Source{box},
		Bus:     event.New(event.BusOptions{}),
		Limits:  func(string) catalog.Limits { return catalog.Limits{Concurrent: -1} },
	})
	c.Refresh(ctx)
	return c
}

func newRunner(tools tool.Source) *script.Runner {
	return script.NewRunner(script.Options{
		Tools:  tools,
		Events: event.New(event.BusOptions{}),
		Log:    slog.New(slog.DiscardHandler),
		Tracer: tracenoop.NewTracerProvider().Tracer(""),
		Meter:  metricnoop.NewMeterProvider().Meter(""),
		Clock:  clock.Real(),
		Limits: script.Limits{Calls: 1 << 40, Time: 1 << 40},
	})
}
