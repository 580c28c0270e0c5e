package principal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/core/principal"
)

// FuzzMatches compares patterns of keys and rules with the equivalent regular
// expression: a star that matches too much would give a key too many rights.
func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{{"fs.*", "fs.read"}, {"*", ""}, {"a*a", "a"}, {"*b*b*", "abba"}, {"**", "x"}, {"fs.read", "fs.read_all"}, {"*_read*", "git_read"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(name) || len(pattern) > 200 {
			return // a regular expression must be text
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(name)
		if got := principal.Matches(pattern, name); got != want {
			t.Errorf("Matches(%q, %q) = %v", pattern, name, got)
		}
	})
}
