// Package toolset makes tools of Go functions. Schemas are derived from the types of
// the functions, in the form that the strictest clients accept; descriptions for models
// are Markdown files; arguments that models commonly get wrong are repaired. A Set of
// tools is a tool.Source.
package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

// Tool is a definition and its function.
type Tool struct {
	info tool.Info
	run  func(ctx context.Context, call tool.Call) (tool.Result, error)

	check func(ctx context.Context, call tool.Call) error // see Checked; nil: nothing is known beforehand
}

// Texter is an output with a text for people. Others are shown as JSON.
type Texter interface {
	Text() string
}

// Define makes a tool of a function. Its schemas are derived from In and Out, which are
// structs with json tags: the jsonschema tag of a field is its description, enum, min
// and max tags limit it, omitempty or omitzero makes it optional, and schema:"-" leaves it
// out of the schema. Title and description are in <name>.md of texts. A type that has no
// schema panics, at start.
func Define[In, Out any](texts fs.FS, name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (Out, error)) Tool {
	return typed(describe(texts, name, hints), reflect.TypeFor[In](), reflect.TypeFor[Out](), untyped(do))
}

// Relay makes a tool whose result is that of another tool. It has no output schema,
// because that is not known beforehand.
func Relay[In any](texts fs.FS, name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return typed(describe(texts, name, hints), reflect.TypeFor[In](), nil, untyped(do))
}

// DefineResult makes a tool that builds its own result, structured as Out.
func DefineResult[In, Out any](texts fs.FS, name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return typed(describe(texts, name, hints), reflect.TypeFor[In](), reflect.TypeFor[Out](), untyped(do))
}

// DefineInfo is DefineResult for a tool that is described in info, without schemas, and
// whose result is structured as the type output; nil means that it is not structured.
func DefineInfo[In any](info tool.Info, output reflect.Type, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return typed(info, reflect.TypeFor[In](), output, untyped(do))
}

// DefineSchema is Define for a tool whose arguments are described by the input schema in
// info instead of a Go type. The function reads the arguments from the call.
func DefineSchema[Out any](info tool.Info, do func(ctx context.Context, call tool.Call) (Out, error)) Tool {
	info.Output = derive(info.Name, reflect.TypeFor[Out](), false)
	return Tool{info: define(info), run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
		return result(do(ctx, call))
	}}
}

// InputSchema is the schema of arguments of type In, as Define derives it.
func InputSchema[In any](name string) json.RawMessage {
	return derive(name, reflect.TypeFor[In](), true)
}

// untyped is a function of a tool without its types. A function with type parameters is
// compiled once for each tool, so everything else does without them.
func untyped[In, Out any](do func(ctx context.Context, call tool.Call, in In) (Out, error)) func(context.Context, tool.Call, any) (any, error) {
	return func(ctx context.Context, call tool.Call, in any) (any, error) { return do(ctx, call, *in.(*In)) }
}

// typed makes a tool of a function that takes a pointer to a value of type in, and
// returns one of type out or a tool.Result. Without out, there is no output schema.
func typed(info tool.Info, in, out reflect.Type, do func(ctx context.Context, call tool.Call, in any) (any, error)) Tool {
	info.Input = derive(info.Name, in, true)
	if out != nil {
		info.Output = derive(info.Name, out, false)
	}
	return Tool{info: define(info), run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
		args := reflect.New(in).Interface()
		if err := decode(info, call.Args, args); err != nil {
			return tool.Result{}, err
		}
		return result(do(ctx, call, args))
	}}
}

// result is the result of a tool whose function returned out.
func result(out any, err error) (tool.Result, error) {
	made, ok := out.(tool.Result)
	if err == nil && !ok {
		made, err = tool.Output(textOf(out), out)
	}
	switch {
	case fault.CodeOf(err) == fault.NeedsAuth: // whoever calls may be able to log in, and call again
		return tool.Result{}, err
	case err != nil:
		return tool.Failure(err), nil
	}
	return made, nil
}

// Checked adds to a tool how it would refuse a call, found without making it: plans do not
// promise, and nobody is asked about, what cannot be done.
func Checked[In any](t Tool, check func(ctx context.Context, call tool.Call, in In) error) Tool {
	t.check = func(ctx context.Context, call tool.Call) error {
		var in In
		if err := decode(t.info, call.Args, &in); err != nil {
			return err
		}
		return check(ctx, call, in)
	}
	return t
}

// AsScriptRunner marks a tool that runs scripts here: when a script calls it, the
// effects of the inner script pass the boundary of the outer one.
func AsScriptRunner(t Tool) Tool {
	t.info.RunsScript = true
	return t
}

// Name is the name of the tool.
func (t *Tool) Name() string { return t.info.Name }

// WithPage is a tool whose results a page of ours shows, to clients that show MCP Apps. Pages do
// not call it: those of other servers could, too.
func WithPage(t Tool, uri string) Tool {
	t.info.App.Page = uri
	ui := rawjson.Set(rawjson.SetText(nil, "resourceUri", uri), "visibility", json.RawMessage(`["model"]`))
	t.info.Raw = rawjson.Set(t.info.Raw, "_meta", rawjson.Set(nil, "ui", ui))
	return t
}

// ForPages is a tool that only pages call.
func ForPages(t Tool) Tool {
	t.info.App.Hidden = true
	t.info.Raw = rawjson.Set(t.info.Raw, "_meta", json.RawMessage(`{"ui":{"visibility":["app"]}}`))
	return t
}

// AsTask is a tool whose calls clients of MCP revision 2025-11-25 may make as
// tasks. Later clients are not asked: they say with each call what they can take.
func AsTask(t Tool) Tool {
	t.info.Raw = rawjson.Set(t.info.Raw, "execution", json.RawMessage(`{"taskSupport":"optional"}`))
	return t
}

// describe reads title and description of a tool from its Markdown file: a
// heading, then the text.
func describe(texts fs.FS, name string, hints tool.Hints) tool.Info {
	raw, err := fs.ReadFile(texts, name+".md")
	if err != nil {
		panic(fmt.Sprintf("toolset: tool %s has no description: %v", name, err))
	}
	heading, text, _ := strings.Cut(string(raw), "\n")
	title, ok := strings.CutPrefix(heading, "# ")
	if !ok {
		panic(fmt.Sprintf("toolset: %s.md does not begin with a heading", name))
	}
	return tool.Info{
		Ref: tool.Ref{Name: name}, Title: title, Description: strings.TrimSpace(text), Hints: hints,
	}
}

// definition is a tool in MCP's format.
type definition struct {
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Input       json.RawMessage  `json:"inputSchema"`
	Output      json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations tool.Annotations `json:"annotations"`
}

// define writes the tool's definition.
func define(info tool.Info) tool.Info {
	raw, err := json.Marshal(definition{
		Name: info.Name, Title: info.Title, Description: info.Description,
		Input: info.Input, Output: info.Output, Annotations: info.Hints.Annotations(),
	})
	if err != nil {
		panic(fmt.Sprintf("toolset: define %s: %v", info.Name, err))
	}
	info.Raw = raw
	return info
}

// decode reads arguments into what in points to. The catalog has checked and repaired them
// before; for direct calls they are repaired here.
func decode(info tool.Info, args json.RawMessage, in any) error {
	if len(args) == 0 {
		return nil
	}
	err := json.Unmarshal(args, in)
	if err != nil {
		if repaired, ok := Repair(info.Input, args); ok {
			reflect.ValueOf(in).Elem().SetZero()
			err = json.Unmarshal(repaired, in)
		}
	}
	if err != nil {
		return fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read the arguments of %s", info.Name)
	}
	return nil
}

func textOf(out any) string {
	if t, ok := out.(Texter); ok {
		return t.Text()
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return fmt.Sprint(out)
	}
	return string(raw)
}

// Set is a source of tools. It is never changed.
type Set struct {
	space string
	tools map[string]Tool
	list  []tool.Info
}

// NewSet makes a set of several families of tools in a namespace; our own have none.
// Two tools of one name are a programming error: it panics.
func NewSet(space string, families ...[]Tool) *Set {
	s := &Set{space: space, tools: map[string]Tool{}}
	for _, t := range slices.Concat(families...) {
		if _, twice := s.tools[t.info.Name]; twice {
			panic(fmt.Sprintf("toolset: two tools are named %s", t.info.Name))
		}
		t.info.Space = space
		s.tools[t.info.Name] = t
		s.list = append(s.list, t.info)
	}
	slices.SortFunc(s.list, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Tools lists the set, by name.
func (s *Set) Tools(context.Context) ([]tool.Info, error) { return s.list, nil }

// Has tells whether the set has a tool of that name.
func (s *Set) Has(name string) bool {
	_, ok := s.tools[name]
	return ok
}

// Call runs a tool of the set. A tool that fails returns a result that says so; an
// error means that there is no such tool or that the arguments do not match.
func (s *Set) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	t, ok := s.tools[call.Ref.Name]
	if !ok || call.Ref.Space != s.space {
		return tool.Result{}, s.missing(call.Ref)
	}
	return t.run(ctx, call)
}

// Check returns why a call would be refused, as far as that is known without making it.
func (s *Set) Check(ctx context.Context, call tool.Call) error {
	if t := s.tools[call.Ref.Name]; t.check != nil {
		return t.check(ctx, call)
	}
	return nil
}

func (s *Set) missing(ref tool.Ref) error {
	known := make([]string, len(s.list))
	for i, info := range s.list {
		known[i] = info.Name
	}
	err := fault.New(fault.ToolNotFound, "no tool %q", ref)
	if close := suggest.Names(ref.Name, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("available: %s", strings.Join(known, ", "))
}

var _ tool.Source = (*Set)(nil)

// Repair corrects what models commonly get wrong in arguments, one at a time and only where
// the meaning is clear: a number or an object written as a string, a single value where
// a list is wanted, null for an omitted argument. ok is false when nothing was
// corrected.
func Repair(schema, args json.RawMessage) (repaired json.RawMessage, ok bool) {
	if !json.Valid(args) || !rawjson.IsObject(args) {
		return nil, false
	}
	properties, _ := rawjson.Get(schema, "properties")
	var required []string
	if raw, found := rawjson.Get(schema, "required"); found {
		_ = json.Unmarshal(raw, &required) // an invalid list counts as none
	}
	repaired = args
	rawjson.Each(args, func(name string, value json.RawMessage) bool {
		property, known := rawjson.Get(properties, name)
		if !known {
			return true
		}
		property = resolved(schema, property)
		types := typesOf(property)
		if rawjson.IsNull(value) && len(types) > 0 && !slices.Contains(types, "null") && !slices.Contains(required, name) {
			repaired, ok = rawjson.Delete(repaired, name), true
		} else if better := repairValue(property, value); better != nil && !slices.Contains(sourceArguments, name) {
			repaired, ok = rawjson.Set(repaired, name, better), true
		}
		return true
	})
	return repaired, ok
}

// resolved follows references within a schema, as "#/$defs/Book".
func resolved(schema, property json.RawMessage) json.RawMessage {
	for range 8 { // a reference to itself ends
		ref, _ := rawjson.GetText(property, "$ref")
		path, local := strings.CutPrefix(ref, "#/")
		if !local {
			break
		}
		property = schema
		for part := range strings.SplitSeq(path, "/") {
			property, _ = rawjson.Get(property, part)
		}
	}
	return property
}

// sourceArguments take the source of a program: any value but a text is a mistake in the
// call, whose meaning is not clear.
var sourceArguments = []string{"code", "content"}

// repairValue is the value that was meant, or nil.
func repairValue(property, value json.RawMessage) json.RawMessage {
	wanted := typesOf(property)
	if fits(wanted, value) {
		return nil
	}
	if text, ok := rawjson.Text(value); ok {
		if meant := unquoted(wanted, text); meant != nil {
			return meant
		}
	}
	switch {
	case slices.Contains(wanted, "array") && !rawjson.IsEmptyObject(value) && fits(itemsOf(property), value): // {} may be an empty list of Lua
		return slices.Concat([]byte("["), value, []byte("]"))
	case slices.Equal(wanted, []string{"string"}) && (fits([]string{"number"}, value) || fits([]string{"boolean"}, value)):
		return rawjson.AppendText(nil, string(value))
	default:
		return nil
	}
}

// unquoted is the value of the wanted types that was written as a string, or nil.
func unquoted(wanted []string, text string) json.RawMessage {
	trimmed := json.RawMessage(strings.TrimSpace(text))
	switch {
	case slices.Contains(wanted, "integer") && isInteger(text), slices.Contains(wanted, "number") && isNumber(text):
		return json.RawMessage(text)
	case json.Valid(trimmed) && fits(wanted, trimmed):
		return trimmed
	}
	return nil
}

// fits tells whether value is of one of the types.
func fits(types []string, value json.RawMessage) bool {
	if len(value) == 0 {
		return false
	}
	kind := "number"
	switch value[0] {
	case '"':
		kind = "string"
	case '{':
		kind = "object"
	case '[':
		kind = "array"
	case 't', 'f':
		kind = "boolean"
	case 'n':
		kind = "null"
	default:
		if isInteger(string(value)) && slices.Contains(types, "integer") {
			return true
		}
	}
	return slices.Contains(types, kind)
}

func typesOf(property json.RawMessage) []string {
	raw, _ := rawjson.Get(property, "type")
	if name, ok := rawjson.Text(raw); ok {
		return []string{name}
	}
	var names []string
	_ = json.Unmarshal(raw, &names) // a name or a list of names
	return names
}

func itemsOf(property json.RawMessage) []string {
	items, _ := rawjson.Get(property, "items")
	return typesOf(items)
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil && json.Valid([]byte(text))
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && json.Valid([]byte(text))
}
