package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// How the vectors are trained.
const (
	epochs      = 4
	batchSize   = 512
	leastBatch  = 65
	temperature = 0.12
	learnRate   = 0.05
	dropBatches = 0.5 // of the batches in which shared words are dropped
	dropWords   = 0.6 // of the shared words of such a batch
)

// wordPair is a pair as words of the model.
type wordPair struct{ a, b []int32 }

// train moves the vectors until the two texts of a pair are nearer to each other than to
// the other texts of their batch. All pairs of a batch are of one source, so that the
// others are of the same kind.
func (m *model) train(sources []source, report func(epoch, batches int, loss float64)) {
	groups := make([][]wordPair, len(sources))
	for i, s := range sources {
		for _, p := range s.pairs {
			a, b := m.text(p.a), m.text(p.b)
			if len(a) > 0 && len(b) > 0 && !slices.Equal(a, b) {
				groups[i] = append(groups[i], wordPair{a, b})
			}
		}
	}
	t := trainer{model: m, random: rand.New(rand.NewPCG(7, 7)), squares: make([]float32, len(m.vectors)), steps: make([]meaning.Vector, len(m.vectors))} //nolint:gosec // it chooses examples
	for i := range t.squares {
		t.squares[i] = 1e-6
	}
	for epoch := range epochs {
		batches := t.batches(sources, groups)
		loss := 0.0
		for _, batch := range batches {
			loss += t.learn(batch) / float64(len(batches))
		}
		report(epoch+1, len(batches), loss)
	}
}

// trainer is the state of a training.
type trainer struct {
	*model
	random  *rand.Rand
	squares []float32        // of the steps of each word so far: Adagrad
	steps   []meaning.Vector // of the batch under way
	touched []int32
}

// batches are the pairs of an epoch in random order.
func (t *trainer) batches(sources []source, groups [][]wordPair) (all [][]wordPair) {
	for i, group := range groups {
		for range int(math.Ceil(sources[i].share)) {
			taken := make([]wordPair, 0, len(group))
			for _, at := range t.random.Perm(len(group))[:int(float64(len(group))*min(sources[i].share, 1))] {
				taken = append(taken, group[at])
			}
			for batch := range slices.Chunk(taken, batchSize) {
				if len(batch) >= leastBatch {
					all = append(all, batch)
				}
			}
		}
	}
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// learn moves the words of one batch, and returns the loss before.
func (t *trainer) learn(batch []wordPair) float64 {
	seen := batch
	if t.random.Float64() < dropBatches {
		seen = t.dropShared(batch)
	}
	u, v := t.sides(seen)
	slopes, loss := contrast(u, v, batch)
	for i := range seen {
		var du, dv meaning.Vector
		for j := range seen {
			addTimes(&du, &v[j].unit, slopes[i][j])
			addTimes(&dv, &u[j].unit, slopes[j][i])
		}
		t.note(seen[i].a, u[i].slope(&du))
		t.note(seen[i].b, v[i].slope(&dv))
	}
	t.move()
	return loss
}

// dropShared drops words that both texts of a pair have from the second, so that meaning
// has to match.
func (t *trainer) dropShared(batch []wordPair) []wordPair {
	dropped := make([]wordPair, len(batch))
	for i, p := range batch {
		dropped[i] = p
		shared := func(w int32) bool { return slices.Contains(p.a, w) }
		if !slices.ContainsFunc(p.b, func(w int32) bool { return !shared(w) }) {
			continue
		}
		dropped[i].b = slices.DeleteFunc(slices.Clone(p.b), func(w int32) bool { return shared(w) && t.random.Float64() < dropWords })
	}
	return dropped
}

// side is the vector of a text, and its length before it was normalized.
type side struct {
	unit   meaning.Vector
	length float32
}

func (t *trainer) sides(batch []wordPair) (u, v []side) {
	of := func(words []int32) (s side) {
		for _, w := range words {
			addTimes(&s.unit, &t.vectors[w], 1)
		}
		s.length = float32(math.Sqrt(float64(s.unit.Dot(&s.unit)))) + 1e-6
		for i := range s.unit {
			s.unit[i] /= s.length
		}
		return s
	}
	for _, p := range batch {
		u, v = append(u, of(p.a)), append(v, of(p.b))
	}
	return u, v
}

// slope turns the slope of the loss by the normalized vector into that by the sum.
func (s *side) slope(d *meaning.Vector) *meaning.Vector {
	along := d.Dot(&s.unit)
	for i := range d {
		d[i] = (d[i] - float32(s.unit[i]*along)) / s.length
	}
	return d
}

// contrast returns how the loss changes with the nearness of each text to each other one,
// and the loss. Texts that are the same are not told from each other.
func contrast(u, v []side, batch []wordPair) (slopes [][]float32, loss float64) {
	n := len(u)
	near, rows, columns := make([][]float32, n), make([]float64, n), make([]float64, n)
	for i := range n {
		near[i] = make([]float32, n)
		for j := range n {
			if i == j || !slices.Equal(batch[i].b, batch[j].b) {
				e := float32(math.Exp(float64(u[i].unit.Dot(&v[j].unit)-1) / temperature))
				near[i][j] = e
				rows[i] += float64(e)
				columns[j] += float64(e)
			}
		}
	}
	for i := range n {
		loss -= math.Log(float64(near[i][i])/rows[i]+1e-9) / float64(n)
		for j := range n {
			near[i][j] *= float32((1/rows[i] + 1/columns[j]) / 2)
		}
		near[i][i]--
		for j := range n {
			near[i][j] /= temperature * float32(n)
		}
	}
	return near, loss
}

// note adds a step of the words of a text.
func (t *trainer) note(words []int32, d *meaning.Vector) {
	for _, w := range words {
		if t.steps[w] == (meaning.Vector{}) {
			t.touched = append(t.touched, w)
		}
		addTimes(&t.steps[w], d, 1)
	}
}

// move does the noted steps. A word that has moved much moves less.
func (t *trainer) move() {
	for _, w := range t.touched {
		step := &t.steps[w]
		t.squares[w] += step.Dot(step) / meaning.Dimensions
		addTimes(&t.vectors[w], step, -learnRate/float32(math.Sqrt(float64(t.squares[w]))))
		*step = meaning.Vector{}
	}
	t.touched = t.touched[:0]
}

// addTimes adds a multiple of a vector. The conversion keeps processors from rounding
// differently.
func addTimes(to, from *meaning.Vector, k float32) {
	for i := range to {
		to[i] += float32(from[i] * k)
	}
}
