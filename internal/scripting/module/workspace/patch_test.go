package workspace

import (
	"strings"
	"testing"
)

func TestPatches(t *testing.T) {
	t.Parallel()
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	for _, test := range []struct{ name, before, diff, after, problem string }{
		{"replace", "a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", ""},
		{"insert behind a line", "a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n", ""},
		{"insert at the beginning", "a\n", "@@ -0,0 +1 @@\n+x\n", "x\na\n", ""},
		{"remove all", "a\n", "@@ -1 +0,0 @@\n-a\n", "", ""},
		{"two hunks, the first longer", numbers, "@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -8,2 +9,2 @@\n 8\n-9\n+nine\n", "1\n1.5\n2\n3\n4\n5\n6\n7\n8\nnine\n", ""},
		{"two hunks, moved", "0\n0\n" + numbers, "@@ -2,1 +2,1 @@\n-2\n+two\n@@ -8,1 +8,1 @@\n-8\n+eight\n", "0\n0\n1\ntwo\n3\n4\n5\n6\n7\neight\n9\n", ""},
		{"the nearest of equal places", "x\ny\nx\ny\nx\ny\n", "@@ -3,1 +3,1 @@\n-x\n+X\n", "x\ny\nX\ny\nx\ny\n", ""},
		{"a trimmed blank", "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n", ""},
		{"no newline before", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", ""},
		{"no newline after", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", ""},
		{"no newline at all", "a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb", ""},
		{"git's own head", "a\n", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@ func\n-a\n+b\n", "b\n", ""},
		{"removing a line of dashes", "-- x\na\n", "@@ -1,2 +1 @@\n--- x\n a\n", "a\n", ""},
		{"removing one later", "a\n-- x\n", "@@ -1,2 +1 @@\n a\n--- x\n", "a\n", ""},
		{"a wrong count", "a\nb\nc\n", "@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", ""},
		{"another line", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-c\n+d\n", "", `hunk 1 does not apply: line 2 is "b\n", not "c\n"`},
		{"past the end", "a\n", "@@ -5,1 +5,1 @@\n-z\n+y\n", "", `the file ends before line 5`},
		{"two files", "a\n", "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- b\n+++ b\n@@ -1 +1 @@\n-a\n+b\n", "", "not a unified diff of one file"},
		{"nonsense in a hunk", "a\n", "@@ -1 +1 @@\n?a\n", "", "begins with"},
		{"no hunks", "a\n", "-a\n+b\n", "", "not a unified diff"},
	} {
		hunks, err := parseDiff(test.diff)
		var got string
		if err == nil {
			got, err = apply(test.before, hunks)
		}
		switch {
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: got %q, %v; want the problem %q", test.name, got, err, test.problem)
		case test.problem == "" && (err != nil || got != test.after):
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, test.after)
		}
	}
}
