package script

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Description is what a script's describe() returned.
type Description struct {
	Defined     bool // the script has a describe(); otherwise all fields are empty
	Name        string
	Title       string
	Description string
	Params      []Param // in the order of the script
	AnyParams   bool    // params are not described, and are not checked
	Returns     string
	Page        string // Markdown: when and how to use it
	Tags        []string
	Hints       tool.Hints
	Warnings    []string // fields that were ignored

	noMain bool // the script defines no main
}

// NoDescription is the text for a script without a describe().
const NoDescription = "Script does not define a describe() function"

// describeLimits are the limits of describe() and the top level. Steps, not time, bound
// the work, so that the outcome does not depend on how busy the machine is.
var describeLimits = Limits{Steps: 50_000_000, Output: 64 << 10, Calls: 1000}

// descriptionKey is everything that a description depends on.
type descriptionKey struct {
	language string
	content  [sha256.Size]byte
}

func descriptionOf(q Request) descriptionKey {
	return descriptionKey{q.language(), sha256.Sum256([]byte(q.Source))}
}

// descriptionWeight is what a description takes in the cache; few are larger.
const descriptionWeight = 8 << 10

// Describe runs a script with no effects allowed and calls its describe(). The error is
// an *Error. Only the source of the request is used, with its name, hash and language.
func (r *Runner) Describe(ctx context.Context, of Request) (Description, error) {
	of = r.WithLanguage(ctx, of)
	key := descriptionOf(of)
	if known, ok := r.descriptions.find(key, descriptionWeight); ok {
		return known, nil
	}
	q, inspection := describeRequest(of)
	d, err := r.describe(ctx, q)
	if err == nil {
		err = d.checkRefusals(of, inspection, func(q Request) (Outcome, error) { return r.Run(ctx, q) })
	}
	if err == nil && !inspection.Varied() {
		r.descriptions.keep(key, d, descriptionWeight)
	}
	return d, err
}

// checkRefusals returns an error if describe(), which describes no params, has caught the
// refusal of an effect: then any params would be accepted. The inspection counts those of the
// top level too, which may well do without; it is run again to know them.
func (d *Description) checkRefusals(of Request, inspection *host.Inspection, run func(Request) (Outcome, error)) error {
	if !d.Defined || !d.AnyParams || inspection.Refused() == 0 {
		return nil
	}
	q, before := describeRequest(of)
	q.entry = entry{}
	if _, err := run(q); err == nil && before.Refused() == inspection.Refused() {
		return nil
	}
	return &Error{
		Kind: Misdescribed, Script: q.label(), language: q.language(), Troubleshooting: q.advice(Misdescribed),
		Message: "describe() used something that is refused while a script is described, caught the error, and returned no params",
	}
}

// describeRequest returns the request that calls describe() of a script.
func describeRequest(of Request) (Request, *host.Inspection) {
	inspection := host.NewInspection("the script is being described")
	return Request{
		Source: of.Source, Name: of.Name, Hash: of.Hash, Language: of.Language,
		Limits: describeLimits, entry: entry{name: "describe", optional: true}, Handler: inspection,
	}, inspection
}

// describe is Describe without the cache.
func (r *Runner) describe(ctx context.Context, q Request) (Description, error) {
	engine, err := r.engineFor(q)
	if err == nil {
		err = engine.compile(ctx, q)
	}
	if err != nil {
		return Description{}, r.explain(ctx, q, err)
	}
	d := Description{AnyParams: true}
	if engine.mayDefine(q, q.entry.name) {
		d, err = callDescribe(q, func() (Outcome, error) { return r.Run(ctx, q) })
	}
	if err == nil && !engine.mayDefine(q, "main") {
		d.noMain = true
		d.Warnings = append(d.Warnings, "the script defines no main(params): it cannot run as a job, and cannot be published")
	}
	return d, err
}

// callDescribe reads what a run of describe() returns, if the script has one.
func callDescribe(q Request, run func() (Outcome, error)) (Description, error) {
	outcome, err := run()
	if err != nil {
		return Description{}, describeError(err)
	}
	if outcome.absent {
		return Description{AnyParams: true}, nil
	}
	d, err := readDescription(outcome.Result)
	if err != nil {
		return Description{}, &Error{
			Kind: Misdescribed, Script: q.label(), Message: err.Error(), Troubleshooting: q.advice(Misdescribed), cause: err, language: q.language(),
		}
	}
	return d, nil
}

// describeError adds to a failure that it happened before main.
func describeError(err error) error {
	var failed *Error
	if errors.As(err, &failed) {
		failed.Troubleshooting = append(failed.Troubleshooting,
			"The top level and describe() run before main(params), to check its params: keep effects and long work in main")
	}
	return err
}

// readDescription reads what describe() returned.
func readDescription(raw json.RawMessage) (Description, error) {
	d := Description{Defined: true, AnyParams: true}
	if !rawjson.IsObject(raw) {
		return d, fmt.Errorf("describe() must return a table with named fields, it returned %s", typeOf(raw))
	}
	var problem error
	rawjson.Each(raw, func(key string, value json.RawMessage) bool {
		problem = d.read(key, value)
		return problem == nil
	})
	return d, problem
}

// read reads one field of what describe() returned.
func (d *Description) read(key string, value json.RawMessage) (err error) {
	switch key {
	case "name":
		d.Name, err = textField(key, value)
	case "title":
		d.Title, err = textField(key, value)
	case "description":
		d.Description, err = textField(key, value)
	case "returns":
		d.Returns = string(value)
		if text, ok := rawjson.Text(value); ok {
			d.Returns = text
		}
	case "page":
		d.Page, err = textField(key, value)
	case "params":
		d.AnyParams = false
		d.Params, err = readParams(value, d.warn)
	case "tags":
		if json.Unmarshal(value, &d.Tags) != nil {
			err = errors.New("describe().tags must be a list of strings")
		}
	case "annotations":
		err = d.readAnnotations(value)
	default:
		err = unknownField("describe()."+key, key, []string{"name", "title", "description", "returns", "params", "page", "tags", "annotations"}, d.warn)
	}
	return err
}

func (d *Description) warn(text string) { d.Warnings = append(d.Warnings, text) }

// unknownField is the error for a field that is a typing error of a known one, which would
// have no effect. It warns of others.
func unknownField(path, name string, known []string, warn func(string)) error {
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return fmt.Errorf("%s is unknown; did you mean '%s'?", path, near[0])
	}
	warn(path + " is unknown and ignored")
	return nil
}

// readAnnotations reads the script's hints about its behaviour.
func (d *Description) readAnnotations(raw json.RawMessage) (err error) {
	if !rawjson.IsObject(raw) && string(raw) != "[]" {
		return fmt.Errorf("describe().annotations must be a table, it is a %s", typeOf(raw))
	}
	rawjson.Each(raw, func(key string, value json.RawMessage) bool {
		yes := string(value) == "true"
		if typeOf(value) != "boolean" && key != "title" {
			err = fmt.Errorf("describe().annotations.%s must be true or false", key)
			return false
		}
		switch key {
		case "read_only":
			d.Hints.ReadOnly = yes
		case "idempotent":
			d.Hints.Idempotent = yes
		case "destructive":
			d.Hints.NonDestructive = !yes
		case "open_world":
			d.Hints.ClosedWorld = !yes
		case "title":
			d.Title, err = textField("annotations.title", value)
		default:
			err = unknownField("describe().annotations."+key, key, []string{"read_only", "idempotent", "destructive", "open_world", "title"}, d.warn)
		}
		return err == nil
	})
	return err
}

func textField(key string, value json.RawMessage) (string, error) {
	text, ok := rawjson.Text(value)
	if !ok {
		return "", fmt.Errorf("describe().%s must be a string, it is a %s", key, typeOf(value))
	}
	return text, nil
}

// typeOf returns the type name of a JSON value: string, number, boolean, object, array
// or nil.
func typeOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nil"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "nil"
	default:
		return "number"
	}
}

// Schema returns the JSON Schema of the params, in the form that the strictest clients
// accept: every schema has a type, none is a bare boolean, and defaults are in the
// description. Params are in the order of the script.
func (d *Description) Schema() json.RawMessage {
	properties, required := json.RawMessage("{}"), []string{}
	for i := range d.Params {
		p := &d.Params[i]
		properties = rawjson.Set(properties, p.Name, p.schema())
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := rawjson.SetText(nil, "type", "object")
	schema = rawjson.Set(schema, "properties", properties)
	schema = rawjson.Set(schema, "required", encode(required))
	if !d.AnyParams {
		schema = rawjson.Set(schema, "additionalProperties", json.RawMessage("false"))
	}
	return schema
}

// anything lists all types, for params of unknown type.
const anything = `["string","number","boolean","object","array"]`

func (p *Param) schema() json.RawMessage {
	kind := p.schemaKind()
	s := json.RawMessage("{}")
	if kind == "" {
		s = rawjson.Set(s, "type", json.RawMessage(anything))
	} else {
		s = rawjson.SetText(s, "type", kind)
	}
	if text := p.text(); text != "" {
		s = rawjson.SetText(s, "description", text)
	}
	if len(p.Enum) > 0 {
		s = rawjson.Set(s, "enum", encode(p.Enum))
	}
	if kind == "array" {
		item := Param{Type: p.Items}
		s = rawjson.Set(s, "items", item.schema())
	}
	if len(p.Min) > 0 {
		s = rawjson.Set(s, "minimum", p.Min)
	}
	if len(p.Max) > 0 {
		s = rawjson.Set(s, "maximum", p.Max)
	}
	return s
}

// schemaKind returns the JSON Schema type, which has no tables.
func (p *Param) schemaKind() string {
	switch kind := p.kind(); {
	case kind == "" && p.Default != nil && p.Type == "":
		return typeOf(p.Default)
	case kind == "table" && (p.Items != "" || typeOf(p.Default) == "array"):
		return "array"
	case kind == "table":
		return "object"
	default:
		return kind
	}
}

// text returns the description with the default, which strict clients do not accept as a
// keyword.
func (p *Param) text() string {
	if p.Default == nil {
		return p.Description
	}
	return strings.TrimSpace(p.Description + " (default: " + string(p.Default) + ")")
}

// Table returns the params in the form that describe() gives them.
func (d *Description) Table() json.RawMessage {
	table := json.RawMessage("{}")
	for i := range d.Params {
		p := &d.Params[i]
		entry := rawjson.SetText(nil, "type", p.Type)
		entry = rawjson.Set(entry, "required", encode(p.Required))
		if p.Default != nil {
			entry = rawjson.Set(entry, "default", p.Default)
		}
		if p.Description != "" {
			entry = rawjson.SetText(entry, "description", p.Description)
		}
		if len(p.Enum) > 0 {
			entry = rawjson.Set(entry, "enum", encode(p.Enum))
		}
		table = rawjson.Set(table, p.Name, entry)
	}
	return table
}

// encode encodes values that cannot fail: text, booleans, and valid JSON.
func encode(v any) json.RawMessage {
	raw, _ := tool.Encode(v)
	return raw
}
