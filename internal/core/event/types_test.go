package event_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
)

// declared are the types that the program's sources declare, apart from those that are
// put together: of sessions, and of the broadcasts of backends.
func declared(t *testing.T) []string {
	t.Helper()
	literal := regexp.MustCompile(`EventType\(\) string +\{ return "([a-z_.]+)" \}`)
	found := []string{"event.missed", "job.state_changed", "session.closed", "session.created", "session.forked", "session.reset", "session.used"}
	sources := os.DirFS("../..")
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(sources, path)
		for _, match := range literal.FindAllSubmatch(source, -1) {
			found = append(found, string(match[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestTypesAreComplete compares the list with the sources.
func TestTypesAreComplete(t *testing.T) {
	t.Parallel()
	if want := declared(t); !slices.Equal(event.Types(), want) {
		t.Errorf("listed\n%q\nbut the sources declare\n%q", event.Types(), want)
	}
}

func TestExists(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"*": true, "upstream.*": true, "up*": true, "upstream.lost": true, "script.mix.done": true, "script.*": true, "backend.x": true, "scr*": true, "job.finished": true,
		"upstream.losst": false, "upstream": false, "nothing.*": false, "": false, "script": false, "job.finished.*": false,
	} {
		if got := event.Exists(pattern); got != want {
			t.Errorf("Exists(%q) = %t", pattern, got)
		}
	}
}
