package graphql

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// definition is the tool of an operation as in tools/list.
func (s *service) definition(op *operation) json.RawMessage {
	out := rawjson.SetText(nil, "name", op.name)
	out = rawjson.SetText(out, "description", op.description())
	out = rawjson.Set(out, "inputSchema", s.input(op))
	out = rawjson.Set(out, "outputSchema", s.output(op))
	hints := api.Writes
	if op.kind == ast.Query {
		hints = api.ReadOnly
	}
	out = rawjson.Set(out, "annotations", json.RawMessage(hints))
	return s.withTarget(out, string(op.kind)+" "+op.field.Name)
}

// withTarget adds the request that a tool makes.
func (s *service) withTarget(definition json.RawMessage, request string) json.RawMessage {
	return rawjson.Set(definition, "_meta", rawjson.SetText(nil, api.OperationKey, request+" "+s.target))
}

// input is the schema of the arguments: those of the field, and those that choose fields
// and pages.
func (s *service) input(op *operation) json.RawMessage {
	in := &inputs{schema: s.schema, nulls: op.kind == ast.Mutation}
	in.defs.Write = in.appendObject
	out := []byte(`{"type":"object","properties":{`)
	var must []string
	for _, arg := range op.field.Arguments {
		out = rawjson.AppendKey(out, arg.Name)
		text := arg.Description
		if op.paged && arg.Name == "first" && arg.DefaultValue == nil {
			text = appendSentence(text, "20 if neither first nor last is given.")
		}
		out = in.appendValue(out, arg.Type, remark{deprecation(arg.Directives) + text, arg.DefaultValue})
		if required(arg.Type, arg.DefaultValue) {
			must = append(must, arg.Name)
		}
	}
	if name := op.fieldsArgument(); name != "" {
		out = rawjson.AppendKey(out, name)
		out = append(rawjson.AppendText(append(out, `{"type":"string","description":`...), fieldsHelp(op)), '}')
	}
	if op.paged {
		out = append(rawjson.AppendKey(out, api.PageToken), api.PageSchema...)
	}
	out = append(out, '}')
	if len(must) > 0 {
		list, _ := json.Marshal(must) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	out = append(out, `,"additionalProperties":false`...)
	return append(in.defs.AppendTo(out), '}')
}

// maxShown is how much of the default selection is shown.
const maxShown = 300

func fieldsHelp(op *operation) string {
	shown := op.defaults
	if len(shown) > maxShown {
		shown = shown[:maxShown] + " …"
	}
	return "What to return, as a GraphQL selection on " + op.field.Type.Name() + ". Default: " + shown
}

func appendSentence(text, sentence string) string {
	if text == "" {
		return sentence
	}
	return text + " " + sentence
}

// operation is a field of the query or mutation type, which is a tool.
type operation struct {
	name      string // of its tool
	kind      ast.Operation
	field     *ast.FieldDefinition
	selection []*selection // that is used if the caller chooses none; empty for values
	defaults  string       // the same as text
	paged     bool         // it is a list that is continued with the argument after
}

// Arguments of tools that are no arguments of the field.
const argFields = "fields"

// newOperation prepares a field of the query or mutation type.
func (s *service) newOperation(kind ast.Operation, field *ast.FieldDefinition) *operation {
	op := &operation{kind: kind, field: field}
	result := s.schema.Types[field.Type.Name()]
	op.paged = field.Arguments.ForName("after") != nil && isConnection(result, s.schema) && field.Arguments.ForName(api.PageToken) == nil
	if result.IsCompositeType() {
		op.selection = choose(s.schema, result)
		op.defaults = textOf(op.selection)
	}
	return op
}

// fieldsArgument is the name of the argument that chooses fields; "" if there is nothing
// to choose.
func (op *operation) fieldsArgument() string {
	switch {
	case len(op.selection) == 0:
		return ""
	case op.field.Arguments.ForName(argFields) != nil:
		return "select_" + argFields
	}
	return argFields
}

// setName names the tool: by its field, and by its kind too if that name is taken.
func (op *operation) setName(taken map[string]int, budget int) {
	op.name = op.field.Name
	if taken[op.name] > 1 {
		op.name = string(op.kind) + "_" + op.name
	}
	if len(op.name) > budget {
		op.name = api.HashedName(op.name, string(op.kind)+" "+op.field.Name, budget)
	}
}

func (op *operation) selectable() api.Operation {
	return api.Operation{Names: []string{op.field.Name, op.name}, Method: string(op.kind), Path: string(op.kind) + "/" + op.field.Name}
}

// description is that of the field.
func (op *operation) description() string {
	text := strings.TrimSpace(op.field.Description)
	text = cmp.Or(text, "The "+string(op.kind)+" "+op.field.Name+" of a GraphQL service; it returns "+op.field.Type.String()+".")
	return deprecation(op.field.Directives) + api.Shorten(text)
}

// deprecation says that something is deprecated; "" if it is not.
func deprecation(directives ast.DirectiveList) string {
	found := directives.ForName("deprecated")
	if found == nil {
		return ""
	}
	if reason := found.Arguments.ForName("reason"); reason != nil && reason.Value.Raw != "" {
		return "Deprecated: " + reason.Value.Raw + " "
	}
	return "Deprecated. "
}

// required reports whether an argument or an input field must be given.
func required(kind *ast.Type, fallback *ast.Value) bool { return kind.NonNull && fallback == nil }

// inputs writes JSON Schemas of input types.
type inputs struct {
	schema *ast.Schema
	nulls  bool // whether null may be given: in mutations it removes a value
	defs   api.Definitions
}

// remark is what is said about an argument or a field of an input object.
type remark struct {
	text     string
	fallback *ast.Value
}

// builtin are the JSON types of GraphQL's own scalars.
var builtin = map[string]string{"Int": "integer", "Float": "number", "String": "string", "Boolean": "boolean", "ID": "string"}

// appendValue appends the schema of a value.
func (in *inputs) appendValue(out []byte, kind *ast.Type, about remark) []byte {
	schema := in.appendType(nil, kind, in.nulls && !kind.NonNull)
	text := strings.TrimSpace(about.text)
	if !strings.HasPrefix(string(schema), `{"$ref"`) { // a reference stays alone, since not all models accept more beside it
		if text != "" {
			schema = rawjson.SetText(schema, "description", api.Shorten(text))
		}
		if fallback := defaultOf(about.fallback); fallback != nil {
			schema = rawjson.Set(schema, "default", fallback)
		}
	}
	return append(out, schema...)
}

// defaultOf is a default value in JSON; nil if there is none.
func defaultOf(value *ast.Value) json.RawMessage {
	if value == nil {
		return nil
	}
	plain, err := value.Value(nil)
	if err != nil || plain == nil {
		return nil
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil // it is not shown; the service knows it
	}
	return text
}

func (in *inputs) appendType(out []byte, kind *ast.Type, null bool) []byte {
	if kind.Elem != nil {
		out = appendTypeName(append(out, '{'), "array", null)
		return append(in.appendType(append(out, `,"items":`...), kind.Elem, false), '}')
	}
	def := in.schema.Types[kind.NamedType]
	switch def.Kind {
	case ast.Enum:
		return appendEnum(out, def, null)
	case ast.InputObject:
		if !null {
			return in.defs.Refer(out, def.Name)
		}
		return append(in.defs.Refer(append(out, `{"anyOf":[`...), def.Name), `,{"type":"null"}]}`...)
	}
	if name := builtin[def.Name]; name != "" {
		return append(appendTypeName(append(out, '{'), name, null), '}')
	}
	text := def.Name
	if def.Description != "" {
		text += ": " + api.Shorten(strings.TrimSpace(def.Description))
	}
	return append(rawjson.AppendText(append(out, `{"description":`...), text), '}')
}

func appendTypeName(out []byte, name string, null bool) []byte {
	if null {
		return append(out, `"type":["`+name+`","null"]`...)
	}
	return append(out, `"type":"`+name+`"`...)
}

func appendEnum(out []byte, def *ast.Definition, null bool) []byte {
	out = append(appendTypeName(append(out, '{'), "string", null), `,"enum":[`...)
	for i, value := range def.EnumValues {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendText(out, value.Name)
	}
	if null {
		out = append(out, `,null`...)
	}
	return append(out, `]}`...)
}

// appendObject appends the schema of an input object.
func (in *inputs) appendObject(out []byte, name string) []byte {
	def := in.schema.Types[name]
	out = append(out, `{"type":"object"`...)
	if text := strings.TrimSpace(def.Description); text != "" {
		out = rawjson.AppendText(append(out, `,"description":`...), api.Shorten(text))
	}
	out = append(out, `,"properties":{`...)
	var must []string
	for _, field := range def.Fields {
		out = rawjson.AppendKey(out, field.Name)
		out = in.appendValue(out, field.Type, remark{deprecation(field.Directives) + field.Description, field.DefaultValue})
		if required(field.Type, field.DefaultValue) {
			must = append(must, field.Name)
		}
	}
	out = append(out, '}')
	if len(must) > 0 {
		list, _ := json.Marshal(must) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	if def.Directives.ForName("oneOf") != nil {
		out = append(out, `,"minProperties":1,"maxProperties":1`...)
	}
	return append(out, `,"additionalProperties":false}`...)
}

// output describes what the default selection returns. Nothing in it is required, since
// callers may select other fields.
func (s *service) output(op *operation) json.RawMessage {
	value := s.appendOutput(nil, op.field.Type, op.selection)
	if op.field.Type.Elem != nil || len(op.selection) == 0 {
		member := "result"
		if op.field.Type.Elem != nil {
			member = "items"
		}
		return append(append(rawjson.AppendKey([]byte(`{"type":"object","properties":{`), member), value...), `}}`...)
	}
	out := rawjson.SetText(value, "type", "object") // it is never null here
	if op.paged {
		properties, _ := rawjson.Get(out, "properties")
		out = rawjson.Set(out, "properties", rawjson.Set(properties, api.NextPageToken, json.RawMessage(`{"type":"string"}`)))
	}
	return out
}

func (s *service) appendOutput(out []byte, kind *ast.Type, sub []*selection) []byte {
	out = append(out, '{')
	if kind.Elem != nil {
		out = append(appendTypeName(out, "array", !kind.NonNull), `,"items":`...)
		return append(s.appendOutput(out, kind.Elem, sub), '}')
	}
	def := s.schema.Types[kind.NamedType]
	switch {
	case def.IsCompositeType():
		out = append(appendTypeName(out, "object", !kind.NonNull), `,"properties":{`...)
		out = append(s.appendMembers(out, sub, map[string]bool{}), '}')
	case def.Kind == ast.Enum:
		out = appendTypeName(out, "string", !kind.NonNull)
	case builtin[def.Name] != "":
		out = appendTypeName(out, builtin[def.Name], !kind.NonNull)
	}
	return append(out, '}')
}

// appendMembers appends the fields of a selection. Those of the types of a union are members
// of the same object.
func (s *service) appendMembers(out []byte, list []*selection, known map[string]bool) []byte {
	for _, selected := range list {
		switch {
		case selected.field == nil:
			out = s.appendMembers(out, selected.sub, known)
		case !known[selected.field.Name]:
			known[selected.field.Name] = true
			out = s.appendOutput(rawjson.AppendKey(out, selected.field.Name), selected.field.Type, selected.sub)
		}
	}
	return out
}

// selection is a field that is selected, or what is selected of one of several types.
type selection struct {
	field *ast.FieldDefinition // nil: of a type
	on    string               // that type
	sub   []*selection
}

// Limits of the default selection. Levels below the first multiply the answer's size, so
// that they have fewer fields.
var maxFields = []int{40, 12, 3}

const (
	maxSelected = 80 // fields in total
	maxNested   = 12 // fields of one type that have fields themselves
	maxMembers  = 6  // types of a union
)

// telling are names of fields that tell what an object is; of large types they come first.
var telling = []string{"id", "name", "title", "number", "key", "slug", "login", "email", "url", "state", "status", "code", "message", "field"}

// chooser chooses the default selection of a type, level by level, so that the fields of
// the first levels are never missing for those of deeper ones.
type chooser struct {
	schema *ast.Schema
	left   int
	queue  []*pending
}

// pending is a type whose fields are to be chosen.
type pending struct {
	def   *ast.Definition
	level int
	path  []string // the types above
	into  *[]*selection
}

// choose returns the default selection of a type.
func choose(schema *ast.Schema, def *ast.Definition) []*selection {
	c := &chooser{schema: schema, left: maxSelected}
	var chosen []*selection
	c.queue = []*pending{{def: def, into: &chosen}}
	for len(c.queue) > 0 && c.left > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.expand(next)
	}
	if chosen = complete(chosen); len(chosen) == 0 {
		chosen = []*selection{typeName}
	}
	return chosen
}

// typeName selects the name of the type, which every type has.
var typeName = &selection{field: &ast.FieldDefinition{Name: "__typename", Type: ast.NonNullNamedType("String", nil)}}

// complete removes the fields of which nothing is selected.
func complete(list []*selection) []*selection {
	for _, s := range list {
		if len(s.sub) > 0 { // typeName is shared, and stays as it is
			s.sub = complete(s.sub)
		}
	}
	return slices.DeleteFunc(list, func(s *selection) bool { return s.sub != nil && len(s.sub) == 0 })
}

// expand chooses the fields of a type.
func (c *chooser) expand(p *pending) {
	switch {
	case p.def.Kind == ast.Union:
		c.expandUnion(p)
		return
	case p.level == 0 && isConnection(p.def, c.schema):
		c.expandConnection(p)
		return
	case p.def.Kind == ast.Interface:
		c.add(p.into, typeName)
	}
	for _, field := range leaves(c.schema, p.def, maxFields[p.level]) {
		c.add(p.into, &selection{field: field})
	}
	if p.level+1 == len(maxFields) {
		return
	}
	nested := 0
	for _, field := range p.def.Fields {
		if nested < maxNested && c.mayNest(p, field) {
			c.nest(p, field, p.level+1)
			nested++
		}
	}
}

func (c *chooser) add(into *[]*selection, s *selection) {
	if c.left > 0 {
		c.left--
		*into = append(*into, s)
	}
}

// nest selects a field that has fields itself.
func (c *chooser) nest(p *pending, field *ast.FieldDefinition, level int) {
	if c.left == 0 {
		return
	}
	s := &selection{field: field, sub: []*selection{}}
	c.add(p.into, s)
	c.queue = append(c.queue, &pending{
		def: c.schema.Types[field.Type.Name()], level: level, path: append(slices.Clone(p.path), p.def.Name), into: &s.sub,
	})
}

// mayNest reports whether a field has fields, and is none that leads back or that is a list
// with pages, which is asked for by itself.
func (c *chooser) mayNest(p *pending, field *ast.FieldDefinition) bool {
	def := c.schema.Types[field.Type.Name()]
	return def.IsCompositeType() && selectable(field) && !isConnection(def, c.schema) && def.Name != p.def.Name && !slices.Contains(p.path, def.Name)
}

// selectable reports whether a field can be selected without arguments, and should be.
func selectable(field *ast.FieldDefinition) bool {
	return !strings.HasPrefix(field.Name, "__") && field.Directives.ForName("deprecated") == nil &&
		!slices.ContainsFunc(field.Arguments, func(a *ast.ArgumentDefinition) bool { return required(a.Type, a.DefaultValue) })
}

// leaves are the fields of a type that are values, in the order of the schema; of many
// those that tell most.
func leaves(schema *ast.Schema, def *ast.Definition, most int) (list []*ast.FieldDefinition) {
	for _, field := range def.Fields {
		if schema.Types[field.Type.Name()].IsLeafType() && selectable(field) {
			list = append(list, field)
		}
	}
	if len(list) > most {
		rank := func(field *ast.FieldDefinition) int {
			if i := slices.Index(telling, field.Name); i >= 0 {
				return i
			}
			return len(telling)
		}
		slices.SortStableFunc(list, func(a, b *ast.FieldDefinition) int { return rank(a) - rank(b) })
		list = list[:most]
	}
	return list
}

// expandUnion chooses a few fields of each type of a union. Fields of the same name must
// have the same type.
func (c *chooser) expandUnion(p *pending) {
	c.add(p.into, typeName)
	kinds := map[string]string{}
	members := c.schema.GetPossibleTypes(p.def)
	for _, member := range members[:min(len(members), maxMembers)] {
		part := &selection{on: member.Name, sub: []*selection{}}
		for _, field := range leaves(c.schema, member, maxFields[1]) {
			if known, ok := kinds[field.Name]; !ok || known == field.Type.String() {
				kinds[field.Name] = field.Type.String()
				c.add(&part.sub, &selection{field: field})
			}
		}
		*p.into = append(*p.into, part)
	}
}

// isConnection reports whether a type is a list with pages by the conventions of Relay.
func isConnection(def *ast.Definition, schema *ast.Schema) bool {
	info := def.Fields.ForName("pageInfo")
	if info == nil || def.Fields.ForName("nodes") == nil && def.Fields.ForName("edges") == nil {
		return false
	}
	page := schema.Types[info.Type.Name()]
	return page.Fields.ForName("hasNextPage") != nil && page.Fields.ForName("endCursor") != nil
}

// expandConnection chooses the items of a list and what its next page needs.
func (c *chooser) expandConnection(p *pending) {
	for _, field := range leaves(c.schema, p.def, maxFields[1]) {
		c.add(p.into, &selection{field: field})
	}
	c.add(p.into, pageInfo(c.schema, p.def))
	if nodes := p.def.Fields.ForName("nodes"); nodes != nil {
		c.nest(p, nodes, 0)
		return
	}
	edges := p.def.Fields.ForName("edges")
	edge := c.schema.Types[edges.Type.Name()]
	node := edge.Fields.ForName("node")
	if node == nil || c.schema.Types[node.Type.Name()].IsLeafType() {
		c.nest(p, edges, 0)
		return
	}
	s := &selection{field: edges, sub: []*selection{}}
	c.add(p.into, s)
	c.nest(&pending{def: edge, path: append(slices.Clone(p.path), p.def.Name), into: &s.sub}, node, 0)
}

// pageInfo selects what the next page needs.
func pageInfo(schema *ast.Schema, def *ast.Definition) *selection {
	info := def.Fields.ForName("pageInfo")
	page := schema.Types[info.Type.Name()]
	return &selection{field: info, sub: []*selection{{field: page.Fields.ForName("hasNextPage")}, {field: page.Fields.ForName("endCursor")}}}
}

// textOf is a selection in GraphQL's language.
func textOf(list []*selection) string {
	parts := make([]string, len(list))
	for i, s := range list {
		if s.field != nil {
			parts[i] = s.field.Name
		} else {
			parts[i] = "... on " + s.on
		}
		if s.sub != nil {
			parts[i] += " { " + textOf(s.sub) + " }"
		}
	}
	return strings.Join(parts, " ")
}
