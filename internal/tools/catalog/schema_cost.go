package catalog

import (
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxCost is how many steps one check may take. A step is about a hundred
// nanoseconds; real schemas need tens.
const maxCost = 500_000

// costs estimates what a check against a schema can cost before it is made. A schema of
// a few lines can make the cost double with each level of a value. Such a check cannot
// be stopped once it runs, so it is not started.
type costs struct {
	mu    sync.Mutex
	known map[visit]int
}

// visit is a schema applied to a value that has depth levels below it.
type visit struct {
	schema *jsonschema.Schema
	depth  int
}

// affordable tells whether checking a value of that depth and number of parts costs at
// most maxCost.
func (c *costs) affordable(s *jsonschema.Schema, depth, parts int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[visit]int{}
	}
	return c.count(visit{s, depth})*max(parts, 1) <= maxCost
}

// count is how many schemas are applied, at most, to the value of a visit and to one
// path through the values below it. It stops past maxCost.
func (c *costs) count(v visit) int {
	if v.schema == nil || v.depth < 0 {
		return 0
	}
	if n, known := c.known[v]; known {
		return n
	}
	c.known[v] = 1 // the checker refuses references that do not go deeper
	n := 1
	for _, s := range inPlace(v.schema) {
		n = min(n+c.count(visit{s, v.depth}), maxCost+1)
	}
	choice := 0 // a value is in one of the named places
	for _, s := range v.schema.Properties {
		choice = max(choice, c.count(visit{s, v.depth - 1}))
	}
	for _, s := range v.schema.PrefixItems {
		choice = max(choice, c.count(visit{s, v.depth - 1}))
	}
	for _, s := range below(v.schema) {
		choice = min(choice+c.count(visit{s, v.depth - 1}), maxCost+1)
	}
	n = min(n+choice, maxCost+1)
	c.known[v] = n
	return n
}

// inPlace are the schemas applied to the same value.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	all = append(append(append(all, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, d := range s.DependentSchemas {
		all = append(all, d)
	}
	for _, d := range s.Dependencies {
		if inner, ok := d.(*jsonschema.Schema); ok {
			all = append(all, inner)
		}
	}
	return all
}

// below are the schemas that may all be applied to one value inside this one.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	for _, p := range s.PatternProperties {
		all = append(all, p)
	}
	for _, maybe := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch inner := maybe.(type) {
		case *jsonschema.Schema:
			all = append(all, inner)
		case []*jsonschema.Schema:
			all = append(all, inner...)
		}
	}
	return all
}

// measure returns the depth of a value and the number of its parts.
func measure(value any) (depth, parts int) {
	inner := func(v any) {
		d, p := measure(v)
		depth, parts = max(depth, d+1), parts+p
	}
	switch v := value.(type) {
	case map[string]any:
		for _, x := range v {
			inner(x)
		}
	case []any:
		for _, x := range v {
			inner(x)
		}
	}
	return depth, parts + 1
}
