package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// RevertKey is the key in a tool's _meta under which it declares its Revert.
const RevertKey = "luanette/revert"

// Revert says how a call of a tool can be undone: by another tool, with arguments made of
// the call's.
type Revert struct {
	Tool string `json:"tool"` // the other tool's name in the same namespace
	// Arguments are those of the other tool. A text that is "$arguments" or "$result", or
	// begins with that and a slash, stands for the call's arguments or result, or for the
	// part that the JSON pointer selects; * in it stands for every item of a list. Another
	// text that begins with $$ loses the first.
	Arguments json.RawMessage `json:"arguments"`
}

// Revert returns how the tool declares that its calls can be undone.
func (i *Info) Revert() (r Revert, ok bool) {
	var definition struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if !bytes.Contains(i.Raw, []byte(RevertKey)) || json.Unmarshal(i.Raw, &definition) != nil {
		return r, false
	}
	declared := definition.Meta[RevertKey]
	return r, len(declared) > 0 && json.Unmarshal(declared, &r) == nil && r.Tool != ""
}

// Fill returns the arguments with which the other tool undoes one call.
func (r Revert) Fill(arguments, result json.RawMessage) (json.RawMessage, error) {
	if len(r.Arguments) == 0 {
		return json.RawMessage("{}"), nil
	}
	template, err := decode(r.Arguments)
	if err != nil {
		return nil, fmt.Errorf("revert arguments: %w", err)
	}
	filled, err := fill(template, map[string]json.RawMessage{"$arguments": arguments, "$result": result})
	if err != nil {
		return nil, err
	}
	if _, object := filled.(map[string]any); !object {
		return nil, fmt.Errorf("revert arguments: not an object")
	}
	return Encode(filled)
}

// decode decodes a value; numbers keep their digits.
func decode(raw json.RawMessage) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}

// fill replaces the texts in a template that stand for parts of the call.
func fill(template any, call map[string]json.RawMessage) (any, error) {
	var err error
	switch t := template.(type) {
	case map[string]any:
		for key := range t {
			if t[key], err = fill(t[key], call); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range t {
			if t[i], err = fill(t[i], call); err != nil {
				return nil, err
			}
		}
	case string:
		return fillText(t, call)
	}
	return template, nil
}

func fillText(text string, call map[string]json.RawMessage) (any, error) {
	name, pointer, _ := strings.Cut(text, "/")
	raw, known := call[name]
	switch {
	case strings.HasPrefix(text, "$$"):
		return text[1:], nil
	case !known:
		return text, nil
	case raw == nil:
		return nil, fmt.Errorf("%s of the call is not known", strings.TrimPrefix(name, "$"))
	}
	value, err := decode(raw)
	if err != nil || name == text {
		return value, err
	}
	found, ok := part(value, strings.Split(pointer, "/"))
	if !ok {
		return nil, fmt.Errorf("the call has no %s", text)
	}
	return found, nil
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// part returns the part of a value that the tokens of a JSON pointer select.
func part(value any, tokens []string) (any, bool) {
	if len(tokens) == 0 {
		return value, true
	}
	token, rest := pointerEscapes.Replace(tokens[0]), tokens[1:]
	switch v := value.(type) {
	case map[string]any:
		inner, ok := v[token]
		if !ok {
			return nil, false
		}
		return part(inner, rest)
	case []any:
		if token == "*" {
			return every(v, rest)
		}
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return part(v[i], rest)
		}
	}
	return nil, false
}

// every returns the part of each item.
func every(items []any, tokens []string) (any, bool) {
	parts := make([]any, len(items))
	for i, item := range items {
		var ok bool
		if parts[i], ok = part(item, tokens); !ok {
			return nil, false
		}
	}
	return parts, true
}
