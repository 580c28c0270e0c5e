package graphql

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

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
