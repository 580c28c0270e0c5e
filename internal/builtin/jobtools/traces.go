package jobtools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// TraceStore has the recent traces as JSON objects.
type TraceStore interface {
	// JSON returns a trace with its spans. It returns fault.NotFound if it is not stored.
	JSON(ctx context.Context, id string) (json.RawMessage, error)
}

// Traces makes the tool that reads traces.
func Traces(s TraceStore) []toolset.Tool {
	return []toolset.Tool{toolset.DefineResult[traceIn, TraceView](texts, "trace_get", tool.Hints{ReadOnly: true, ClosedWorld: true}, traceTools{s}.get)}
}

// TraceResources makes the resource that shows a trace.
func TraceResources(s TraceStore) []builtin.Resource {
	t := traceTools{s}
	return []builtin.Resource{{URI: "lua://traces/{id}", Name: "trace", Title: "A trace", MIMEType: "application/json",
		Description: "The spans of a recent request or job",
		Read: func(ctx context.Context, id string) (string, error) {
			return builtin.AsJSON(t.read(ctx, id))
		}}}
}

type traceTools struct{ store TraceStore }

type traceIn struct {
	TraceID string `json:"trace_id" jsonschema:"32 hex digits" min:"1" max:"64"`
}

// TraceView is the result of trace_get, without the details of spans.
type TraceView struct {
	TraceID   string      `json:"trace_id"`
	Name      string      `json:"name" jsonschema:"of the first span"`
	Failed    bool        `json:"failed" jsonschema:"true if a span has an error"`
	SpanCount int         `json:"span_count"`
	Spans     []TraceSpan `json:"spans" jsonschema:"in the order they began"`
}

// TraceSpan is one operation of a trace. It also has its attributes, events, and links to
// spans of other traces.
type TraceSpan struct {
	SpanID     string `json:"span_id"`
	ParentID   string `json:"parent_id,omitempty" jsonschema:"the span that it is part of"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Start      string `json:"start" jsonschema:"time, as in RFC 3339"`
	DurationNS int64  `json:"duration_ns"`
	Error      string `json:"error,omitempty"`
}

// read returns what the caller sees of a trace.
func (t traceTools) read(ctx context.Context, id string) (json.RawMessage, error) {
	if who := principal.Of(ctx); !who.May(principal.Read, "") {
		return nil, fault.New(fault.Denied, "%s may not read traces", who.Title()).WithHint("traces need a key with the scope read")
	}
	return t.store.JSON(ctx, strings.ToLower(strings.TrimSpace(id)))
}

func (t traceTools) get(ctx context.Context, _ tool.Call, in traceIn) (tool.Result, error) {
	raw, err := t.read(ctx, in.TraceID)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Output(string(raw), raw)
}
