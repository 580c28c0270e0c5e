// Package plural writes numbers with their nouns.
package plural

import "fmt"

// Count returns a number with its noun: "1 job", "2 jobs".
func Count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
