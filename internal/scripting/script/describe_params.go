package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
)

// Param is one parameter from describe().
type Param struct {
	Name        string
	Type        string // as the script wrote it
	Required    bool
	Default     json.RawMessage // nil if there is none
	Description string
	Enum        []json.RawMessage // nil allows any value
	Items       string            // type of an array's values; "" if unspecified
	Min, Max    json.RawMessage   // of a number; empty if unbounded
}

// kinds maps the type names that scripts use to those of JSON Schema. "" is any type.
var kinds = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean",
	"array": "array", "object": "object", "table": "table", "any": "", "": "",
	"int": "integer", "float": "number", "bool": "boolean", "list": "array",
}

// kind returns the parameter's type; "" is any type.
func (p *Param) kind() string { return kinds[p.Type] }

// checkTypes returns an error if the parameter or its items have an unknown type.
func (p *Param) checkTypes() error {
	for _, kind := range []string{p.Type, p.Items} {
		if _, known := kinds[kind]; known {
			continue
		}
		text := "the types are string, number, integer, boolean, array, object and table"
		if near := suggest.Names(kind, slices.Collect(maps.Keys(kinds)), 1); len(near) > 0 {
			text = "did you mean '" + near[0] + "'?"
		}
		return fmt.Errorf("describe().params.%s: the type '%s' is unknown; %s", p.Name, kind, text)
	}
	return nil
}

// readParams reads describe().params: named fields, or a list whose entries have a name.
func readParams(raw json.RawMessage, warn func(string)) ([]Param, error) {
	var params []Param
	if entries, ok := rawjson.Items(raw); ok {
		for i, entry := range entries {
			name, ok := rawjson.GetText(entry, "name")
			if !ok {
				return nil, fmt.Errorf("describe().params[%d] has no name", i+1)
			}
			p, err := readParam(name, entry, warn)
			if err != nil {
				return nil, err
			}
			params = append(params, p)
		}
		return params, nil
	}
	if !rawjson.IsObject(raw) {
		return nil, fmt.Errorf("describe().params must be a table, it is a %s", typeOf(raw))
	}
	var err error
	rawjson.Each(raw, func(name string, value json.RawMessage) bool {
		var p Param
		p, err = readParam(name, value, warn)
		params = append(params, p)
		return err == nil
	})
	return params, err
}

// readParam reads one parameter: a table, or just the name of its type.
func readParam(name string, raw json.RawMessage, warn func(string)) (Param, error) {
	p := Param{Name: name}
	if word, ok := rawjson.Text(raw); ok {
		p.Type = word
		return p, p.checkTypes()
	}
	var table struct {
		Type, Description string
		Required          bool
		Enum              []json.RawMessage
		Items             json.RawMessage
		Min, Max          json.Number
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		return p, noParam(name, raw, err)
	}
	p.Type, p.Description, p.Required, p.Enum = table.Type, table.Description, table.Required, table.Enum
	p.Min, p.Max = json.RawMessage(table.Min), json.RawMessage(table.Max)
	if value, ok := rawjson.Get(raw, "default"); ok && !rawjson.IsNull(value) {
		p.Default, p.Required = value, false
		if empty := p.emptyKind(value); empty != nil {
			p.Default = empty
		}
	}
	p.Items, _ = rawjson.Text(table.Items)
	if word, ok := rawjson.GetText(table.Items, "type"); ok {
		p.Items = word
	}
	if err := cmp.Or(p.checkTypes(), unknownParamFields(name, raw, warn)); err != nil {
		return p, err
	}
	if problem := p.problemWith(p.Default); p.Default != nil && problem != "" {
		return p, fmt.Errorf("describe().params.%s.default: %s", name, problem)
	}
	return p, nil
}

// paramFields are the fields of a parameter. Entries of a list also have their name.
var paramFields = []string{"name", "type", "description", "required", "default", "enum", "items", "min", "max"}

func unknownParamFields(name string, raw json.RawMessage, warn func(string)) (err error) {
	rawjson.Each(raw, func(key string, _ json.RawMessage) bool {
		if !slices.Contains(paramFields, strings.ToLower(key)) {
			err = unknownField("describe().params."+name+"."+key, key, paramFields, warn)
		}
		return err == nil
	})
	return err
}

// noParam is the error of an invalid parameter description.
func noParam(name string, raw json.RawMessage, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("describe().params.%s.%s must be a %s", name, strings.ToLower(wrong.Field), wanted(wrong.Field))
	}
	return fmt.Errorf("describe().params.%s must be a table such as { type = \"string\" }, it is a %s", name, typeOf(raw))
}

func wanted(field string) string {
	switch strings.ToLower(field) {
	case "required":
		return "boolean"
	case "enum":
		return "list"
	case "min", "max":
		return "number"
	default:
		return "string"
	}
}

// Check validates params against the description and fills in defaults. The error is an
// *Error that lists all problems.
func (d *Description) Check(params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 || rawjson.IsNull(params) || string(params) == "[]" { // an empty Lua table may be either
		params = json.RawMessage("{}")
	}
	if !rawjson.IsObject(params) {
		return nil, paramsError([]string{"Parameters should be a table with named fields but got " + typeOf(params)})
	}
	if d.AnyParams {
		return params, nil
	}
	var problems []string
	for i := range d.Params {
		var problem string
		if params, problem = d.Params[i].checkParam(params); problem != "" {
			problems = append(problems, problem)
		}
	}
	if problems = append(problems, d.unknown(params)...); len(problems) > 0 {
		return nil, paramsError(problems)
	}
	return params, nil
}

// Fill fills the defaults in, and checks nothing.
func (d *Description) Fill(params json.RawMessage) json.RawMessage {
	for i := range d.Params {
		p := &d.Params[i]
		if value, given := rawjson.Get(params, p.Name); p.Default != nil && (!given || rawjson.IsNull(value)) {
			params = rawjson.Set(params, p.Name, p.Default)
		}
	}
	return params
}

// checkParam validates params for p and fills in its default; problem says what is wrong.
func (p *Param) checkParam(params json.RawMessage) (settled json.RawMessage, problem string) {
	value, given := rawjson.Get(params, p.Name)
	if given && rawjson.IsNull(value) {
		params, given = rawjson.Delete(params, p.Name), false
	}
	switch {
	case given:
		if empty := p.emptyKind(value); empty != nil {
			params, value = rawjson.Set(params, p.Name, empty), empty
		}
		if problem := p.problemWith(value); problem != "" {
			return params, "Parameter '" + p.Name + "' " + problem
		}
	case p.Required:
		return params, "Missing required parameter '" + p.Name + "'" + inBrackets(p.Description)
	case p.Default != nil:
		params = rawjson.Set(params, p.Name, p.Default)
	}
	return params, ""
}

// unknown lists the params that are not described. Most are typing errors, which would
// go unnoticed if there is a default.
func (d *Description) unknown(params json.RawMessage) (problems []string) {
	names := make([]string, len(d.Params))
	for i := range d.Params {
		names[i] = d.Params[i].Name
	}
	rawjson.Each(params, func(key string, _ json.RawMessage) bool {
		if slices.Contains(names, key) {
			return true
		}
		text := "Unknown parameter '" + key + "'"
		if near := suggest.Names(key, names, 1); len(near) > 0 {
			text += " (did you mean '" + near[0] + "'?)"
		}
		problems = append(problems, text)
		return true
	})
	return problems
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// problemWith says what is wrong with a value; "" if nothing is.
func (p *Param) problemWith(value json.RawMessage) string {
	got, items := typeOf(value), p.problemWithItems(value)
	switch {
	case !p.accepts(value) && p.kind() == "integer" && got == "number":
		return fmt.Sprintf("should be integer but got %s", value)
	case !p.accepts(value):
		return fmt.Sprintf("should be %s but got %s", p.Type, got)
	case items != "":
		return items
	case len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(one json.RawMessage) bool { return string(one) == string(value) }):
		return fmt.Sprintf("should be one of %s but got %s", enumText(p.Enum), value)
	case got == "number" && len(p.Min) > 0 && number(value) < number(p.Min):
		return fmt.Sprintf("should be at least %s but got %s", p.Min, value)
	case got == "number" && len(p.Max) > 0 && number(value) > number(p.Max):
		return fmt.Sprintf("should be at most %s but got %s", p.Max, value)
	default:
		return ""
	}
}

// problemWithItems says what is wrong with the items of an array; "" if nothing is.
func (p *Param) problemWithItems(value json.RawMessage) string {
	if p.Items == "" || typeOf(value) != "array" {
		return ""
	}
	items, _ := rawjson.Items(value)
	item := Param{Type: p.Items}
	for i, one := range items {
		if problem := item.problemWith(one); problem != "" {
			return fmt.Sprintf("item %d %s", i+1, problem)
		}
	}
	return ""
}

// accepts reports whether a value has the parameter's type.
func (p *Param) accepts(value json.RawMessage) bool {
	switch kind, got := p.kind(), typeOf(value); kind {
	case "", got:
		return true
	case "integer":
		return isWhole(value)
	case "table":
		return got == "object" || got == "array"
	}
	return false
}

// emptyKind converts an empty table to the type the parameter needs, because Lua does
// not distinguish {} and []. It returns nil for everything else.
func (p *Param) emptyKind(value json.RawMessage) json.RawMessage {
	switch {
	case string(value) == "{}" && p.kind() == "array":
		return json.RawMessage("[]")
	case string(value) == "[]" && p.kind() == "object":
		return json.RawMessage("{}")
	default:
		return nil
	}
}

func enumText(enum []json.RawMessage) string {
	texts := make([]string, len(enum))
	for i, one := range enum {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}

func isWhole(value json.RawMessage) bool {
	n, err := strconv.ParseFloat(string(value), 64)
	return err == nil && n == float64(int64(n))
}

func number(value json.RawMessage) float64 {
	n, _ := strconv.ParseFloat(string(value), 64) // checked to be a number
	return n
}

// paramsError lists what is wrong with the params of a run.
func paramsError(problems []string) *Error {
	return &Error{
		Kind: ParamsError, Message: "Parameter validation failed:\n- " + strings.Join(problems, "\n- "), Problems: problems,
	}
}

// asTyped replaces params by the text that was typed where the script asks for a string:
// only the script knows that 007 is not a number.
func (d *Description) asTyped(params json.RawMessage, typed map[string]string) json.RawMessage {
	for i := range d.Params {
		p := &d.Params[i]
		text, ok := typed[p.Name]
		if value, given := rawjson.Get(params, p.Name); ok && given && p.kind() == "string" && typeOf(value) != "string" {
			params = rawjson.SetText(params, p.Name, text)
		}
	}
	return params
}

// Prepare validates the params of a run of main against the script's description and
// fills in defaults and the script's own name. A script without main does not run, nor one whose
// describe() fails, because its params could not be checked.
func (r *Runner) Prepare(ctx context.Context, q Request) (Request, error) {
	q = r.WithLanguage(ctx, q)
	d, err := r.Describe(ctx, q)
	if err != nil {
		return q, err
	}
	if _, err := r.engineFor(q); err == nil && d.noMain {
		return q, r.explain(ctx, q, missingMain(q.advice(MissingMain)))
	}
	return r.checkParams(ctx, q, d)
}

// PrepareTurn is Prepare for a turn of a session. preview runs a request in a copy of the
// session, because describe() may need its globals.
func (r *Runner) PrepareTurn(ctx context.Context, q Request, language string, preview func(Request) (Outcome, error)) (Request, error) {
	of := q
	of.Language = cmp.Or(q.Language, language)
	described, inspection := describeRequest(of)
	engine, err := r.engineFor(described)
	if err != nil {
		return q, err
	}
	if engine.compile(ctx, described) != nil { // the turn itself reports it
		return q, nil //nolint:nilerr // see above
	}
	if !engine.mayDefine(described, "describe") && engine.mayDefine(described, "main") {
		return q, nil // the session's describe() belongs to another main
	}
	d, err := callDescribe(described, func() (Outcome, error) { return preview(described) })
	if err == nil {
		err = d.checkRefusals(of, inspection, preview)
	}
	if err != nil || !d.Defined {
		return q, err
	}
	return r.checkParams(ctx, q, d)
}

// checkParams validates the params of a request against a description.
func (r *Runner) checkParams(ctx context.Context, q Request, d Description) (Request, error) {
	params, err := d.Check(d.asTyped(q.Params, q.TypedParams))
	if err != nil {
		return q, r.explain(ctx, q, err)
	}
	q.Params, q.Own = params, d.Name
	q.Name = cmp.Or(q.Name, d.Name)
	return q, nil
}
