//go:build !race

package clocktest

const slower = 1
