package lua

import (
	"errors"
	"strings"
	"testing"
)

// unlimited is a budget that never ends.
type unlimited struct{}

func (unlimited) Step(int) error { return nil }

var errSpent = errors.New("spent")

// limited is a budget of so many steps.
type limited struct{ left int }

func (l *limited) Step(n int) error {
	if l.left -= n; l.left < 0 {
		return errSpent
	}
	return nil
}

// findText gives the captures of the first match, joined by "|", positions as
// numbers; "nil" when there is no match.
func findText(subject, pat string, budget stepper) (string, error) {
	rest, anchored := strings.CutPrefix(pat, "^")
	m := newMatcher(compilePattern(rest), subject, budget)
	start, end, err := m.find(0, anchored)
	if err != nil || start < 0 {
		return "nil", err
	}
	parts := make([]string, m.resultCount())
	for l := range parts {
		c, err := m.capture(l, start, end)
		if err != nil {
			return "", err
		}
		if c.end == isPosition {
			parts[l] = formatInt(int64(c.start + 1))
		} else {
			parts[l] = subject[c.start:c.end]
		}
	}
	return strings.Join(parts, "|"), nil
}

func TestPatternMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ subject, pattern, want string }{
		{"hello world", "o w", "o w"}, {"hello", "l+", "ll"}, {"hello", "x*", ""}, {"hello", "^ello", "nil"}, {"hello", "ello$", "ello"},
		{"a$b", "a$b", "a$b"}, {"aaab", ".-b", "aaab"}, {"aaab", ".*a", "aaa"}, {"ab", "a?b", "ab"}, {"b", "a?b", "b"}, {"aab", "a?a?a?b", "aab"},
		{"key = value", "(%w+)%s*=%s*(%w+)", "key|value"}, {"hello", "()ll()", "3|5"}, {"THE (quick) fox", "%((%a+)%)", "quick"},
		{"f(a(b)c)d", "%b()", "(a(b)c)"}, {"f(a(b", "%b()", "nil"}, {"THE (quick) fox", "%f[%a]%a+%f[%A]", "THE"}, {"xyzxyz", "(x)(y)(z)%1%2%3", "x|y|z"},
		{"[[x]]", "[]]+", "]]"}, {"a-z", "[a%-z]+", "a-z"}, {"a-z", "[a-]+", "a-"}, {"xay", "[^xy]", "a"}, {"0x1F", "^0[xX](%x+)$", "1F"}, {"\x00a", "%z", "\x00"},
		{"a.b", "%.", "."}, {"aXb", "%u", "X"}, {"a^b", "a^b", "a^b"}, {"abc", "((a)(b))", "ab|a|b"}, {"*", "*", "*"}, {"", "", ""}, {"", ".", "nil"},
		{"alo xyzK", "(%w+)K", "xyz"}, {"aaa", "^.-$", "aaa"}, {"aaa", "a-a", "a"}, {"  trim  ", "^%s*(.-)%s*$", "trim"}, {"a]b", "[^]]", "a"},
		{"ab", "(a*(.)%w(%s*))", "ab|a|"}, {"aab c", "(a*(.)%w(%s*))", "aab |a| "}, {"0123456789", "(.+(.?)())", "0123456789||11"},
	} {
		got, err := findText(test.subject, test.pattern, unlimited{})
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("match(%q, %q) = %q, want %q", test.subject, test.pattern, got, test.want)
		}
	}
}

func TestPatternMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ subject, pattern, want string }{
		{"a", "%", "malformed pattern (ends with '%')"}, {"a", "[a", "malformed pattern (missing ']')"}, {"a", "[]", "malformed pattern (missing ']')"},
		{"a", "[^]", "malformed pattern (missing ']')"}, {"a", "[a%]", "malformed pattern (missing ']')"}, {"a", "[a%", "malformed pattern (missing ']')"},
		{"a", "%b", "malformed pattern (missing arguments to '%b')"}, {"a", "%bx", "malformed pattern (missing arguments to '%b')"},
		{"a", "%f", "missing '[' after '%f' in pattern"}, {"a", "a)", "invalid pattern capture"}, {"a", "(a", "unfinished capture"},
		{"a", "%1", "invalid capture index %1"}, {"a", "(a%1)", "invalid capture index %1"}, {"a", "%0", "invalid capture index %0"},
		{"a", strings.Repeat("(", 33), "too many captures"}, {strings.Repeat("a", 300), strings.Repeat("a?", 300), "pattern too complex"},
	} {
		_, err := findText(test.subject, test.pattern, unlimited{})
		if err == nil || err.Error() != test.want {
			t.Errorf("match(%q, %q): error %v, want %s", test.subject, test.pattern, err, test.want)
		}
	}
	if got, err := findText("a", "b[", unlimited{}); err != nil || got != "nil" {
		t.Errorf("a mistake that is never reached was reported: %q, %v", got, err)
	}
}

func TestPatternBombsAreStopped(t *testing.T) {
	t.Parallel()
	as, opened := strings.Repeat("a", 50000), strings.Repeat("(", 50000)
	for pat, subject := range map[string]string{
		strings.Repeat(".-", 50) + "b": as,
		strings.Repeat("a*", 50) + "b": as,
		"(.-)(.-)%1%2x":                as,
		"a+a+a+a+b":                    as,
		"[a]-[a]-[a]-b":                as,
		"%b()":                         opened,
	} {
		budget := &limited{left: 1_000_000}
		if _, err := findText(subject, pat, budget); !errors.Is(err, errSpent) {
			t.Errorf("pattern %.20q ended with %v and %d steps left", pat, err, budget.left)
		}
	}
}

// FuzzPattern checks that no pattern makes the matcher panic or run past its
// budget, and that what it finds lies inside the subject.
func FuzzPattern(f *testing.F) {
	f.Add("hello world", "(%w+) %f[%w](.-)$")
	f.Add("((a)(b))", "%b()[^%a-z]-%1?")
	f.Add("\x00\xff", "[%z\x80-\xff]*()")
	f.Fuzz(func(t *testing.T, subject, pat string) {
		m := newMatcher(compilePattern(pat), subject, &limited{left: 1_000_000})
		start, end, err := m.find(0, false)
		if err != nil || start < 0 {
			return
		}
		if start > end || end > len(subject) {
			t.Fatalf("match from %d to %d in %d bytes", start, end, len(subject))
		}
		for l := range m.resultCount() {
			c, err := m.capture(l, start, end)
			if err == nil && c.end != isPosition && (c.start < start || c.end < c.start || c.end > end) {
				t.Fatalf("capture %d from %d to %d in match from %d to %d", l, c.start, c.end, start, end)
			}
		}
	})
}
