package catalog

import "math/bits"

// letters is a set of the characters in a word, folded to 64 bits. Two words
// that are d edits apart differ in at most 2d members of their sets, so most
// words are told apart without looking at them.
type letters uint64

func lettersOf(word string) letters {
	var set letters
	for i := range len(word) {
		set |= 1 << (word[i] & 63)
	}
	return set
}

func (a letters) apart(b letters) int { return bits.OnesCount64(uint64(a ^ b)) }

// slipsAllowed is how many typing mistakes a word of that length may contain
// and still be recognised.
func slipsAllowed(length int) int {
	switch {
	case length < 4:
		return 0
	case length < 8:
		return 1
	default:
		return 2
	}
}

// slips counts the insertions, deletions, substitutions and swaps of neighbours
// between two words, or limit+1 when there are more than limit.
func slips(a, b string, limit int) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > limit || len(a) > longestWord {
		return limit + 1
	}
	var rows [3][longestWord + 1]uint8
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		best := row[0]
		for j := 1; j <= len(b); j++ {
			cost := last[j-1]
			if a[i-1] != b[j-1] {
				cost = min(cost, last[j], row[j-1]) + 1
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
			best = min(best, cost)
		}
		if int(best) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return int(last[len(b)])
}
