package hub

import (
	"bytes"
	"encoding/json"
)

// canonical writes JSON with sorted keys and no space, numbers as they were
// written, so that equal values have equal bytes. What is no JSON stays as it is.
func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}
