package confine

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// What this package imports is initialised in front of every sandboxed program.
func TestImportsAreFew(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			path, _ := strconv.Unquote(imported.Path.Value)
			first, _, _ := strings.Cut(path, "/")
			if path == "net/http" || strings.Contains(first, ".") && path != "golang.org/x/sys/unix" {
				t.Errorf("%s imports %s, which delays every start: see init", entry.Name(), path)
			}
		}
	}
}
