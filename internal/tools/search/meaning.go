package search

import (
	"cmp"
	"slices"
)

// Weights and limits of similar meaning.
const (
	shareMeaning = float32(1) // of the most similar tool, compared with the best by words
	mostNearest  = 50         // tools that count as similar
)

// addMeaning adds to the scores how similar the tools are by a model. Similarities of a
// model have no absolute scale: only the nearest tools count, by how much nearer they are
// than the next one. Words count by how much of the query they cover.
func (s *search) addMeaning(scores []float32) {
	similar := make([]float32, s.tools)
	for n, p := range s.parts {
		copy(similar[s.offsets[n]:], p.Similar)
	}
	nearest := make([]int, 0, s.tools)
	for i, v := range similar {
		if v > 0 {
			nearest = append(nearest, i)
		}
	}
	if len(nearest) == 0 {
		return
	}
	slices.SortStableFunc(nearest, func(a, b int) int { return cmp.Compare(similar[b], similar[a]) })
	count := min(mostNearest, (len(nearest)+1)/2)
	floor := float32(0)
	if count < len(nearest) {
		floor = similar[nearest[count]]
	}
	span := similar[nearest[0]] - floor
	if span <= 0 {
		return
	}
	normalize(scores, s.fit)
	for _, i := range nearest[:count] {
		scores[i] += shareMeaning * s.liking(i) * (similar[i] - floor) / span
	}
}

// liking is how much a tool is preferred, whatever the query.
func (s *search) liking(at int) float32 {
	n, exact := slices.BinarySearch(s.offsets, at)
	if !exact {
		n--
	}
	for n+1 < len(s.parts) && s.offsets[n+1] == at { // empty parts have the same offset
		n++
	}
	i := at - s.offsets[n]
	factor := preference(s.parts[n].Tools[i].Priority) * s.parts[n].Index.likings[i]
	if s.parts[n].Special && !s.named[at] {
		factor *= factorVague
	}
	return factor
}
