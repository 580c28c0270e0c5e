package catalog

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/tool"
)

// shelf is one namespace's tools, with what belongs to the namespace as long as
// it exists. It is not changed once it stands in a view.
type shelf struct {
	space   string
	tools   []tool.Info // sorted by name
	entries map[string]*entry
	owner   tool.Source // who claims the namespace; nil when nobody does
	gear    *gear
	search  *lazyIndex
}

// entry is one tool and what a call of it needs.
type entry struct {
	info   tool.Info
	source tool.Source
	gear   *gear
	schema atomic.Pointer[schema] // made by the first call
}

// lazyIndex makes a shelf's index when somebody searches.
type lazyIndex struct {
	once  sync.Once
	index *index
}

// settle gives a fresh shelf its gear, the one of its predecessor where there is
// one, or returns the predecessor itself when nothing on it has changed.
func (s *shelf) settle(old *shelf, limits func(string) Limits) *shelf {
	if old == nil {
		s.gear = newGear(s.space, limits)
		s.search = &lazyIndex{}
	} else {
		same, text := s.compare(old)
		if same {
			return old
		}
		s.gear, s.search = old.gear, &lazyIndex{}
		if text {
			s.search = old.search
		}
	}
	for _, e := range s.entries {
		e.gear = s.gear
	}
	return s
}

// compare tells whether two shelves hold the same, and whether at least all that
// is searched is the same.
func (s *shelf) compare(old *shelf) (same, text bool) {
	if len(s.tools) != len(old.tools) {
		return false, false
	}
	same = s.owner == old.owner
	for i := range s.tools {
		a, b := &s.tools[i], &old.tools[i]
		if !sameTool(a, b) {
			return false, false
		}
		same = same && a.Stale == b.Stale && s.entries[a.Name].source == old.entries[a.Name].source
	}
	return same, true
}

// sameTool tells whether two definitions say the same.
func sameTool(a, b *tool.Info) bool {
	return a.Ref == b.Ref && a.Title == b.Title && a.Description == b.Description && a.Hints == b.Hints &&
		bytes.Equal(a.Input, b.Input) && bytes.Equal(a.Output, b.Output) && bytes.Equal(a.Raw, b.Raw)
}

// index is the shelf's search index, made at the first use, its words being
// entered in the lexicon.
func (s *shelf) index(l *lexicon) *index {
	s.search.once.Do(func() {
		s.search.index = newIndex(s.tools)
		l.add(s.search.index.words)
	})
	return s.search.index
}

// digest is a hash of all a client sees of a tool.
func digest(info *tool.Info) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(info.Space), []byte(info.Name), []byte(info.Title), []byte(info.Description),
		info.Input, info.Output, info.Raw,
	} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return [sha256.Size]byte(h.Sum(nil))
}
