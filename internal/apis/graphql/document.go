package graphql

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/luanette/luanette/internal/apis/api"
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
