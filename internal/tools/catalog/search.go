package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/search"
)

// DefaultHits is how many tools a search returns when it does not say.
const DefaultHits = search.DefaultHits

// Query is a search for tools.
type Query struct {
	Text      string                      // words, in any order; empty finds every tool
	Others    []string                    // other wordings of the same
	Namespace string                      // only there; empty means everywhere, our own tools included
	Only      func(namespace string) bool // only there; "" is our own tools and scripts; nil: everywhere
	Limit     int                         // zero or less means DefaultHits
}

// includes reports whether the tools of a namespace are searched.
func (q *Query) includes(namespace string) bool {
	return (q.Namespace == "" || q.Namespace == namespace) && (q.Only == nil || q.Only(namespace))
}

// Hit is one tool found. Scores compare within one search only.
type Hit = search.Hit

// Found is what a search found.
type Found = search.Result

// Known is what is known about the tools of a namespace beyond their definitions.
type Known struct {
	search.Context
	Learned int // how often Fields has changed
}

// Usage knows after which searches tools were called.
type Usage interface {
	// Recall returns what the caller called after searches with these words. current
	// returns the definition of a tool, nil if there is none. Tools have their own names,
	// not those of the caller.
	Recall(ctx context.Context, words []string, current func(tool.Ref) *tool.Info) []search.Use
	// Searched tells what the caller searched for and what it was shown, best first.
	Searched(ctx context.Context, words []string, shown []tool.Ref)
}

type noUsage struct{}

func (noUsage) Recall(context.Context, []string, func(tool.Ref) *tool.Info) []search.Use { return nil }

func (noUsage) Searched(context.Context, []string, []tool.Ref) {}

// Search finds tools by their definitions, best first; equal ones are in catalog order,
// so that the result is stable. The second result is how many tools matched in all.
func (c *Catalog) Search(ctx context.Context, q Query) ([]Hit, int) {
	found := c.search(ctx, q)
	return found.Hits, found.Total
}

// SearchAll is Search with all that is known about the result. What the caller calls next
// is taken for what it searched.
func (c *Catalog) SearchAll(ctx context.Context, q Query) Found {
	found := c.search(ctx, q)
	if words := search.Words(q.texts()); len(words) > 0 {
		refs := make([]tool.Ref, len(found.Hits))
		for i := range found.Hits {
			refs[i] = c.own(ctx, found.Hits[i].Ref)
		}
		c.options.Usage.Searched(ctx, words, refs)
	}
	return found
}

func (q *Query) texts() []string { return append([]string{q.Text}, q.Others...) }

func (c *Catalog) search(ctx context.Context, q Query) Found {
	v := c.visible(ctx, c.listed(ctx, c.own(ctx, tool.Ref{Space: q.Namespace}).Space))
	parts := c.parts(v, &q)
	return search.Run(search.Query{Texts: q.texts(), Limit: q.Limit, Used: c.recall(ctx, &q, v)}, parts)
}

// parts are the namespaces of a view that a query is about.
func (c *Catalog) parts(v *view, q *Query) (parts []search.Part) {
	for _, name := range v.sorted {
		if n := v.namespaces[name]; q.includes(name) {
			real := n.real()
			special := c.isSpecial(real.space) && q.Only == nil && q.Namespace == ""
			parts = append(parts, search.Part{Tools: n.tools, Index: real.index(c.options.Known(real.space)), Special: special})
		}
	}
	return parts
}

// recall returns what the caller called after searches with words of this one, by the
// caller's names. Usage knows tools by their own names.
func (c *Catalog) recall(ctx context.Context, q *Query, v *view) []search.Use {
	words := search.Words(q.texts())
	if len(words) == 0 {
		return nil
	}
	uses := c.options.Usage.Recall(ctx, words, func(ref tool.Ref) *tool.Info {
		called := shown(ctx, ref)
		if c.own(ctx, called) != ref {
			return nil // the caller's name of it stands for another tool
		}
		if e := v.find(called); e != nil {
			return &e.info
		}
		return nil
	})
	for i := range uses {
		uses[i].Ref = shown(ctx, uses[i].Ref)
	}
	return uses
}

// isSpecial reports whether the tools of a namespace are found by specific words first.
func (c *Catalog) isSpecial(namespace string) bool {
	return namespace == "" || c.options.Special != nil && c.options.Special(namespace)
}
