package trust

import (
	"strings"

	"github.com/luanette/luanette/internal/tool"
)

// shadow is a name that passes for another.
type shadow struct {
	of      string // the other tool
	own     bool   // which is one of ours
	refused bool   // nobody may use it, whatever is approved
}

// shadows finds tools whose names pass for others'. What cannot be an accident is
// refused: a name in letters of another script that looks like an existing one,
// and a name made to come out like another upstream's exposed one. A plain name
// that one of our own tools has is only flagged, as namespaces keep the two apart.
func shadows(infos []tool.Info, own []string, settings *Settings) map[tool.Ref]shadow {
	found := map[tool.Ref]shadow{}
	ours := map[string]string{}
	for _, name := range own {
		ours[skeleton(name)] = name
	}
	exposed := map[string][]tool.Ref{} // by skeleton of the name it is exposed by
	within := map[tool.Ref][]tool.Ref{}
	for i := range infos {
		ref := infos[i].Ref
		looks := skeleton(ref.Name)
		if name, ok := ours[looks]; ok {
			found[ref] = shadow{of: name, own: true, refused: !plain(ref.Name)}
		}
		exposed[skeleton(ref.Space+"__"+ref.Name)] = append(exposed[skeleton(ref.Space+"__"+ref.Name)], ref)
		inside := tool.Ref{Space: ref.Space, Name: looks}
		within[inside] = append(within[inside], ref)
	}
	for _, alike := range exposed {
		if len(alike) > 1 {
			crowd(alike, settings, found)
		}
	}
	for _, alike := range within {
		if len(alike) > 1 {
			crowd(alike, settings, found)
		}
	}
	return found
}

// crowd decides between tools that look alike. The one whose name is plain and
// whose namespace is the owner's stays; who reaches across a namespace, or writes
// in other letters, is refused; where nothing tells them apart both are flagged.
func crowd(alike []tool.Ref, settings *Settings, found map[tool.Ref]shadow) {
	for _, ref := range alike {
		for _, other := range alike {
			if ref == other || found[ref].refused {
				continue
			}
			found[ref] = shadow{of: other.String(), refused: worse(ref, settings) > worse(other, settings)}
		}
	}
}

// worse ranks a tool by how much its name reaches for another's.
func worse(ref tool.Ref, settings *Settings) (rank int) {
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
	return Finding{ShadowsOther, "name", "it passes for " + Visible(s.of)}
}
