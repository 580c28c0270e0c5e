//go:build race

package clocktest

// slower is how much longer everything takes under the race detector.
const slower = 3
