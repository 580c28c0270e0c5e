package pin

import "strconv"

// walker calls visit for every text of a definition, names of members included.
type walker struct {
	visit func(text string)
	twice bool   // an object may have a name twice
	path  []step // to the current text
}

// step is one step into a definition.
type step struct {
	name string
	at   int // in a list; -1 for a member
}

// where is the readable path to the current text.
func (w *walker) where() string {
	path := ""
	for _, step := range w.path {
		if step.at < 0 {
			path = join(path, step.name, false)
		} else {
			path = join(path, strconv.Itoa(step.at), true)
		}
	}
	return orWhole(path)
}

// value visits every text in a value.
func (w *walker) value(n *node) {
	switch n.kind {
	case '"':
		w.visit(n.text)
	case '[':
		for i := range n.kids {
			w.step(step{at: i}, &n.kids[i])
		}
	case '{':
		name := distinct(n.kids, w.twice)
		for i := range n.kids {
			w.step(step{name(i), -1}, &n.kids[i])
		}
	}
}

func (w *walker) step(to step, n *node) {
	w.path = append(w.path, to)
	if to.at < 0 {
		w.visit(to.name)
	}
	w.value(n)
	w.path = w.path[:len(w.path)-1]
}

// distinct returns the names of members, with a name of its own for each repeated one.
func distinct(members []node, twice bool) func(i int) string {
	if !twice {
		return func(i int) string { return members[i].name }
	}
	used := map[string]bool{}
	return func(i int) string {
		name := freeName(members[i].name, func(name string) bool { return used[name] })
		used[name] = true
		return name
	}
}
