package lazy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestRegexp(t *testing.T) {
	t.Parallel()
	wrong := Regexp("(")
	word := Regexp(`^\w+$`)
	first := word()
	if !first.MatchString("word") || first.MatchString("two words") {
		t.Error("it does not match what it says")
	}
	if again := word(); again != first {
		t.Error("it is compiled twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("one that is wrong does not panic")
		}
	}()
	wrong()
}

// TestExpressions compiles every expression of the program: what is wrong with one is
// to be noticed here, and not by whoever needs it first.
func TestExpressions(t *testing.T) {
	t.Parallel()
	found := 0
	for _, tree := range []string{"../../../internal", "../../../cmd"} {
		err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(source, []byte("lazy.Regexp(")) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, expression := range expressions(file) {
				found++
				if _, err := regexp.Compile(expression); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 40 {
		t.Errorf("only %d expressions were found", found)
	}
}

// expressions are those that a file writes out.
func expressions(file *ast.File) (all []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || function.Sel.Name != "Regexp" {
			return true
		}
		if text, ok := call.Args[0].(*ast.BasicLit); ok {
			if expression, err := strconv.Unquote(text.Value); err == nil {
				all = append(all, expression)
			}
		}
		return true
	})
	return all
}
