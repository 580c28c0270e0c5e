package graphql

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// Tools for whole documents.
const (
	toolQuery = "graphql_query"
	toolTypes = "graphql_types"
)

// documentDefinition is the tool that sends a whole document. It is for queries only: each
// mutation is a tool, which policies and approvals are about.
func (s *service) documentDefinition() json.RawMessage {
	out := rawjson.SetText(nil, "name", toolQuery)
	out = rawjson.SetText(out, "description", "Sends a whole GraphQL document with queries, for what the tools of single queries cannot ask at once. "+
		"It is checked against the schema first. Mutations have tools of their own. "+toolTypes+" shows types; start with Query.")
	out = rawjson.Set(out, "inputSchema", json.RawMessage(`{"type":"object","properties":{`+
		`"query":{"type":"string","description":"The document.","maxLength":100000},`+
		`"variables":{"type":"object","description":"Values of its variables."},`+
		`"operation_name":{"type":"string","description":"Which operation, if the document has several."}},`+
		`"required":["query"],"additionalProperties":false}`))
	out = rawjson.Set(out, "annotations", json.RawMessage(api.ReadOnly))
	return s.withTarget(out, "query")
}

// callDocument sends a document of the caller.
func (a *API) callDocument(ctx context.Context, s *service, call api.Call) (json.RawMessage, error) {
	r := request{}
	r.document, _ = rawjson.GetText(call.Arguments, "query")
	r.operation, _ = rawjson.GetText(call.Arguments, "operation_name")
	r.variables, _ = rawjson.Get(call.Arguments, "variables")
	doc, err := s.check(r.document)
	if err != nil {
		return nil, err
	}
	op, err := s.checkWhole(doc, r.operation)
	if err != nil {
		return nil, err
	}
	if err := s.checkVariables(op, r.variables); err != nil {
		return nil, err
	}
	answer, err := a.send(ctx, ast.Query, r, call)
	if err != nil || answer.failure != nil {
		return answer.failure, err
	}
	return answer.result(answer.data), nil
}

func typesDefinition(target string) json.RawMessage {
	out := rawjson.SetText(nil, "name", toolTypes)
	out = rawjson.SetText(out, "description", "Shows types of the GraphQL schema: their fields with arguments and types. For writing selections and documents.")
	out = rawjson.Set(out, "inputSchema", json.RawMessage(`{"type":"object","properties":{`+
		`"names":{"type":"array","items":{"type":"string"},"description":"Names of types, such as Query.","maxItems":20},`+
		`"search":{"type":"string","description":"Lists the names of types and fields that contain this text."}},"additionalProperties":false}`))
	out = rawjson.Set(out, "annotations", json.RawMessage(api.ReadOnly))
	return rawjson.Set(out, "_meta", rawjson.SetText(nil, api.OperationKey, "schema of "+target))
}

// maxTypes bounds the text about types.
const maxTypes = 16 << 10

// describeTypes shows types of the schema.
func (s *service) describeTypes(arguments json.RawMessage) (json.RawMessage, error) {
	var asked struct {
		Names  []string
		Search string
	}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &asked); err != nil {
			return nil, fault.New(fault.InvalidParams, "the arguments are not valid: %v", err)
		}
	}
	if len(asked.Names) == 0 && asked.Search == "" {
		asked.Names = []string{s.schema.Query.Name}
	}
	var out strings.Builder
	for _, name := range asked.Names {
		def := s.schema.Types[name]
		if def == nil {
			return nil, fault.New(fault.InvalidParams, "there is no type %s", name).WithHint("search finds names")
		}
		s.writeType(&out, def)
	}
	if asked.Search != "" {
		s.find(&out, strings.ToLower(asked.Search))
	}
	text := out.String()
	if len(text) > maxTypes {
		text = strings.ToValidUTF8(text[:maxTypes], "") + "\n… there is more: ask for fewer types"
	}
	return api.Result(text, rawjson.SetText(nil, "text", text)), nil
}

// find lists the names of types and fields that contain a text.
func (s *service) find(out *strings.Builder, text string) {
	for _, name := range slices.Sorted(maps.Keys(s.schema.Types)) {
		def := s.schema.Types[name]
		if strings.HasPrefix(name, "__") {
			continue
		}
		if strings.Contains(strings.ToLower(name), text) {
			fmt.Fprintf(out, "%s %s\n", strings.ToLower(string(def.Kind)), name)
		}
		for _, field := range def.Fields {
			if strings.Contains(strings.ToLower(field.Name), text) && s.isShown(def, field) {
				fmt.Fprintf(out, "%s.%s: %s\n", name, field.Name, field.Type)
			}
		}
	}
}

// isShown reports whether a field of a type is shown: all but those of the query type that
// are not offered.
func (s *service) isShown(def *ast.Definition, field *ast.FieldDefinition) bool {
	return !strings.HasPrefix(field.Name, "__") && (def != s.schema.Query || s.offered[field.Name])
}

// writeType writes a type in GraphQL's language, with descriptions as comments.
func (s *service) writeType(out *strings.Builder, def *ast.Definition) {
	fmt.Fprintf(out, "%s %s", strings.ToLower(string(def.Kind)), def.Name)
	switch {
	case def.Kind == ast.Union:
		fmt.Fprintf(out, " = %s\n", strings.Join(def.Types, " | "))
		return
	case def.Kind == ast.Scalar:
		fmt.Fprintf(out, "%s\n", comment(def.Description))
		return
	case len(def.Interfaces) > 0:
		fmt.Fprintf(out, " implements %s", strings.Join(def.Interfaces, " & "))
	}
	fmt.Fprintf(out, " {%s\n", comment(def.Description))
	for _, value := range def.EnumValues {
		fmt.Fprintf(out, "  %s%s\n", value.Name, comment(value.Description))
	}
	for _, field := range def.Fields {
		if !s.isShown(def, field) {
			continue
		}
		fmt.Fprintf(out, "  %s%s: %s%s\n", field.Name, argumentsOf(field), field.Type, comment(deprecation(field.Directives)+field.Description))
	}
	out.WriteString("}\n")
}

func argumentsOf(field *ast.FieldDefinition) string {
	if len(field.Arguments) == 0 {
		return ""
	}
	parts := make([]string, len(field.Arguments))
	for i, arg := range field.Arguments {
		parts[i] = arg.Name + ": " + arg.Type.String()
		if arg.DefaultValue != nil {
			parts[i] += " = " + arg.DefaultValue.String()
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// comment is the first line of a description.
func comment(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return ""
	}
	return "  # " + line
}
