package graphql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

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
