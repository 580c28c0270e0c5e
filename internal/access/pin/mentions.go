package pin

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// mentions knows the names that a definition has no business with: tools of other
// upstreams, and our own. Only names of two words and more count: "search" is
// everywhere.
type mentions struct {
	upstream string
	names    *naming
	own      map[string]bool
}

// namingFor is all that tools are called, and nothing else. It is never changed.
type naming struct {
	first map[string]string     // by name: the first namespace that has such a tool
	more  map[tool.Ref]bool     // the others
	alike map[string][]tool.Ref // those exposed by names that look the same
}

// compound tells whether a name, or a word that could be one, counts.
func compound(name string) bool { return len(name) >= 8 && strings.ContainsAny(name, "_-.") }

// namesOf gathers the names of all tools.
func namesOf(infos []tool.Info) *naming {
	n := &naming{first: make(map[string]string, 3*len(infos)), more: map[tool.Ref]bool{}, alike: exposedAlike(infos)}
	for i := range infos {
		ref := infos[i].Ref
		n.add(ref.Name, ref.Space)
		n.add(ref.String(), ref.Space)
		n.add(ref.Space+"__"+ref.Name, ref.Space)
	}
	return n
}

// namingFor is that of a list. When the tools are called as before it is taken over.
func (r *checkedList) namingFor(infos []tool.Info) *naming {
	if r != nil && slices.EqualFunc(r.from, infos, func(a, b tool.Info) bool { return a.Ref == b.Ref }) {
		return r.naming
	}
	return namesOf(infos)
}

func (n *naming) add(name, space string) {
	if !compound(name) {
		return
	}
	name = strings.ToLower(name)
	if first, ok := n.first[name]; !ok {
		n.first[name] = space
	} else if first != space {
		n.more[tool.Ref{Space: space, Name: name}] = true
	}
}

// ownNames are the names of our own tools as texts are read.
func ownNames(own []string) map[string]bool {
	names := make(map[string]bool, len(own))
	for _, name := range own {
		names[strings.ToLower(name)] = true
	}
	return names
}

// in is the first name of somebody else among words with blanks between, or "".
func (m *mentions) in(words string) string {
	if m == nil {
		return ""
	}
	for word := range strings.SplitSeq(words, " ") {
		if m.foreign(word) {
			return word
		}
	}
	return ""
}

// foreign tells whether a word is the name of somebody's tool, and of none of the
// upstream's own.
func (m *mentions) foreign(word string) bool {
	first, known := m.names.first[word]
	if known && (first == m.upstream || m.names.more[tool.Ref{Space: m.upstream, Name: word}]) {
		return false
	}
	return known || m.own[word]
}
