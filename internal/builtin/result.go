package builtin

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed result_read.md
var texts embed.FS

// DefaultShown is the number of bytes of a result that are shown to a model.
const DefaultShown = 32 << 10

// FullKey is the key in a call's _meta with which programs get complete results of
// any size.
const FullKey = "luanette/full"

// Results makes the tool that reads stored results.
func Results(k *results.Store, shown int) []toolset.Tool {
	t := resultTools{k, shown}
	return []toolset.Tool{toolset.Define(texts, "result_read", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.read)}
}

type resultTools struct {
	keeper *results.Store
	shown  int
}

type resultReadIn struct {
	Handle  string `json:"handle" jsonschema:"such as $r12" min:"2" max:"32"`
	Pointer string `json:"pointer,omitempty" jsonschema:"JSON pointer to a part of it, such as /items/0/name" max:"1000"`
	Skip    int    `json:"skip,omitempty" jsonschema:"number of items of a list or characters of a text to skip" min:"0"`
	Count   int    `json:"count,omitempty" jsonschema:"how many items or characters" min:"1" max:"100000"`
}

// ResultPart is the result of result_read.
type ResultPart struct {
	Value toolset.JSON `json:"value" schema:"-"`
	Total int          `json:"total,omitempty" jsonschema:"total number of items or characters, if a range was requested"`
}

// Text returns the value.
func (p ResultPart) Text() string { return script.Pretty(p.Value) }

func (t resultTools) read(ctx context.Context, call tool.Call, in resultReadIn) (ResultPart, error) {
	part, err := t.part(ctx, call, in)
	if err != nil {
		return ResultPart{}, err
	}
	if n := len(part.Value); n > t.shown && shownOnly(ctx, call) {
		return ResultPart{}, fault.New(fault.Limit, "that part of %s has %d bytes, more than the limit of %d", in.Handle, n, t.shown).
			WithHint(`narrow it with pointer, skip and count, or work on it in a script: results.get("%s")`, in.Handle)
	}
	return ResultPart{part.Value, part.Total}, nil
}

// part returns the requested part of a result.
func (t resultTools) part(ctx context.Context, call tool.Call, in resultReadIn) (results.Part, error) {
	if in.Skip == 0 && in.Count == 0 {
		value, err := t.keeper.Read(ctx, call.Owner(), in.Handle, in.Pointer)
		return results.Part{Value: value}, err
	}
	count := in.Count
	count = cmp.Or(count, math.MaxInt32)
	return t.keeper.Slice(ctx, call.Owner(), in.Handle, in.Pointer, in.Skip, count)
}

// bounded are the tools whose results may have any size.
var bounded = []string{"lua_eval", "execute_code", tool.CallToolRead, tool.CallTool, "lua_execute", "job_status"}

// LimitedSet is a set that limits the size of results shown to models. A larger
// result is stored, and its handle, shape and beginning are shown. Scripts, and
// programs that ask for it, get complete results.
type LimitedSet struct {
	*toolset.Set
	Keeper *results.Store
	Shown  int // bytes
}

// Call runs a tool of the set.
func (b LimitedSet) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	result, err := b.Set.Call(ctx, call)
	if err != nil || len(result.Raw) <= b.Shown || !slices.Contains(bounded, call.Ref.Name) || !shownOnly(ctx, call) {
		return result, err
	}
	return shorten(ctx, b.Keeper, b.Shown, call, result)
}

// shownOnly reports whether a call's result will be shown to a model: the call came
// from a client that did not ask for complete results.
func shownOnly(ctx context.Context, call tool.Call) bool {
	return catalog.Depth(ctx) <= 1 && !rawjson.GetBool(call.Meta, FullKey)
}

// shorten stores a result that is too large and replaces it by its handle.
func shorten(ctx context.Context, k *results.Store, shown int, call tool.Call, result tool.Result) (tool.Result, error) {
	view, err := result.View()
	if err != nil {
		return result, nil //nolint:nilerr // what cannot be read is handed on as it is
	}
	if view.IsError {
		return shortFailure(result, view, shown), nil
	}
	value, answer := view.Value(), json.RawMessage(nil)
	if inner, ok := rawjson.Get(view.Structured, "result"); ok { // a script's result is one field of it
		value, answer = inner, view.Structured
	} else if !allText(view) {
		return result, nil // images and audio are shown as they are
	}
	h := handle{}
	if len(value) > shown/2 {
		stored, err := k.Put(ctx, call.Owner(), sourceOf(call), value)
		if err != nil {
			return tool.Failure(err), nil
		}
		h = handleOf(stored, value)
		value = h.encode()
	}
	if answer == nil {
		return tool.Output(h.text(), value)
	}
	answer, lines := limitOutput(rawjson.Set(answer, "result", value), shown/4)
	text := h.text()
	if h.Handle == "" {
		text = "Result: " + string(value)
	}
	return tool.Output(text+lines, answer)
}

// limitOutput limits a script's output, also in the text.
func limitOutput(answer json.RawMessage, limit int) (shorter json.RawMessage, text string) {
	for _, key := range []string{"output", "logs"} {
		raw, _ := rawjson.Get(answer, key)
		said, ok := rawjson.Items(raw)
		if !ok {
			continue
		}
		said = firstLines(said, limit)
		text += linesText(said)
		if raw, err := json.Marshal(said); err == nil {
			answer = rawjson.Set(answer, key, raw)
		}
	}
	return answer, text
}

// sourceOf returns the tool a result came from.
func sourceOf(call tool.Call) string {
	if name, ok := rawjson.GetText(call.Args, "name"); ok && call.Ref.IsRelay() {
		return redact.Cut(name, 128)
	}
	return call.Ref.String()
}

func allText(view tool.View) bool {
	return !slices.ContainsFunc(view.Content, func(block json.RawMessage) bool {
		kind, _ := rawjson.GetText(block, "type")
		return kind != "text"
	})
}

// shortFailure shortens the text of a failure.
func shortFailure(result tool.Result, view tool.View, shown int) tool.Result {
	text := redact.Cut(view.Text(), shown/2)
	block, err := json.Marshal([]map[string]string{{"type": "text", "text": text}})
	if err != nil {
		return result
	}
	raw := rawjson.Set(result.Raw, "content", block)
	if view.Structured != nil {
		structured, _ := limitOutput(view.Structured, shown/4)
		raw = rawjson.Set(raw, "structuredContent", structured)
	}
	if len(raw) > shown {
		raw = rawjson.Delete(raw, "_meta")
	}
	return tool.Result{Raw: raw}
}

// lineTexts are the keys of the text of output lines.
var lineTexts = []string{"text", "message"}

// firstLines returns the first lines with at most limit bytes together, and a note with
// the number of omitted ones.
func firstLines(lines []json.RawMessage, limit int) []json.RawMessage {
	for i, line := range lines {
		if limit -= len(line); limit < 0 {
			note := line // has all fields of a line
			for _, key := range lineTexts {
				if _, ok := rawjson.Get(note, key); ok {
					note = rawjson.SetText(note, key, fmt.Sprintf("… %d more lines are not shown: print less", len(lines)-i))
				}
			}
			return append(slices.Clone(lines[:i]), note)
		}
	}
	return lines
}

func linesText(lines []json.RawMessage) string {
	var b strings.Builder
	for i, line := range lines {
		if i == 0 {
			b.WriteString("\nOutput:")
		}
		for _, key := range lineTexts {
			if text, ok := rawjson.GetText(line, key); ok {
				b.WriteString("\n  " + text)
			}
		}
	}
	return b.String()
}

// handle is what is shown of a stored result.
type handle struct {
	Handle  string `json:"handle"`
	Bytes   int64  `json:"bytes"`
	Shape   string `json:"shape"`
	Preview string `json:"preview"`
	Note    string `json:"note"`
}

func handleOf(k results.Stored, value json.RawMessage) handle {
	return handle{k.Handle, k.Size, k.Shape, results.Preview(value),
		fmt.Sprintf(`too large to show; stored: results.get("%s"), results.slice("%s", pointer, skip, count) in code, or result_read`, k.Handle, k.Handle)}
}

func (h handle) encode() json.RawMessage {
	raw, _ := json.Marshal(h) // cannot fail
	return raw
}

func (h handle) text() string {
	if h.Handle == "" {
		return ""
	}
	return fmt.Sprintf("Result %s (%d bytes), %s\nShape: %s\nBegins: %s", h.Handle, h.Bytes, h.Note, h.Shape, h.Preview)
}
