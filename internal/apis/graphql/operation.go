package graphql

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
)

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
	if text == "" {
		text = "The " + string(op.kind) + " " + op.field.Name + " of a GraphQL service; it returns " + op.field.Type.String() + "."
	}
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
