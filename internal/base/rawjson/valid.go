package rawjson

import (
	"encoding/json"
	"fmt"
)

// Valid returns nil if data is one JSON value within MaxDepth, else why it is not.
func Valid(data []byte) error {
	t := text(data)
	end, err := t.value(t.space(0), 0)
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if err := t.end(end); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

// Depth returns how deeply the arrays and objects of a valid value nest.
func Depth(value json.RawMessage) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
