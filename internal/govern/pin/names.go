package pin

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// shadow is a name that imitates another.
type shadow struct {
	of      string // the other tool
	own     bool   // the other is one of ours
	refused bool   // it cannot be used, even if it is approved
}

// shadows finds tools whose names imitate others. What cannot be an accident is
// refused: a name in letters of another script that looks like an existing name, and a
// name made so that it is exposed like another upstream's. A plain name that one of our
// own tools has is only flagged, because namespaces keep the two apart.
func shadows(infos []tool.Info, names *naming, own []string, settings *Settings) map[tool.Ref]shadow {
	found := map[tool.Ref]shadow{}
	ours := map[string]string{}
	for _, name := range own {
		ours[skeleton(name)] = name
	}
	for i := range infos {
		ref := infos[i].Ref
		if name, ok := ours[skeleton(ref.Name)]; ok {
			found[ref] = shadow{of: name, own: true, refused: !plain(ref.Name)}
		}
	}
	for _, alike := range names.alike {
		decideAlike(alike, settings, found)
		for _, inside := range withinAlike(alike) {
			decideAlike(inside, settings, found)
		}
	}
	return found
}

// exposedAlike are the tools whose exposed names look the same, by that name. There are
// almost none, so nothing is allocated before a second one appears.
func exposedAlike(infos []tool.Info) map[string][]tool.Ref {
	first, groups := make(map[string]int, len(infos)), map[string][]tool.Ref{}
	for i := range infos {
		ref := infos[i].Ref
		if i > 0 && ref == infos[i-1].Ref { // a tool does not imitate itself
			continue
		}
		space, org := principal.SplitNamespace(ref.Space)
		looks := skeleton(space + "__" + ref.Name)
		if org != "" { // nobody sees those of two organisations
			looks += "@" + org
		}
		before, taken := first[looks]
		switch {
		case !taken:
			first[looks] = i
		case groups[looks] == nil:
			groups[looks] = []tool.Ref{infos[before].Ref, ref}
		default:
			groups[looks] = append(groups[looks], ref)
		}
	}
	return groups
}

// withinAlike groups those that look the same within one namespace.
func withinAlike(alike []tool.Ref) map[tool.Ref][]tool.Ref {
	groups := map[tool.Ref][]tool.Ref{}
	for _, ref := range alike {
		looks := tool.Ref{Space: ref.Space, Name: skeleton(ref.Name)}
		groups[looks] = append(groups[looks], ref)
	}
	maps.DeleteFunc(groups, func(_ tool.Ref, inside []tool.Ref) bool { return len(inside) < 2 })
	return groups
}

// decideAlike decides between tools that look alike. The one with a plain name in a
// configured namespace stays; those that imitate across namespaces or with other
// letters are refused; where nothing distinguishes them both are flagged.
func decideAlike(alike []tool.Ref, settings *Settings, found map[tool.Ref]shadow) {
	var better [maxSuspicion + 1]int // by rank: the first of a lower one, or -1
	for rank := range better {
		better[rank] = slices.IndexFunc(alike, func(ref tool.Ref) bool { return suspicion(ref, settings) < rank })
	}
	last := len(alike) - 1
	for i, ref := range alike {
		at := better[suspicion(ref, settings)]
		switch {
		case found[ref].refused:
		case at >= 0:
			found[ref] = shadow{of: alike[at].String(), refused: true}
		case i < last:
			found[ref] = shadow{of: alike[last].String()}
		default:
			found[ref] = shadow{of: alike[last-1].String()}
		}
	}
}

const maxSuspicion = 7

// suspicion ranks a tool by how suspicious its name is, up to worst.
func suspicion(ref tool.Ref, settings *Settings) (rank int) {
	if !plain(ref.Name) {
		rank += 4
	}
	if strings.Contains(ref.Name, "__") {
		rank += 2
	}
	if !settings.Owned[ref.Space] {
		rank++
	}
	return rank
}

func (s shadow) finding() Finding {
	if s.own {
		return Finding{ShadowsOwn, "name", "one of our own tools is called " + s.of}
	}
	return Finding{ShadowsOther, "name", "it imitates " + Visible(s.of)}
}
