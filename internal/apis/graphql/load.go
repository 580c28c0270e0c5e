package graphql

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

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
