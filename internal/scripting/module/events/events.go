// Package events is the events module of scripts: on(type, fn) subscribes to events of
// the server, emit(type, data) publishes events. Handlers run in the script's own state,
// while it waits for events.
package events

import (
	"context"
	"embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed events.md prelude.lua prelude.js
var files embed.FS

// Module is the global events, and on and emit.
func Module() host.Module {
	return host.Module{Name: "events", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "__want", Hidden: true, Kind: host.Observe, Effect: host.Bind(want)},
		{Name: "__hook", Hidden: true, Kind: host.Read, Effect: host.Bind(hook)},
		{Name: "__next", Hidden: true, Kind: host.Nondeterministic, Effect: host.Bind(next), Waits: true},
		{Name: "emit", Kind: host.Write, Effect: emit, Check: checkEmit, Action: host.Does("emit", 1)},
	}}
}

// want(type) subscribes to one more type of events.
func want(ctx context.Context, w *host.Services, kind string) error {
	if !event.Exists(kind) {
		return unknownType(kind)
	}
	return w.Listener.Subscribe(ctx, kind)
}

func unknownType(kind string) error {
	err := fault.New(fault.InvalidParams, "on: there are no events of type %q", kind)
	if near := suggest.Names(kind, event.Types(), 3); len(near) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return err.WithHint("the types are %s, and those of scripts, such as script.mix.done", strings.Join(event.Types(), ", "))
}

// eventView is an event as handlers get it.
type eventView struct {
	Type string `json:"type"`
	Seq  uint64 `json:"seq"`
	Time int64  `json:"time"` // milliseconds since 1970
	Data any    `json:"data"`
}

// next(milliseconds) waits for an event; a negative timeout means no timeout. It returns
// no values if none arrived.
func next(ctx context.Context, w *host.Services, milliseconds float64) ([]host.Value, error) {
	e, ok, err := w.Listener.Next(ctx, w.Clock, time.Duration(milliseconds*float64(time.Millisecond)))
	if err != nil || !ok {
		return nil, err
	}
	table, err := Table(e)
	return []host.Value{table}, err
}

// Table returns an event as handlers get it.
func Table(e event.Event) (host.Value, error) {
	return host.Table(eventView{Type: e.Type, Seq: e.Seq, Time: e.Time.UnixMilli(), Data: e.Data})
}

// hook() returns an error if hooks cannot be set in this run.
func hook(w *host.Services) error {
	if !w.Resident {
		return fault.New(fault.Denied, "on: hooks are set in startup.lua only").
			WithHint("other scripts can receive events of calls with on(\"tool.*\", fn)")
	}
	return nil
}

// Emitted is an event that a script published.
type Emitted struct {
	kind string
	data json.RawMessage
}

// EventType returns the type that the script gave.
func (s Emitted) EventType() string { return s.kind }

// MarshalJSON returns the data that the script gave.
func (s Emitted) MarshalJSON() ([]byte, error) { return s.data, nil }

var scriptType = lazyregexp.New(`^script(\.[A-Za-z0-9_-]+)+$`)

// emit(type, data) publishes an event of a script.
func emit(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	kind, err := emitted(args)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(args.At(2))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "emit: %v", err)
	}
	w.Events.PublishFor(principal.OwnerOf(ctx), Emitted{kind: kind, data: data})
	return nil, nil
}

func checkEmit(_ context.Context, _ *host.Services, args host.Args) error {
	_, err := emitted(args)
	return err
}

// emitted reads the type of the event that emit publishes.
func emitted(args host.Args) (string, error) {
	kind, err := args.String(1)
	if err == nil && !scriptType().MatchString(kind) {
		err = fault.New(fault.InvalidParams, "emit: scripts may not publish events of type %q", kind).
			WithHint("the type must begin with \"script.\", such as \"script.mix.done\"")
	}
	return kind, err
}
