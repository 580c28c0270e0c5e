package tokencount_test

import (
	"testing"

	"github.com/luanette/luanette/internal/tools/tokencount"
)

// counted are texts with how many tokens the public vocabulary o200k makes of them.
var counted = []struct {
	text  string
	o200k int
}{
	{"", 0},
	{"Read a text file from disk and return what is in it.", 13},
	{`{"name":"read_file","description":"Read a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, 33},
	{"export function sumOfSquares(values: number[]): number {\n  return values.reduce((a, b) => a + b * b, 0);\n}\n", 31},
	{"The quick brown fox jumps over the lazy dog, 1234567 times.", 16},
	{"internationalization and misunderstandings", 5},
}

func TestEstimateIsNear(t *testing.T) {
	t.Parallel()
	for _, c := range counted {
		got := tokencount.Estimate(c.text)
		if low, high := c.o200k*90/100, c.o200k*120/100+2; got < low || got > high {
			t.Errorf("%d for %q, counted %d", got, c.text, c.o200k)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("héllo 天気\n\xff\t  {}")
	f.Fuzz(func(t *testing.T, text string) {
		if n := tokencount.Estimate(text); n > len(text) || n == 0 && text != "" {
			t.Errorf("%d for %d bytes", n, len(text))
		}
	})
}
