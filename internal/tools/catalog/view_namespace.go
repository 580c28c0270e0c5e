package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/embedding"
	"github.com/luanette/luanette/internal/tools/search"
)

// namespaceTools is the tools of one namespace, and the state that lives as long as the
// namespace. It is not changed once it is part of a view.
type namespaceTools struct {
	space      string
	tools      []tool.Info // by priority, then by name
	entries    map[string]*entry
	byOriginal map[string]*entry // renamed tools by their upstream's names; nil: none is renamed
	owner      tool.Source       // the source that claims the namespace; may be nil
	state      *namespaceState
	search     *lazyIndex
	origin     *namespaceTools // the same tools by their own names; nil: these are their own
}

// real is the namespace under its own name.
func (s *namespaceTools) real() *namespaceTools {
	if s.origin != nil {
		return s.origin
	}
	return s
}

// entry is one tool and what a call of it needs.
type entry struct {
	info    tool.Info
	source  tool.Source
	state   *namespaceState
	hidden  error                       // why no caller may use it; nil: callers may
	schema  atomic.Pointer[schema]      // compiled by the first call
	exposed atomic.Pointer[exposedInfo] // as the hub last exposed it; nil: not exposed

	variants variants // as single callers have it
}

// find looks up a tool by its name or by its upstream's name for it.
func (s *namespaceTools) find(name string) *entry {
	if e := s.entries[name]; e != nil {
		return e
	}
	return s.byOriginal[name]
}

// reserve allocates for the expected number of tools.
func (s *namespaceTools) reserve(tools int) {
	if s.tools == nil {
		s.tools, s.entries = make([]tool.Info, 0, tools), make(map[string]*entry, tools)
	}
}

// put adds a tool, and tells whether its name was free.
func (s *namespaceTools) put(info tool.Info, source tool.Source) bool {
	if s.entries[info.Name] != nil {
		return false
	}
	e := &entry{info: info, source: source}
	s.entries[info.Name] = e
	s.tools = append(s.tools, info)
	if info.Original != "" {
		if s.byOriginal == nil {
			s.byOriginal = map[string]*entry{}
		}
		s.byOriginal[info.Original] = e
	}
	return true
}

// priority is the highest priority of the tools.
func (s *namespaceTools) priority() int {
	if len(s.tools) == 0 {
		return 0
	}
	return s.tools[0].Priority
}

// lazyIndex is a search index that the first search builds.
type lazyIndex struct {
	mu      sync.Mutex
	index   *search.Index
	server  string // what it was built with
	learned int
	meaning *embedding.Tools // nil: there is no model, or it was not needed yet
}

// outdated tells whether enough has been learned since the index was built that it is
// worth reading all tools again. What is learned first matters most.
func (x *lazyIndex) outdated(known *Known) bool {
	return x.index == nil || x.server != known.Server || 8*(known.Learned-x.learned) > x.learned
}

// reuse takes over the state of the namespace from the last view, or returns the old
// value itself when nothing has changed.
func (s *namespaceTools) reuse(old *namespaceTools, limits func(string) Limits) *namespaceTools {
	if old == nil {
		s.state = newNamespaceState(s.space, limits)
		s.search = &lazyIndex{}
	} else {
		same, text := s.compare(old)
		if same {
			return old
		}
		s.state, s.search = old.state, &lazyIndex{}
		if text {
			s.search = old.search
		}
	}
	for _, e := range s.entries {
		e.state = s.state
	}
	return s
}

// compare tells whether two values are equal, and whether at least all that is searched
// is equal.
func (s *namespaceTools) compare(old *namespaceTools) (same, text bool) {
	if len(s.tools) != len(old.tools) {
		return false, false
	}
	same = s.owner == old.owner
	for i := range s.tools {
		a, b := &s.tools[i], &old.tools[i]
		if !a.Same(b) {
			return false, false
		}
		same = same && a.Stale == b.Stale && s.entries[a.Name].source == old.entries[a.Name].source
	}
	return same, true
}

// index is the search index. The first use builds it and adds its words to the lexicon.
func (s *namespaceTools) index(l *search.Lexicon, known Known) *search.Index {
	x := s.search
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outdated(&known) {
		x.index, x.server, x.learned = search.NewIndex(s.tools, known.Context), known.Server, known.Learned
		l.Add(x.index)
	}
	return x.index
}

// similar compares the tools with searches. The first use has them embedded.
func (s *namespaceTools) similar(model *embedding.Model, queries []embedding.Vector) []float32 {
	if model == nil {
		return nil
	}
	x := s.search
	x.mu.Lock()
	if x.meaning == nil {
		x.meaning = model.Prepare(s.tools)
	}
	tools := x.meaning
	x.mu.Unlock()
	return tools.Similar(queries)
}

// digest is a hash of everything that a client sees of a tool.
func digest(info *tool.Info) [sha256.Size]byte {
	all := make([]byte, 0, 2*len(info.Raw)+len(info.Description)+256) // schemas are in Raw too
	for _, part := range []string{info.Space, info.Name, info.Title, info.Description} {
		all = append(append(all, part...), 0)
	}
	for _, part := range []json.RawMessage{info.Input, info.Output, info.Raw} {
		all = append(append(all, part...), 0)
	}
	return sha256.Sum256(all)
}
