package search

import (
	"math/bits"
	"slices"
)

// outline is a summary for comparing words quickly: the set of their letters in the
// lower 56 bits, their length in the upper 8. Words that are d edits apart differ by at
// most d in length and in at most 2d letters, so most pairs are ruled out without
// comparing the words.
type outline uint64

const outlineBits = 56

func outlineOf(word string) outline {
	set := outline(min(len(word), 255)) << outlineBits
	for i := range len(word) {
		switch c := word[i]; {
		case c >= 'a' && c <= 'z':
			set |= 1 << (c - 'a')
		case c >= '0' && c <= '9':
			set |= 1 << (c - '0' + 26)
		default:
			set |= 1 << (c%20 + 36)
		}
	}
	return set
}

// near tells whether two words can be within limit edits of each other.
func (a outline) near(b outline, limit int) bool {
	gap := int(a>>outlineBits) - int(b>>outlineBits)
	return gap <= limit && -gap <= limit && bits.OnesCount64(uint64(a^b)<<8) <= 2*limit
}

// editsAllowed is how many typing mistakes a word of that length may contain
// and still be recognised.
func editsAllowed(length int) int {
	switch {
	case length < 4:
		return 0
	case length < 8:
		return 1
	default:
		return 2
	}
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours
// between two words, or limit+1 when there are more than limit.
func editDistance(a, b string, limit int) int {
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
		for j := 1; j <= len(b); j++ {
			cost := last[j-1]
			if a[i-1] != b[j-1] {
				cost = min(cost, last[j], row[j-1]) + 1
			}
			if swapped(a[:i], b[:j]) {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
		}
		if int(slices.Min(row[:len(b)+1])) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(int(last[len(b)]), limit+1)
}

// swapped tells whether two words end with the same two letters in another order.
func swapped(a, b string) bool {
	i, j := len(a), len(b)
	return i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1]
}
