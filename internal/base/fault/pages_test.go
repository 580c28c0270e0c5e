package fault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const pages = "../../../docs/errors"

// codes reads the constants of type Code from the source, so that the test covers new
// ones.
func codes(t *testing.T) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			code, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, code)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatal("no codes found in fault.go")
	}
	return found
}

func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	for _, code := range codes(t) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(pages, code+".md"))
			if err != nil {
				t.Fatalf("every code needs a page with its cause and what to do: %v", err)
			}
			page := string(raw)
			if !strings.HasPrefix(page, "# "+code+"\n") {
				t.Errorf("the page does not begin with its code")
			}
			for _, heading := range []string{"Cause", "What to do"} {
				if len(section(page, heading)) < 80 {
					t.Errorf("the page says too little under ## %s", heading)
				}
			}
		})
	}
}

func TestEveryPageHasACode(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	known := codes(t)
	for _, e := range entries {
		if code, ok := strings.CutSuffix(e.Name(), ".md"); ok && code != "README" && !slices.Contains(known, code) {
			t.Errorf("%s is about a code that does not exist", e.Name())
		}
	}
}

// section is the text under a heading of second level.
func section(page, heading string) string {
	_, rest, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(text)
}
