package search

import (
	"container/heap"
	"slices"
)

// ranked is a tool with its score; part and tool say which, in catalog order.
type ranked struct {
	score      float32
	part, tool int
	step       int
}

func (a ranked) before(b ranked) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.part != b.part:
		return a.part < b.part
	default:
		return a.tool < b.tool
	}
}

// ranking holds the best tools so far, as a heap with the worst on top.
type ranking struct {
	limit int
	best  []ranked
}

func (r *ranking) offer(c ranked) {
	switch {
	case len(r.best) < r.limit:
		heap.Push(r, c)
	case c.before(r.best[0]):
		r.best[0] = c
		heap.Fix(r, 0)
	}
}

// hits empties the ranking, best first.
func (r *ranking) hits(parts []Part) []Hit {
	slices.SortFunc(r.best, func(a, b ranked) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	hits := make([]Hit, len(r.best))
	for i, k := range r.best {
		hits[i] = Hit{Info: parts[k.part].Tools[k.tool], Score: float64(k.score), Step: k.step}
	}
	return hits
}

func (r *ranking) Len() int           { return len(r.best) }
func (r *ranking) Less(i, j int) bool { return r.best[j].before(r.best[i]) }
func (r *ranking) Swap(i, j int)      { r.best[i], r.best[j] = r.best[j], r.best[i] }
func (r *ranking) Push(x any)         { r.best = append(r.best, x.(ranked)) }

func (r *ranking) Pop() any {
	last := r.best[len(r.best)-1]
	r.best = r.best[:len(r.best)-1]
	return last
}
