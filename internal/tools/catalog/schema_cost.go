package catalog

import (
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxCost is how many steps one check may take. A step is about a hundred
// nanoseconds; real schemas need tens.
const maxCost = 500_000

// costs bounds what checks against one schema can cost before they are made. A
// schema of a few lines can be written so that looking at a value twice as deep
// takes twice as many looks at everything above it; such a check cannot be
// stopped once it runs, so it is not begun.
type costs struct {
	mu    sync.Mutex
	known map[visit]int
}

// visit is a schema looking at a value below which there are depth levels.
type visit struct {
	schema *jsonschema.Schema
	depth  int
}

// affordable tells whether checking a value of that depth and with so many
// parts stays within bounds.
func (c *costs) affordable(s *jsonschema.Schema, depth, parts int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[visit]int{}
	}
	return c.count(visit{s, depth})*max(parts, 1) <= maxCost
}

// count is how many schemas look, at most, at the value of a visit and at one
// path through the values below it. It stops counting past dearest.
func (c *costs) count(v visit) int {
	if v.schema == nil || v.depth < 0 {
		return 0
	}
	if n, known := c.known[v]; known {
		return n
	}
	c.known[v] = 1 // what refers to itself without going deeper is refused by the checker
	n := 1
	for _, s := range inPlace(v.schema) {
		n = min(n+c.count(visit{s, v.depth}), maxCost+1)
	}
	choice := 0 // of several named places a value stands in one
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

// inPlace are the schemas that look at the same value.
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

// below are the schemas that may all look at one value inside of this one.
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

// measure tells how deep a value is and how many parts it has.
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
