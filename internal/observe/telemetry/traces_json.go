package telemetry

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
)

// JSON returns a trace with its spans. It returns fault.NotFound if it is not stored.
func (t *Traces) JSON(id string) (json.RawMessage, error) {
	found, ok := t.Get(id)
	if !ok {
		return nil, fault.New(fault.NotFound, "no trace %q", id).
			WithHint("the id has 32 hex digits; only the latest traces are stored, see hud.recent_traces")
	}
	if found.Spans == nil {
		found.Spans = []Span{}
	}
	return json.Marshal(found)
}
