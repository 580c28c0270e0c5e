package hootenanny

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) graphTools() []toolset.Tool {
	return []toolset.Tool{
		define("graph_context", reads(), h.graphContext),
		define("graph_query", reads(), h.graphQuery),
	}
}

type graphContextIn struct {
	Tag         string `json:"tag,omitempty" jsonschema:"only those with this tag, such as type:midi" max:"128"`
	Creator     string `json:"creator,omitempty" jsonschema:"only those of this creator" max:"256"`
	Vibe        string `json:"vibe_search,omitempty" jsonschema:"words to search for in names, descriptions, tags and annotations" max:"512"`
	Limit       int    `json:"limit,omitempty" jsonschema:"maximum number; default 20" min:"1" max:"200"`
	Metadata    bool   `json:"include_metadata,omitempty" jsonschema:"show metadata too"`
	Annotations *bool  `json:"include_annotations,omitempty" jsonschema:"show annotations; default true"`
}

// GraphContext is the matching artifacts and a summary.
type GraphContext struct {
	Artifacts []ArtifactView `json:"artifacts"`
	Summary   GraphSummary   `json:"summary"`
}

// GraphSummary counts the matching artifacts.
type GraphSummary struct {
	Total  int            `json:"total" jsonschema:"number of all matches, counted up to 1000"`
	ByType map[string]int `json:"by_type" jsonschema:"counts of the artifacts shown"`
}

// Text has one line per item.
func (g GraphContext) Text() string {
	lines := []string{fmt.Sprintf("%d artifacts match (showing %d)", g.Summary.Total, len(g.Artifacts))}
	for _, v := range g.Artifacts {
		line := v.Text()
		for _, n := range v.Annotations {
			line += "\n    " + strings.TrimSpace(n.Vibe+" "+n.Message)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) graphContext(ctx context.Context, _ tool.Call, in graphContextIn) (GraphContext, error) {
	page, err := h.store.Search(ctx, Search{Tags: some(in.Tag), Creator: in.Creator, Vibe: in.Vibe, Limit: cmp.Or(in.Limit, 20)})
	if err != nil {
		return GraphContext{}, err
	}
	views, err := h.views(ctx, page.Artifacts)
	g := GraphContext{Artifacts: views, Summary: GraphSummary{Total: page.Total, ByType: map[string]int{}}}
	for i := range views {
		v := &views[i]
		g.Summary.ByType[typeOf(v)]++
		if !in.Metadata {
			v.Metadata = nil
		}
		if in.Annotations != nil && !*in.Annotations {
			v.Annotations = nil
		}
	}
	return g, err
}

// typeOf is an artifact's type by its tags, or else by its content.
func typeOf(v *ArtifactView) string {
	for _, tag := range v.Tags {
		if kind, ok := strings.CutPrefix(tag, "type:"); ok {
			return kind
		}
	}
	return kindOf(v.MIMEType)
}

type graphQueryIn struct {
	Query     string         `json:"query" jsonschema:"a filter such as: tag = type:midi and (vibe ~ calm or annotation ~ \"slow\") and not has(parent); or an artifact's id" min:"1" max:"4096"`
	Variables toolset.Object `json:"variables,omitempty" jsonschema:"values for $names in the query"`
	Limit     int            `json:"limit,omitempty" jsonschema:"maximum number; default 100" min:"1" max:"1000"`
}

// QueryResult is the artifacts that match a query.
type QueryResult struct {
	Results  []ArtifactView `json:"results"`
	Count    int            `json:"count"`
	Examined int            `json:"examined" jsonschema:"number of artifacts tested"`
	Complete bool           `json:"complete" jsonschema:"whether these are all matches"`
}

// Text has one line per item.
func (r QueryResult) Text() string {
	lines := []string{fmt.Sprintf("%d artifacts", r.Count)}
	for _, v := range r.Results {
		lines = append(lines, v.Text())
	}
	return strings.Join(lines, "\n")
}

// maxExamined is how many artifacts one query examines.
const maxExamined = 20_000

func (h *Backend) graphQuery(ctx context.Context, _ tool.Call, in graphQueryIn) (QueryResult, error) {
	if in.Limit == 0 {
		in.Limit = 100
	}
	if text := strings.TrimSpace(in.Query); isName(text) {
		a, err := h.get(ctx, text)
		if err != nil {
			return QueryResult{}, err
		}
		return QueryResult{Results: []ArtifactView{h.view(a)}, Count: 1, Examined: 1, Complete: true}, nil
	}
	q, err := parseQuery(in.Query, in.Variables)
	if err != nil {
		return QueryResult{}, err
	}
	return h.examine(ctx, q, in.Limit)
}

// isName reports whether a query is only the name of an artifact.
func isName(text string) bool {
	_, err := cas.ParsePrefix(strings.TrimPrefix(text, "artifact_"))
	return err == nil
}

// examine tests artifacts with a query, a page at a time, after the store's indexes
// have narrowed them.
func (h *Backend) examine(ctx context.Context, q condition, limit int) (QueryResult, error) {
	family := &family{hoot: h, ctx: ctx, known: map[string]map[cas.Ref]bool{}}
	search, err := h.narrowed(ctx, q)
	if err != nil {
		return QueryResult{}, err
	}
	result := QueryResult{Results: []ArtifactView{}}
	for {
		page, err := h.store.Search(ctx, search)
		if err != nil {
			return QueryResult{}, err
		}
		if err := h.addDetails(ctx, page.Artifacts); err != nil {
			return QueryResult{}, err
		}
		for i := range page.Artifacts {
			result.Examined++
			fits, err := q.holds(&page.Artifacts[i], family)
			if err != nil {
				return QueryResult{}, err
			}
			if !fits {
				continue
			}
			if result.Count == limit {
				return result, nil
			}
			result.Results = append(result.Results, h.view(page.Artifacts[i]))
			result.Count++
		}
		if page.Next == "" {
			result.Complete = true
			return result, nil
		}
		if result.Examined >= maxExamined {
			return result, nil
		}
		search.Cursor = page.Next
	}
}

// narrowed is the part of a query that an index can answer: the terms that must
// hold.
func (h *Backend) narrowed(ctx context.Context, q condition) (Search, error) {
	s := Search{Limit: 200}
	for _, t := range required(q) {
		if t.op != "=" {
			continue
		}
		switch t.field {
		case "tag":
			s.Tags = append(s.Tags, t.text)
		case "creator":
			if t.text != unknown { // which stands for no creator
				s.Creator = t.text
			}
		case "name":
			s.Name = t.text
		case "parent":
			parent, err := h.store.Get(ctx, t.text)
			if err != nil {
				return s, err
			}
			s.Parent = parent.Hash
		}
	}
	s.Tags = slices.Compact(s.Tags)
	return s, nil
}

// family finds ancestors and descendants, each set once per query.
type family struct {
	hoot  *Backend
	ctx   context.Context //nolint:containedctx // lives as long as one query
	known map[string]map[cas.Ref]bool
}

// of returns all descendants or all ancestors of an artifact.
func (f *family) of(relation, name string) (map[cas.Ref]bool, error) {
	key := relation + " " + name
	if set, done := f.known[key]; done {
		return set, nil
	}
	start, err := f.hoot.store.Get(f.ctx, name)
	if err != nil {
		return nil, err
	}
	set := map[cas.Ref]bool{}
	if relation == "descendant" { // name is its descendant: search upwards
		err = f.above(start, set)
	} else {
		err = f.below(start, set)
	}
	f.known[key] = set
	return set, err
}

func (f *family) above(a Artifact, set map[cas.Ref]bool) error {
	for !a.Parent.IsZero() && len(set) < maxExamined {
		set[a.Parent] = true
		var err error
		if a, err = f.hoot.store.Get(f.ctx, a.Parent.String()); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) below(a Artifact, set map[cas.Ref]bool) error {
	for waiting := []cas.Ref{a.Hash}; len(waiting) > 0 && len(set) < maxExamined; waiting = waiting[1:] {
		for search := (Search{Parent: waiting[0], Limit: 200}); ; {
			page, err := f.hoot.store.Search(f.ctx, search)
			if err != nil {
				return err
			}
			for _, child := range page.Artifacts {
				if !set[child.Hash] {
					set[child.Hash] = true
					waiting = append(waiting, child.Hash)
				}
			}
			if search.Cursor = page.Next; search.Cursor == "" {
				break
			}
		}
	}
	return nil
}
