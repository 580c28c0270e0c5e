package script

import (
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/cas"
	"github.com/luanette/luanette/internal/redact"
)

// spanAttributes names the script, who runs it, and its parameters, bounded so
// that a large parameter cannot fill a trace.
func spanAttributes(q Request) []attribute.KeyValue {
	hash := q.Hash
	if hash == (cas.Ref{}) {
		hash = cas.Sum([]byte(q.Source))
	}
	attributes := []attribute.KeyValue{attribute.String("script.name", q.name()), attribute.String("script.hash", hash.String())}
	switch {
	case q.Creator != "":
		attributes = append(attributes, attribute.String("script.creator", q.Creator))
	case q.Caller != nil && q.Caller.ID != "":
		attributes = append(attributes, attribute.String("script.creator", q.Caller.ID))
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(q.Params, &params) == nil {
		for key, value := range params {
			attributes = append(attributes, paramAttribute("script.params."+key, value))
		}
	}
	return attributes
}

// paramAttribute keeps the kind of plain values; others are JSON. What sounds
// secret is not told.
func paramAttribute(key string, raw json.RawMessage) attribute.KeyValue {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		value = nil
	}
	switch value := value.(type) {
	case string:
		if redact.Secret(key) {
			return attribute.String(key, redact.Hidden)
		}
		return attribute.String(key, shorten(value, 200))
	case bool:
		return attribute.Bool(key, value)
	case float64:
		var whole int64
		if json.Unmarshal(raw, &whole) == nil {
			return attribute.Int64(key, whole)
		}
		return attribute.Float64(key, value)
	default:
		return attribute.String(key, shorten(redact.JSON(raw), 200))
	}
}
