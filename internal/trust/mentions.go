package trust

import (
	"strings"

	"github.com/luanette/luanette/internal/tool"
)

// mentions knows the names that a definition has no business with: tools of other
// upstreams, and our own. Only names of two words and more count: "search" is
// everywhere.
type mentions struct {
	upstream string
	names    map[string]map[string]bool // by name: the namespaces that have such a tool, "" being ours
}

// naming gathers the names of all tools.
func naming(infos []tool.Info, own []string) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	add := func(name, space string) {
		name = strings.ToLower(name)
		if len(name) < 8 || !strings.ContainsAny(name, "_-.") {
			return
		}
		if names[name] == nil {
			names[name] = map[string]bool{}
		}
		names[name][space] = true
	}
	for i := range infos {
		info := &infos[i]
		add(info.Name, info.Space)
		add(info.Ref.String(), info.Space)
		add(info.Space+"__"+info.Name, info.Space)
	}
	for _, name := range own {
		add(name, "")
	}
	return names
}

// in is the first name of somebody else in a text, or "".
func (m *mentions) in(text string) string {
	if m == nil {
		return ""
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	}) {
		word = strings.Trim(word, ".-")
		if owners := m.names[word]; owners != nil && !owners[m.upstream] {
			return word
		}
	}
	return ""
}
