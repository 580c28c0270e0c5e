package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// maxTokens bounds what a document consists of.
const maxTokens = 10_000

// request is what is sent.
type request struct {
	document  string
	variables json.RawMessage // an object
	operation string          // its name; empty: there is only one
}

// body is the request in JSON.
func (r request) body() []byte {
	out := rawjson.SetText(nil, "query", r.document)
	if len(r.variables) > 0 {
		out = rawjson.Set(out, "variables", r.variables)
	}
	if r.operation != "" {
		out = rawjson.SetText(out, "operationName", r.operation)
	}
	return out
}

// request makes the document of a call, with a variable for each argument.
func (s *service) request(op *operation, arguments json.RawMessage) (request, error) {
	var declared, passed []string
	variables := json.RawMessage(`{}`)
	for _, arg := range op.field.Arguments {
		value, given := rawjson.Get(arguments, arg.Name)
		if value, given = op.pageArgument(arg, arguments, value, given); !given {
			continue
		}
		declared = append(declared, "$"+arg.Name+": "+arg.Type.String())
		passed = append(passed, arg.Name+": $"+arg.Name)
		variables = rawjson.Set(variables, arg.Name, value)
	}
	r := request{document: string(op.kind), variables: variables}
	if len(declared) > 0 {
		r.document += "(" + strings.Join(declared, ", ") + ")"
	}
	r.document += " { " + op.field.Name
	if len(passed) > 0 {
		r.document += "(" + strings.Join(passed, ", ") + ")"
	}
	fields, err := op.chosen(arguments)
	if err != nil {
		return r, err
	}
	if fields != "" {
		r.document += " { " + fields + " }"
	}
	r.document += " }"
	doc, err := s.check(r.document)
	if err != nil {
		return r, err
	}
	return r, s.checkShape(doc, op)
}

// pageArgument is the value of an argument that chooses a page.
func (op *operation) pageArgument(arg *ast.ArgumentDefinition, arguments, value json.RawMessage, given bool) (json.RawMessage, bool) {
	if !op.paged {
		return value, given
	}
	switch arg.Name {
	case "after":
		if token, ok := rawjson.GetText(arguments, api.PageToken); ok && token != "" {
			return rawjson.AppendText(nil, token), true
		}
	case "first":
		_, last := rawjson.Get(arguments, "last")
		if !given && !last && arg.DefaultValue == nil {
			return json.RawMessage("20"), true
		}
	}
	return value, given
}

// chosen is the selection of a call.
func (op *operation) chosen(arguments json.RawMessage) (string, error) {
	if len(op.selection) == 0 {
		return "", nil
	}
	fields, _ := rawjson.GetText(arguments, op.fieldsArgument())
	fields = strings.TrimSpace(fields)
	if strings.HasPrefix(fields, "{") && strings.HasSuffix(fields, "}") {
		fields = strings.TrimSpace(fields[1 : len(fields)-1])
	}
	switch {
	case fields == "":
		return op.defaults, nil
	case strings.Contains(fields, "#"):
		return "", fault.New(fault.InvalidParams, "%s contains a comment", op.fieldsArgument())
	case op.paged:
		fields += " pageInfo { hasNextPage endCursor }"
	}
	return fields, nil
}

// check parses a document and holds it against the schema.
func (s *service) check(document string) (*ast.QueryDocument, error) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Name: "document", Input: document}, maxTokens)
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "the GraphQL is not valid: %s", messageOf(err))
	}
	if list := validator.ValidateWithRules(s.schema, doc, s.rules); len(list) > 0 {
		texts := make([]string, 0, len(list))
		for _, problem := range list[:min(len(list), 5)] {
			texts = append(texts, problem.Message)
		}
		return nil, fault.New(fault.InvalidParams, "the GraphQL does not fit the service's schema: %s", strings.Join(texts, "; ")).
			WithHint("%s shows the fields of types", toolTypes)
	}
	return doc, nil
}

func messageOf(err error) string {
	var problem *gqlerror.Error
	if errors.As(err, &problem) {
		return problem.Message
	}
	return err.Error()
}

// checkShape checks that the chosen fields have not made something else of the document:
// one operation with one field.
func (s *service) checkShape(doc *ast.QueryDocument, op *operation) error {
	refused := fault.New(fault.InvalidParams, "%s is not a selection on %s", op.fieldsArgument(), op.field.Type.Name())
	if len(doc.Operations) != 1 || len(doc.Fragments) > 0 || len(doc.Operations[0].SelectionSet) != 1 {
		return refused
	}
	root, ok := doc.Operations[0].SelectionSet[0].(*ast.Field)
	if !ok || root.Name != op.field.Name || doc.Operations[0].Operation != op.kind {
		return refused
	}
	if alias := misleading(root.SelectionSet); alias != "" {
		return fault.New(fault.InvalidParams, "the alias %s is the name of another field", alias)
	}
	return nil
}

// misleading finds an alias that is the name of another field, so that the result would not
// be as the tool's output schema says.
func misleading(set ast.SelectionSet) string {
	for _, item := range set {
		var alias string
		switch item := item.(type) {
		case *ast.Field:
			if item.Alias != item.Name && item.ObjectDefinition != nil && item.ObjectDefinition.Fields.ForName(item.Alias) != nil {
				return item.Alias
			}
			alias = misleading(item.SelectionSet)
		case *ast.InlineFragment:
			alias = misleading(item.SelectionSet)
		}
		if alias != "" {
			return alias
		}
	}
	return ""
}

// rootFields are the fields that an operation asks the query type for.
func rootFields(doc *ast.QueryDocument, set ast.SelectionSet) (names []string) {
	for _, item := range set {
		switch item := item.(type) {
		case *ast.Field:
			names = append(names, item.Name)
		case *ast.InlineFragment:
			names = append(names, rootFields(doc, item.SelectionSet)...)
		case *ast.FragmentSpread:
			if fragment := doc.Fragments.ForName(item.Name); fragment != nil { // there are no cycles in valid documents
				names = append(names, rootFields(doc, fragment.SelectionSet)...)
			}
		}
	}
	return names
}

// checkWhole checks a document of a caller: it has queries only, and asks only for fields
// that are offered. It returns the operation that is meant.
func (s *service) checkWhole(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, error) {
	for _, op := range doc.Operations {
		if op.Operation != ast.Query {
			return nil, fault.New(fault.InvalidParams, "the document has a %s", op.Operation).
				WithHint("call the tool of a mutation; documents may only query")
		}
		for _, field := range rootFields(doc, op.SelectionSet) {
			if !s.offered[field] && !strings.HasPrefix(field, "__") {
				return nil, fault.New(fault.InvalidParams, "the field %s is not offered", field)
			}
		}
	}
	if len(doc.Operations) == 1 && (name == "" || doc.Operations[0].Name == name) {
		return doc.Operations[0], nil
	}
	i := slices.IndexFunc(doc.Operations, func(op *ast.OperationDefinition) bool { return op.Name == name && name != "" })
	if i < 0 {
		return nil, fault.New(fault.InvalidParams, "operation_name names none of the %d operations of the document", len(doc.Operations))
	}
	return doc.Operations[i], nil
}

// checkVariables checks the values of variables against their types.
func (s *service) checkVariables(op *ast.OperationDefinition, variables json.RawMessage) error {
	values := map[string]any{}
	if len(variables) > 0 {
		if err := json.Unmarshal(variables, &values); err != nil {
			return fault.New(fault.InvalidParams, "variables is not an object")
		}
	}
	if _, err := validator.VariableValues(s.schema, op, values); err != nil {
		return fault.New(fault.InvalidParams, "the variables do not fit the document: %s", strings.TrimPrefix(err.Error(), "input: "))
	}
	return nil
}

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

// answer is what a service answered.
type answer struct {
	data    json.RawMessage   // an object
	errors  []json.RawMessage // about fields that are missing in it
	failure json.RawMessage   // the result of a call that has no data; else nil
}

// send sends a request. Queries may be repeated, mutations only if the service recognizes
// them.
func (a *API) send(ctx context.Context, kind ast.Operation, r request, call api.Call) (answer, error) {
	body := r.body()
	sent := httpcall.Request{
		Method: http.MethodPost, URL: a.url, Template: a.url.EscapedPath(), Repeatable: kind == ast.Query,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/graphql-response+json, application/json;q=0.9"}},
		Body: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		},
		Progress: func(message string) { call.Progress(0, 0, message) },
	}
	a.client.Identify(&sent)
	response, err := a.client.Do(ctx, sent)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := a.client.Read(response)
	if err != nil {
		return answer{}, err
	}
	return a.read(response, text)
}

// read reads an answer: data, errors, or both.
func (a *API) read(response *http.Response, text []byte) (found answer, err error) {
	body := httpcall.Compact(text)
	data, hasData := rawjson.Get(body, "data")
	raw, hasErrors := rawjson.Get(body, "errors")
	if hasErrors {
		found.errors, _ = rawjson.Items(raw)
	}
	switch {
	case !hasData && len(found.errors) == 0 && response.StatusCode >= 300:
		found.failure = a.client.Failure(response, text)
	case !hasData && len(found.errors) == 0:
		return found, fault.New(fault.Upstream, "%s did not answer as a GraphQL service: neither data nor errors", a.url.Host).
			WithHint("check the url")
	case !rawjson.IsObject(data):
		found.failure = a.failure(found.errors, response.StatusCode)
	default:
		found.data = data
	}
	return found, nil
}

// failure is the result of a call whose errors left no data.
func (a *API) failure(list []json.RawMessage, status int) json.RawMessage {
	text := explain(list)
	if status == http.StatusUnauthorized || strings.Contains(text, "UNAUTHENTICATED") {
		text += "\n" + a.env.RefusedCredentials()
	}
	return api.Failure(text, rawjson.Set(nil, "errors", shown(list)))
}

// Limits of the errors that are shown.
const (
	maxErrors    = 10
	maxErrorText = 4 << 10
)

// shown are the errors that are shown, as a list.
func shown(list []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, problem := range list[:min(len(list), maxErrors)] {
		if len(problem) > maxErrorText {
			message, _ := rawjson.GetText(problem, "message")
			problem = rawjson.SetText(nil, "message", message[:min(len(message), maxErrorText)])
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, problem...)
	}
	return append(out, ']')
}

// explain is the errors as text: message, place in the answer and code.
func explain(list []json.RawMessage) string {
	lines := make([]string, 0, len(list))
	for _, problem := range list[:min(len(list), maxErrors)] {
		line, _ := rawjson.GetText(problem, "message")
		line = strings.ToValidUTF8(line[:min(len(line), maxErrorText)], "")
		if place, ok := rawjson.Get(problem, "path"); ok && !rawjson.IsNull(place) {
			items, _ := rawjson.Items(place)
			names := make([]string, len(items))
			for i, item := range items {
				names[i] = strings.Trim(string(item), `"`)
			}
			line += " (at " + strings.Join(names, ".") + ")"
		}
		for _, path := range []string{"extensions/code", "type"} {
			value, _ := rawjson.Path(problem, path)
			if code, ok := rawjson.Text(value); ok {
				line += " [" + code + "]"
				break
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// partialErrors is the member of results with the errors of fields that are missing.
const partialErrors = "graphql_errors"

// result is the result with a value of the data, and with the errors of what is missing.
func (w answer) result(value json.RawMessage) json.RawMessage {
	structured := api.Object(value)
	text := string(value)
	if _, paged := rawjson.Get(structured, api.NextPageToken); paged {
		text = string(structured)
	}
	if len(w.errors) > 0 {
		structured = rawjson.Set(structured, partialErrors, shown(w.errors))
		text = "A part of the answer is missing: " + explain(w.errors) + "\n" + text
	}
	return api.Result(text, structured)
}

// callField calls the tool of a query or mutation.
func (a *API) callField(ctx context.Context, s *service, op *operation, call api.Call) (json.RawMessage, error) {
	r, err := s.request(op, call.Arguments)
	if err != nil {
		return nil, err
	}
	answer, err := a.send(ctx, op.kind, r, call)
	if err != nil || answer.failure != nil {
		return answer.failure, err
	}
	value, _ := rawjson.Get(answer.data, op.field.Name)
	switch {
	case len(answer.errors) > 0 && rawjson.IsNull(value):
		return a.failure(answer.errors, http.StatusOK), nil
	case value == nil:
		value = json.RawMessage("null")
	case op.paged && rawjson.IsObject(value):
		value = withNextPage(value)
	}
	return answer.result(value), nil
}

// withNextPage adds the token of the next page to a list that has one.
func withNextPage(list json.RawMessage) json.RawMessage {
	info, _ := rawjson.Get(list, "pageInfo")
	cursor, ok := rawjson.GetText(info, "endCursor")
	if !ok || cursor == "" || !rawjson.GetBool(info, "hasNextPage") {
		return list
	}
	return rawjson.SetText(list, api.NextPageToken, cursor)
}
