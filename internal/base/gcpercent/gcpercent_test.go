package gcpercent

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// Any other import would have this package initialised after those that it is about.
func TestImportsLittle(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "gcpercent.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, imported := range file.Imports {
		if path := imported.Path.Value; path != `"os"` && path != `"runtime/debug"` {
			t.Errorf("it imports %s", path)
		}
	}
}

// The values are those of processes of their own, of which this one may be one.
func TestSetAtStart(t *testing.T) {
	t.Parallel()
	if os.Getenv("PRINT_GC_PERCENT") != "" {
		t.Logf("percent %d", debug.SetGCPercent(Default))
		return
	}
	for setting, want := range map[string]string{"GOGC=": "percent 200", "GOGC=100": "percent 100", "GOGC=off": "percent -1"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=TestSetAtStart$")
		cmd.Env = append(os.Environ(), "PRINT_GC_PERCENT=1", setting)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %s in\n%s", setting, err, want, out)
		}
	}
}
