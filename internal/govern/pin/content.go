package pin

import "slices"

// content is a definition and what its scan found without regard to other tools. It is
// never changed: lists share it while the definition stays the same.
type content struct {
	definition []byte // canonical JSON
	digest     string
	findings   []Finding
	candidates []candidates
}

// candidates are words in one text of a definition that could be names of tools.
type candidates struct {
	after int    // how many findings come before
	text  int    // which text it is
	words string // with blanks between
}

// contentOf reads a definition.
func contentOf(raw []byte) *content {
	definition, tree, ok := canonical(raw)
	c := scan(definition, &tree, ok)
	c.definition, c.digest = definition, digestOf(definition)
	return c
}

// allFindings adds the findings that depend on the names of other tools. The same
// definition and names always give the same findings.
func (c *content) allFindings(m *mentions) []Finding {
	var all []Finding
	var places []place
	done := 0
	for _, s := range c.candidates {
		name := m.in(s.words)
		if name == "" || len(all) >= maxFindings {
			continue
		}
		all = append(all, c.findings[done:s.after]...)
		done = s.after
		places = append(places, place{s.text, len(all)})
		all = append(all, Finding{Code: OtherTool, Text: "it mentions " + name})
	}
	if all == nil {
		return c.findings
	}
	c.locate(all, places)
	all = append(all, c.findings[done:]...)
	return slices.Clip(all[:min(len(all), maxFindings)])
}

// place is the text of a finding.
type place struct{ text, finding int }

// locate sets the paths of findings, in the order of their texts. Paths are not stored:
// they can be much longer than the texts, and most are never needed.
func (c *content) locate(found []Finding, places []place) {
	_, tree, ok := canonical(c.definition)
	n := 0
	w := walker{twice: !ok || tree.repeats()}
	w.visit = func(string) {
		if len(places) > 0 && places[0].text == n {
			found[places[0].finding].Path = w.where()
			places = places[1:]
		}
		n++
	}
	w.value(&tree)
}
