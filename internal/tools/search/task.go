package search

// scores are how well all tools fit a text; 0: not at all.
type scores struct {
	of   []float32
	step []uint8 // per tool the step that it fits best; nil: there are no steps
}

// task scores a text, and if it is a task of several steps, these; nil without words.
func (s *search) task(text string) (*scores, []string) {
	bare := withoutData(text)
	whole := s.score(bare)
	if whole == nil {
		return nil, nil
	}
	split := steps(bare)
	if len(split) == 0 {
		return &scores{of: whole}, nil
	}
	return s.combine(whole, split), split
}

// Shares of the whole text and of the best step in a task's score.
const (
	shareWhole = float32(0.3)
	shareStep  = 1 - shareWhole
)

func (s *search) combine(whole []float32, split []string) *scores {
	sum := scores{of: whole, step: make([]uint8, s.tools)}
	normalize(whole, shareWhole)
	best := make([]float32, s.tools)
	for n, step := range split {
		one := s.score(step)
		normalize(one, shareStep)
		for i, v := range one {
			if v > best[i] {
				best[i], sum.step[i] = v, uint8(n)
			}
		}
	}
	for i, v := range best {
		sum.of[i] += v
	}
	return &sum
}

// normalize makes the best score the given one.
func normalize(scores []float32, best float32) {
	top := float32(0)
	for _, v := range scores {
		top = max(top, v)
	}
	if top == 0 {
		return
	}
	for i := range scores {
		scores[i] *= best / top
	}
}

// merge joins the scores of several wordings: half is the best, half the average, so that
// wordings that agree count more.
func (s *search) merge(all []scores) scores {
	sum := scores{of: make([]float32, s.tools)}
	for _, one := range all {
		normalize(one.of, 1)
	}
	for i := range sum.of {
		best, total := float32(0), float32(0)
		for _, one := range all {
			best, total = max(best, one.of[i]), total+one.of[i]
		}
		sum.of[i] = (best + total/float32(len(all))) / 2
	}
	return sum
}
