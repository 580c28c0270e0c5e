package pin

import "slices"

// content is a definition and all that can be said of it without looking at any
// other. It is never changed: readings share it as long as the definition stays.
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

// allFindings are all of them, those among them that depend on what others' tools are
// called. The same definition and names always give the same.
func (c *content) allFindings(m *mentions) []Finding {
	var all []Finding
	var places []place
	told := 0
	for _, s := range c.candidates {
		name := m.in(s.words)
		if name == "" || len(all) >= mostFindings {
			continue
		}
		all = append(all, c.findings[told:s.after]...)
		told = s.after
		places = append(places, place{s.text, len(all)})
		all = append(all, Finding{Code: OtherTool, Text: "it speaks of " + name})
	}
	if all == nil {
		return c.findings
	}
	c.locate(all, places)
	all = append(all, c.findings[told:]...)
	return slices.Clip(all[:min(len(all), mostFindings)])
}

// place says in which text a finding was made.
type place struct{ text, finding int }

// locate gives findings their paths, in the order of the texts they are in. Paths
// are not kept: they can be far longer than what they lead to, and most lead to
// nothing that anybody is told of.
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
