package attacks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`")

// TestThePage compares docs/security-attacks.md with the tests: every test it names
// exists, every row names one, and every test of this package is on it.
func TestThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security-attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		links := link.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| attack") && len(links) == 0 {
			t.Errorf("a row without a test: %s", line)
		}
		for _, l := range links {
			named[l[1]+"."+l[2]] = true
			if !hasTest(t, l[1], l[2]) {
				t.Errorf("%s has no %s", l[1], l[2])
			}
		}
	}
	if len(named) < 13 {
		t.Errorf("only %d tests are named", len(named))
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`func (Test[A-Za-z0-9]+)\(`).FindAllStringSubmatch(string(text), -1) {
			if m[1] != "TestMain" && m[1] != "TestThePage" && m[1] != "TestTheThreatModel" && !named["test/attacks."+m[1]] {
				t.Errorf("%s is not on the page", m[1])
			}
		}
	}
}

// TestTheThreatModel checks that the tests which docs/threat-model.md names exist, and
// that each of its attacks names one.
func TestTheThreatModel(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, attacks, found := strings.Cut(string(page), "| attack | what protects | tests |\n|---|---|---|\n")
	if !found {
		t.Fatal("the table of attacks is missing")
	}
	for line := range strings.Lines(attacks) {
		links := link.FindAllStringSubmatch(line, -1)
		if len(links) == 0 {
			t.Errorf("an attack without a test: %s", line)
		}
		for _, l := range links {
			if !hasTest(t, l[1], l[2]) {
				t.Errorf("%s has no %s", l[1], l[2])
			}
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
