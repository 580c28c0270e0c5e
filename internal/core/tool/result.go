package tool

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Result is a tool's result: an MCP CallToolResult object as JSON. It is not parsed, so
// that relaying it costs nothing and loses nothing; View parses it.
type Result struct {
	Raw json.RawMessage
	// Task is the id of a task that continues, if Raw only confirms its start. Clients
	// that support tasks get the task.
	Task string
}

// View is a parsed Result.
type View struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError,omitempty"`
	Meta       json.RawMessage   `json:"_meta,omitempty"`
}

// View parses the result. Blocks of unknown type stay as they are.
func (r Result) View() (View, error) {
	var v View
	if len(r.Raw) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(r.Raw, &v); err != nil {
		return v, fault.Wrap(fault.Upstream, err, "read tool result")
	}
	return v, nil
}

// Text joins the text blocks with newlines.
func (v View) Text() string {
	var parts []string
	for _, raw := range v.Content {
		var block struct{ Type, Text string }
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" {
			parts = append(parts, block.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Value returns the result as one JSON value, for scripts: the structured content if
// there is any, else the text if it is a JSON object or array, else the text as a string;
// with blocks that are not text, the list of blocks; null without any block.
func (v View) Value() json.RawMessage {
	if len(v.Structured) > 0 && !bytes.Equal(v.Structured, []byte("null")) {
		return v.Structured
	}
	for _, raw := range v.Content {
		var block struct{ Type string }
		if json.Unmarshal(raw, &block) != nil || block.Type != "text" {
			blocks, err := Encode(v.Content)
			if err != nil {
				return json.RawMessage("null")
			}
			return blocks
		}
	}
	if len(v.Content) == 0 {
		return json.RawMessage("null")
	}
	text := v.Text()
	trimmed := strings.Trim(text, " \t\r\n")
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if json.Valid([]byte(trimmed)) {
			return json.RawMessage(trimmed)
		}
	}
	quoted, err := Encode(text)
	if err != nil {
		return json.RawMessage("null")
	}
	return quoted
}

// Output returns a successful result with a text for people and, if data is not nil,
// the same as data for programs.
func Output(text string, data any) (Result, error) {
	v := View{Content: []json.RawMessage{textBlock(text)}}
	if data != nil {
		raw, err := Encode(data)
		if err != nil {
			return Result{}, fault.Wrap(fault.Internal, err, "encode tool result")
		}
		v.Structured = raw
	}
	return v.result()
}

// ErrorKey is the key of the fault in a failed result's _meta. The fault is not
// structured content, because clients check that against the tool's output schema even
// if the tool failed.
const ErrorKey = "luanette/error"

// Failure returns the result of a tool that ran and failed, in the form of all
// endpoints: message and hint as text, the fault as data in _meta.
func Failure(err error) Result {
	f := fault.From(err)
	text := string(f.Code) + ": " + f.Error()
	if hint := fault.HintOf(f); hint != "" {
		text += "\n" + hint
	}
	v := View{Content: []json.RawMessage{textBlock(text)}, IsError: true}
	if raw, err := Encode(map[string]any{ErrorKey: f}); err == nil {
		v.Meta = raw
	}
	r, _ := v.result() // a View of valid JSON always encodes
	return r
}

// Failed returns the result of a tool that ran and failed with this text.
func Failed(text string) Result {
	r, _ := View{Content: []json.RawMessage{textBlock(text)}, IsError: true}.result() // valid JSON always encodes
	return r
}

func (v View) result() (Result, error) {
	raw, err := Encode(v)
	if err != nil {
		return Result{}, fault.Wrap(fault.Internal, err, "encode tool result")
	}
	return Result{Raw: raw}, nil
}

func textBlock(text string) json.RawMessage {
	raw, _ := Encode(map[string]string{"type": "text", "text": text}) // strings always encode
	return raw
}

// Encode returns JSON without the escapes for HTML: < stays one byte, which is easier
// to read and costs models fewer tokens.
func Encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
