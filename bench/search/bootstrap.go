package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// resamples is how often questions are drawn anew, with replacement.
const resamples = 2000

// interval is a mean with the range in which it lies in 95 % of the resamples.
type interval struct{ mean, low, high float64 }

func (i interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.mean, i.low, i.high) }

// signed is how a difference is printed.
func (i interval) signed() string { return fmt.Sprintf("%+.3f [%+.3f, %+.3f]", i.mean, i.low, i.high) }

// bootstrap returns the mean of values, one for each question.
func bootstrap(values []float64) interval {
	if len(values) == 0 {
		return interval{}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(values)))) //nolint:gosec // it draws questions
	means := make([]float64, resamples)
	for i := range means {
		for range values {
			means[i] += values[random.IntN(len(values))] / float64(len(values))
		}
	}
	slices.Sort(means)
	return interval{mean(values), means[resamples/40], means[resamples-1-resamples/40]}
}

func mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// minus are the differences of two measurements of the same questions.
func minus(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] - b[i]
	}
	return all
}
