package host

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
)

// Inspection is a Handler for inspecting a script, as when describe() is called. Nothing
// reaches the world: what scripts usually do at their top level (names of tools, the time,
// variables, temp paths, spans) is answered neutrally, everything else is refused. It is
// safe for concurrent use.
type Inspection struct {
	deny   denyHandler
	varied atomic.Bool
}

// NewInspection makes an Inspection; doing says in errors why an effect is refused.
func NewInspection(doing string) *Inspection { return &Inspection{deny: denyHandler{doing}} }

// Varied reports whether the script used something that may be different the next time:
// the time, or an environment variable.
func (i *Inspection) Varied() bool { return i.varied.Load() }

// Handle answers the effect without a change.
func (i *Inspection) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch e.Name {
	case seedEffect:
		return []Value{int64(1)}, nil
	case "clock.now", "clock.advance", "os.__now", "os.getenv":
		i.varied.Store(true)
		return live(ctx)
	case "mcp.globals", "parallel.land":
		return live(ctx)
	}
	if e.Kind == Observe {
		return nil, nil
	}
	if values, ok := neutral(e); ok {
		return values, nil
	}
	return i.deny.Handle(ctx, e, live)
}

// neutral answers an effect that only asks, as if every tool existed and nothing was
// traced.
func neutral(e Effect) ([]Value, bool) {
	switch e.Name {
	case "mcp.has":
		return []Value{true}, true
	case "mcp.namespaces", "mcp.tools":
		return []Value{json.RawMessage("[]")}, true
	case "clock.sleep":
		return nil, true
	case "temp.dir":
		return []Value{"temp"}, true
	case "temp.path":
		name, ok := argument(e, 0).(string)
		return []Value{"temp/" + name}, ok
	case "otel.trace_id":
		return []Value{strings.Repeat("0", 32)}, true
	case "otel.span_id":
		return []Value{strings.Repeat("0", 16)}, true
	case "otel.traceparent":
		return []Value{"00-" + strings.Repeat("0", 32) + "-" + strings.Repeat("0", 16) + "-00"}, true
	default:
		return nil, false
	}
}

var _ Handler = (*Inspection)(nil)
