// Package graphql offers the queries and mutations of GraphQL services as tools.
package graphql

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// API is a GraphQL service. It implements api.API.
type API struct {
	env    api.Environment
	url    *url.URL
	client *httpcall.Client
	schema *description.Description[*service]
}

var _ api.Opener = Open

// Open reads the schema of a service, from a file or from the service itself, and watches
// it for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	u, err := url.Parse(env.Settings.Source)
	if err != nil {
		return nil, fault.New(fault.Config, "the url of the API is not valid") // the parse error would quote secrets in it
	}
	client, err := httpcall.New(env, env.Settings.Source)
	if err != nil {
		return nil, err
	}
	a := &API{env: env, url: u, client: client}
	a.schema, err = description.Open(ctx, env, description.Source[*service]{
		Ask:   a.introspect,
		Parse: func(text []byte) (*service, error) { return load(env, text) },
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return a, nil
}

// List implements api.API.
func (a *API) List(context.Context) (api.Listing, error) {
	s, problem := a.schema.Value()
	return description.Listing(s.listing, problem), nil
}

// Call implements api.API.
func (a *API) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	s, _ := a.schema.Value()
	switch op := s.operations[call.Tool]; {
	case op != nil:
		return a.callField(ctx, s, op, call)
	case call.Tool == toolQuery && s.offersDocuments:
		return a.callDocument(ctx, s, call)
	case call.Tool == toolTypes && s.offersDocuments:
		return s.describeTypes(call.Arguments)
	}
	return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
}

// Close implements api.API.
func (a *API) Close() {
	a.schema.Close()
	a.client.Close()
}

// service is what is known of a service from its schema.
type service struct {
	schema     *ast.Schema
	rules      *rules.Rules // that documents must follow
	target     string       // the service's URL without its query
	listing    api.Listing
	operations map[string]*operation // by the names of their tools
	offered    map[string]bool       // the query fields that may be asked for

	offersDocuments bool
}

// load makes the tools of a schema: SDL, or the answer to introspection.
func load(env api.Environment, text []byte) (*service, error) {
	sdl := string(text)
	if rawjson.First(text) == '{' {
		var err error
		if sdl, err = sdlOf(text); err != nil {
			return nil, err
		}
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: sdl})
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read the GraphQL schema").WithHint("it must be a schema in GraphQL's own language, or the JSON answer to introspection")
	}
	s := &service{schema: schema, rules: rules.NewDefaultRules(), operations: map[string]*operation{}, offered: map[string]bool{}}
	if u, err := url.Parse(env.Settings.Source); err == nil {
		s.target = u.Scheme + "://" + u.Host + u.EscapedPath()
		s.listing.Title = u.Host
	}
	s.addOperations(env)
	s.addDocuments(env)
	if schema.Subscription != nil {
		s.listing.LeftOut = append(s.listing.LeftOut, fmt.Sprintf("subscriptions are not supported: %d", len(schema.Subscription.Fields)))
	}
	s.listing.Instructions = strings.TrimSpace(api.Shorten(schema.Description) + "\nTools are the queries and mutations of a GraphQL service. Their argument fields chooses what is returned.")
	return s, nil
}

// addOperations adds a tool for each field of the query and mutation types.
func (s *service) addOperations(env api.Environment) {
	taken := map[string]int{toolQuery: 1, toolTypes: 1}
	var all []*operation
	for _, root := range []struct {
		kind ast.Operation
		def  *ast.Definition
	}{{ast.Query, s.schema.Query}, {ast.Mutation, s.schema.Mutation}} {
		if root.def == nil {
			continue
		}
		for _, field := range root.def.Fields {
			if !strings.HasPrefix(field.Name, "__") {
				all = append(all, s.newOperation(root.kind, field))
				taken[field.Name]++
			}
		}
	}
	for _, op := range all {
		op.setName(taken, api.NameBudget(env.Name))
		if !env.Settings.Selects(op.selectable()) {
			continue
		}
		s.operations[op.name] = op
		if op.kind == ast.Query {
			s.offered[op.field.Name] = true
		}
		s.listing.Tools = append(s.listing.Tools, s.definition(op))
	}
}

// addDocuments adds the tools for whole documents.
func (s *service) addDocuments(env api.Environment) {
	whole := api.Operation{Names: []string{toolQuery}, Method: string(ast.Query), Path: string(ast.Query)}
	if len(s.offered) == 0 || !env.Settings.Selects(whole) && (len(env.Settings.Include) == 0 || excluded(env.Settings, whole)) {
		return
	}
	s.offersDocuments = true
	s.listing.Tools = append(s.listing.Tools, s.documentDefinition(), typesDefinition(s.target))
}

// excluded reports whether an operation is excluded by name, whatever is included.
func excluded(settings api.Settings, op api.Operation) bool {
	settings.Include = nil
	return !settings.Selects(op)
}

// introspection asks a service for its schema. It asks for nothing that services of the
// edition of October 2016 lack.
const introspection = `query Introspection { __schema { queryType { name } mutationType { name } subscriptionType { name } types { ...Type } directives { name locations args { ...Input } } } }
fragment Type on __Type { kind name description
  fields(includeDeprecated: true) { name description args { ...Input } type { ...Ref } isDeprecated deprecationReason }
  inputFields { ...Input } interfaces { ...Ref } enumValues(includeDeprecated: true) { name description isDeprecated } possibleTypes { ...Ref } }
fragment Input on __InputValue { name description type { ...Ref } defaultValue }
fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`

// introspect asks the service for its schema.
func (a *API) introspect(ctx context.Context) ([]byte, error) {
	answer, err := a.send(ctx, ast.Query, request{document: introspection, operation: "Introspection"}, api.Call{Progress: func(float64, float64, string) {}})
	if err != nil {
		return nil, err
	}
	if _, ok := rawjson.Get(answer.data, "__schema"); !ok {
		reason := explain(answer.errors)
		if reason == "" {
			reason = textOfFailure(answer.failure)
		}
		return nil, fault.New(fault.Unavailable, "%s does not tell its schema: %s", a.url.Host, reason).
			WithHint("check the url and the credentials; if the service allows no introspection, name a file with its schema: api.schema_file")
	}
	return answer.data, nil
}

// textOfFailure is the text of a failure's result.
func textOfFailure(failure json.RawMessage) string {
	content, _ := rawjson.Get(failure, "content")
	items, _ := rawjson.Items(content)
	if len(items) == 0 {
		return "it answered nothing"
	}
	text, _ := rawjson.GetText(items[0], "text")
	return text
}

// sdlOf reads the answer to introspection, with or without data around it.
func sdlOf(text []byte) (string, error) {
	if data, ok := rawjson.Get(text, "data"); ok {
		text = data
	}
	var d introspected
	if err := json.Unmarshal(text, &d); err != nil || len(d.Schema.Types) == 0 {
		return "", fault.New(fault.InvalidParams, "the GraphQL schema is JSON, but no answer to introspection")
	}
	return writeSDL(d), nil
}

// introspected is the answer to introspection.
type introspected struct {
	Schema struct {
		QueryType, MutationType, SubscriptionType *struct{ Name string }
		Types                                     []describedType
		Directives                                []struct {
			Name      string
			Locations []string
			Args      []describedInput
		}
	} `json:"__schema"`
}

type describedType struct {
	Kind, Name, Description string
	Fields                  []struct {
		Name, Description string
		Args              []describedInput
		Type              describedRef
		IsDeprecated      bool
		DeprecationReason string
	}
	InputFields []describedInput
	Interfaces  []describedRef
	EnumValues  []struct {
		Name, Description string
		IsDeprecated      bool
	}
	PossibleTypes []describedRef
}

type describedInput struct {
	Name, Description string
	Type              describedRef
	DefaultValue      *string
}

type describedRef struct {
	Kind, Name string
	OfType     *describedRef
}

func (r *describedRef) String() string {
	switch {
	case r == nil:
		return "" // deeper than the question
	case r.Kind == "NON_NULL":
		return r.OfType.String() + "!"
	case r.Kind == "LIST":
		return "[" + r.OfType.String() + "]"
	}
	return r.Name
}

// standardScalars and what begins with two underscores are part of every schema.
var standardScalars = map[string]bool{"Int": true, "Float": true, "String": true, "Boolean": true, "ID": true}

var standardDirectives = map[string]bool{"include": true, "skip": true, "deprecated": true, "specifiedBy": true, "defer": true, "oneOf": true}

// writeSDL writes what a service described as a schema definition.
func writeSDL(d introspected) string {
	var out strings.Builder
	out.WriteString("schema {\n")
	for name, root := range map[string]*struct{ Name string }{"query": d.Schema.QueryType, "mutation": d.Schema.MutationType, "subscription": d.Schema.SubscriptionType} {
		if root != nil && root.Name != "" {
			fmt.Fprintf(&out, "  %s: %s\n", name, root.Name)
		}
	}
	out.WriteString("}\n")
	for _, directive := range d.Schema.Directives {
		if !standardDirectives[directive.Name] && len(directive.Locations) > 0 {
			fmt.Fprintf(&out, "directive @%s%s on %s\n", directive.Name, inputList(directive.Args), strings.Join(directive.Locations, " | "))
		}
	}
	for i := range d.Schema.Types {
		if t := &d.Schema.Types[i]; !standardScalars[t.Name] && !strings.HasPrefix(t.Name, "__") {
			t.write(&out)
		}
	}
	return out.String()
}

func (t *describedType) write(out *strings.Builder) {
	writeDescription(out, "", t.Description)
	switch t.Kind {
	case "SCALAR":
		fmt.Fprintf(out, "scalar %s\n", t.Name)
	case "ENUM":
		fmt.Fprintf(out, "enum %s {\n", t.Name)
		for _, value := range t.EnumValues {
			writeDescription(out, "  ", value.Description)
			fmt.Fprintf(out, "  %s%s\n", value.Name, deprecated(value.IsDeprecated, ""))
		}
		out.WriteString("}\n")
	case "UNION":
		fmt.Fprintf(out, "union %s = %s\n", t.Name, refNames(t.PossibleTypes, " | "))
	case "INPUT_OBJECT":
		fmt.Fprintf(out, "input %s {\n", t.Name)
		for _, field := range t.InputFields {
			writeDescription(out, "  ", field.Description)
			fmt.Fprintf(out, "  %s\n", field)
		}
		out.WriteString("}\n")
	default:
		t.writeObject(out)
	}
}

func (t *describedType) writeObject(out *strings.Builder) {
	keyword, implements := "type", ""
	if t.Kind == "INTERFACE" {
		keyword = "interface"
	}
	if len(t.Interfaces) > 0 {
		implements = " implements " + refNames(t.Interfaces, " & ")
	}
	fmt.Fprintf(out, "%s %s%s {\n", keyword, t.Name, implements)
	for _, field := range t.Fields {
		writeDescription(out, "  ", field.Description)
		fmt.Fprintf(out, "  %s%s: %s%s\n", field.Name, inputList(field.Args), &field.Type, deprecated(field.IsDeprecated, field.DeprecationReason))
	}
	out.WriteString("}\n")
}

func (i describedInput) String() string {
	text := i.Name + ": " + i.Type.String()
	if i.DefaultValue != nil {
		text += " = " + *i.DefaultValue
	}
	return text
}

func inputList(inputs []describedInput) string {
	if len(inputs) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("(")
	for _, input := range inputs {
		writeDescription(&out, "\n", input.Description)
		out.WriteString(input.String() + " ")
	}
	return out.String() + ")"
}

func refNames(refs []describedRef, separator string) string {
	names := make([]string, len(refs))
	for i := range refs {
		names[i] = refs[i].String()
	}
	return strings.Join(names, separator)
}

// writeDescription writes a description in the form of a JSON string, which is one of
// GraphQL, too.
func writeDescription(out *strings.Builder, indent, text string) {
	if text == "" {
		return
	}
	quoted, _ := json.Marshal(text) // texts always encode
	fmt.Fprintf(out, "%s%s\n%s", indent, quoted, indent)
}

func deprecated(is bool, reason string) string {
	if !is {
		return ""
	}
	if reason == "" {
		return " @deprecated"
	}
	quoted, _ := json.Marshal(reason) // texts always encode
	return " @deprecated(reason: " + string(quoted) + ")"
}
