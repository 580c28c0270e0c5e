package pin

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// mentions finds names of tools of other upstreams, and of our own, in a definition.
// Only names of two or more words count: "search" is too common.
type mentions struct {
	upstream string
	names    *naming
	own      map[string]bool
}

// naming holds the names of all tools. It is never changed.
type naming struct {
	first map[string]string            // by name: the first namespace of the server that has such a tool
	orgs  map[string]map[string]string // likewise of each organisation; nothing tells one of another's
	more  map[tool.Ref]bool            // the others
	alike map[string][]tool.Ref        // tools whose exposed names look the same
}

// compound reports whether a name has two or more words.
func compound(name string) bool { return len(name) >= 8 && strings.ContainsAny(name, "_-.") }

// namesOf collects the names of all tools.
func namesOf(infos []tool.Info) *naming {
	n := &naming{first: make(map[string]string, 3*len(infos)), orgs: map[string]map[string]string{}, more: map[tool.Ref]bool{}, alike: exposedAlike(infos)}
	for i := range infos {
		ref := infos[i].Ref
		n.add(ref.Name, ref.Space)
		n.add(ref.String(), ref.Space)
		n.add(ref.Space+"__"+ref.Name, ref.Space)
	}
	return n
}

// namingFor is the naming of a list. It is reused while the names stay the same.
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
	names := n.first
	if _, org := principal.SplitNamespace(space); org != "" {
		if n.orgs[org] == nil {
			n.orgs[org] = map[string]string{}
		}
		names = n.orgs[org]
	}
	if first, ok := names[name]; !ok {
		names[name] = space
	} else if first != space {
		n.more[tool.Ref{Space: space, Name: name}] = true
	}
}

// ownNames are the normalized names of our own tools.
func ownNames(own []string) map[string]bool {
	names := make(map[string]bool, len(own))
	for _, name := range own {
		names[strings.ToLower(name)] = true
	}
	return names
}

// in is the first foreign name among words separated by blanks, or "".
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

// foreign reports whether a word is the name of another upstream's tool, and of none of
// this upstream's.
func (m *mentions) foreign(word string) bool {
	_, org := principal.SplitNamespace(m.upstream)
	known := m.own[word]
	for _, names := range []map[string]string{m.names.first, m.names.orgs[org]} {
		first, named := names[word]
		if named && (first == m.upstream || m.names.more[tool.Ref{Space: m.upstream, Name: word}]) {
			return false
		}
		known = known || named
	}
	return known
}
