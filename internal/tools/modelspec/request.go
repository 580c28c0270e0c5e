package modelspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// Schema is the JSON schema of the tool's arguments, and of those in more, in the form
// that the strictest clients accept. more is a schema, too; nil means none.
func (s Spec) Schema(more json.RawMessage) (json.RawMessage, error) {
	schema := struct {
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
		Additional bool           `json:"additionalProperties"`
	}{Type: "object"}
	if more != nil {
		if err := json.Unmarshal(more, &schema); err != nil {
			return nil, err
		}
	}
	schema.Additional = false
	if schema.Properties == nil {
		schema.Properties = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		schema.Properties[name] = a.schema(name)
		if a.Required {
			schema.Required = append(schema.Required, name)
		}
	}
	if schema.Required == nil {
		schema.Required = []string{}
	}
	return json.Marshal(schema)
}

func (a Argument) schema(name string) map[string]any {
	about := cmp.Or(a.Description, strings.ReplaceAll(name, "_", " "))
	switch {
	case a.Type == midiContent:
		about += "; a MIDI file: its hash, or its artifact's id"
	case a.Type == audioContent:
		about += "; a WAV file: its hash, or its artifact's id"
	case a.Default != nil:
		about += fmt.Sprintf("; default %v", a.Default)
	}
	schema := map[string]any{"type": schemaTypes[a.Type], "description": about}
	if a.Type == "list" {
		schema["items"] = map[string]any{"type": "string"}
	}
	least, most := "minimum", "maximum"
	switch schemaTypes[a.Type] {
	case "string":
		least, most = "minLength", "maxLength"
	case "array":
		least, most = "minItems", "maxItems"
	}
	if a.Min != nil {
		schema[least] = *a.Min
	}
	if a.Max != nil {
		schema[most] = *a.Max
	}
	if len(a.Values) > 0 {
		schema["enum"] = a.Values
	}
	return schema
}

// Decode reads the arguments of a call and checks them. Arguments that the tool does not
// have are ignored.
func (s Spec) Decode(raw json.RawMessage) (map[string]any, error) {
	given := map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, err, "read the arguments")
		}
	}
	args := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		value, found := given[name]
		if !found || value == nil {
			if a.Required {
				return nil, fault.New(fault.InvalidParams, "the argument %s is missing", name).WithHint("%s", a.schema(name)["description"])
			}
			continue
		}
		value, err := a.value(name, value)
		if err != nil {
			return nil, err
		}
		args[name] = value
	}
	return args, nil
}

// value checks a value and returns it as it is sent.
func (a Argument) value(name string, v any) (any, error) {
	wrong := func() error {
		return fault.New(fault.InvalidParams, "%s: %v is no %s", name, v, a.Type).WithHint("give a %s", a.Type)
	}
	switch schemaTypes[a.Type] {
	case "boolean":
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, wrong()
	case "array":
		return a.list(name, v)
	case "string":
		text, ok := v.(string)
		if !ok {
			return nil, wrong()
		}
		return text, a.checkText(name, text)
	}
	n, ok := number(v)
	if !ok || a.Type == "integer" && n != math.Trunc(n) {
		return nil, wrong()
	}
	return n, a.checkNumber(name, n)
}

func (a Argument) checkNumber(name string, n float64) error {
	if a.Min != nil && n < *a.Min || a.Max != nil && n > *a.Max {
		return fault.New(fault.InvalidParams, "%s: %g is out of range", name, n).WithHint("give a number %s", a.span())
	}
	return nil
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64: // of a TOML file
		return float64(n), true
	}
	return 0, false
}

func (a Argument) checkText(name, text string) error {
	length := float64(utf8.RuneCountInString(text))
	switch {
	case a.Min != nil && length < *a.Min, a.Max != nil && length > *a.Max, a.Max == nil && len(text) > maxText:
		return fault.New(fault.InvalidParams, "%s has %g characters", name, length).WithHint("give %s", a.span())
	case len(a.Values) > 0 && !slices.Contains(a.Values, text):
		return fault.New(fault.InvalidParams, "%s: unknown value %.40q", name, text).WithHint("use %s", strings.Join(a.Values, ", "))
	}
	return nil
}

// span says how large a value may be.
func (a Argument) span() string {
	switch {
	case a.Min == nil && a.Max == nil:
		return fmt.Sprintf("at most %d", maxText)
	case a.Min == nil:
		return fmt.Sprintf("up to %g", *a.Max)
	case a.Max == nil:
		return fmt.Sprintf("from %g", *a.Min)
	}
	return fmt.Sprintf("from %g to %g", *a.Min, *a.Max)
}

// maxItems is the length of a list without max.
const maxItems = 256

func (a Argument) list(name string, v any) (any, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, fault.New(fault.InvalidParams, "%s is no list", name).WithHint("give a list of strings")
	}
	most := float64(maxItems)
	if a.Max != nil {
		most = *a.Max
	}
	if n := float64(len(items)); n > most || a.Min != nil && n < *a.Min {
		return nil, fault.New(fault.InvalidParams, "%s has %g items", name, n).WithHint("give at most %g", most)
	}
	for _, item := range items {
		if text, ok := item.(string); !ok || len(text) > maxText {
			return nil, fault.New(fault.InvalidParams, "%s: %.40v is no short string", name, item).WithHint("give a list of strings")
		}
	}
	return items, nil
}

// Request is the body of the request for decoded arguments. content returns a content in
// base64, as the argument's type requires.
func (s Spec) Request(args map[string]any, content func(kind, name string) (string, error)) (map[string]any, error) {
	request := maps.Clone(s.Send)
	if request == nil {
		request = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		a := s.Arguments[name]
		value, given := args[name]
		switch {
		case !given && a.Default == nil:
			continue
		case !given:
			value = a.Default
		case a.Content():
			text, err := content(a.Type, fmt.Sprint(value))
			if err != nil {
				return nil, err
			}
			value = text
		}
		request[cmp.Or(a.Field, name)] = value
	}
	return request, nil
}

// Contents returns the names of the contents among decoded arguments, in the order of the
// arguments' names.
func (s Spec) Contents(args map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		if text, ok := args[name].(string); ok && s.Arguments[name].Content() && text != "" {
			names = append(names, text)
		}
	}
	return names
}
