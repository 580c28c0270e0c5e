package telemetry

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
)

// JSON returns a trace with the spans that the principal of ctx sees. It returns
// fault.NotFound if it is not stored, or not theirs.
func (t *Traces) JSON(ctx context.Context, id string) (json.RawMessage, error) {
	found, ok := t.Get(ctx, id)
	if !ok {
		return nil, fault.New(fault.NotFound, "no trace %q", id).
			WithHint("the id has 32 hex digits; only the latest traces are stored, see hud.recent_traces")
	}
	if found.Spans == nil {
		found.Spans = []Span{}
	}
	return json.Marshal(found)
}
