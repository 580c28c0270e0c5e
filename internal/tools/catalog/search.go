package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/core/principal"
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

// Search finds tools by their definitions, best first; equal ones are in catalog order,
// so that the result is stable. The second result is how many tools matched in all.
func (c *Catalog) Search(ctx context.Context, q Query) ([]Hit, int) {
	found := c.SearchAll(ctx, q)
	return found.Hits, found.Total
}

// SearchAll is Search with all that is known about the result.
func (c *Catalog) SearchAll(ctx context.Context, q Query) Found {
	v := c.visible(ctx, c.listed(ctx, q.Namespace))
	var parts []search.Part
	for _, name := range v.sorted {
		if n := v.namespaces[name]; q.includes(name) {
			parts = append(parts, search.Part{Tools: n.tools, Index: n.index(c.lexicon), Special: c.isSpecial(name) && q.Only == nil && q.Namespace == ""})
		}
	}
	if q.Namespace == "" && q.Only == nil && tool.ScopeOf(ctx) == nil && principal.Of(ctx).Admin() {
		c.lexicon.Prune(parts)
	}
	return search.Run(search.Query{Texts: append([]string{q.Text}, q.Others...), Limit: q.Limit}, parts, c.lexicon)
}

// isSpecial reports whether the tools of a namespace are found by specific words first.
func (c *Catalog) isSpecial(namespace string) bool {
	return namespace == "" || c.special != nil && c.special(namespace)
}
