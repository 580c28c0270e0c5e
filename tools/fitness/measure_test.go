package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source string
		want         function // without at
	}{
		{"empty", `func f() {}`, function{complexity: 1}},
		{"lines of code only", "func f() {\n\ta()\n\n\t// why\n\tb() // how\n\t/* and\n\tmore */\n}", function{complexity: 1, lines: 2}},
		{"errors returned are no lines", "func f() error {\n\ta()\n\terr := b()\n\tif err != nil {\n\t\treturn err\n\t}\n\tif err := c(); err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}", function{complexity: 1, lines: 4, depth: 1}},
		{"composite literal", "func f() []int {\n\treturn []int{\n\t\t1,\n\t\t2,\n\t}\n}", function{complexity: 1}},
		{"branches", `func f(a, b bool) { if a && b || !a { for { } } else { g() } }`, function{complexity: 5, depth: 2, params: 2}},
		{"error returned", `func f() error { if err := g(); err != nil { return err }; return nil }`, function{complexity: 1, depth: 1}},
		{"error handled", `func f() error { if err := g(); err != nil { h(err) }; return nil }`, function{complexity: 2, depth: 1}},
		{"a switch counts once", `func f(a int) { switch a { case 1: x(); case 2: if b { y() } } }`, function{complexity: 3, depth: 2, params: 1}},
		{"a select counts once", `func f() { select { case <-a: case <-b: } }`, function{complexity: 2, depth: 1}},
		{"else if is not deeper", `func f() { if a { } else if b { } else if c { } }`, function{complexity: 4, depth: 1}},
		{"contexts do not count", `func f(ctx context.Context, a, b int, c ...string) {}`, function{complexity: 1, params: 3}},
		{"function literals count separately", `func f() { g(func() { if a { } }) }`, function{complexity: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source := []byte("package p\n" + tt.source)
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got := measure(fset, file, source)[0]
			got.at, tt.want.name = token.Position{}, "f"
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.go")
	long := "package p\nfunc long() {\n" + strings.Repeat("\ta()\n", maxLines+1) + "}\nfunc many(a, b, c, d, e, f int) {}\n"
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := report(&out, []string{file, "gone.go"}); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"p.go:2:1: long has 51 lines (at most 50)", "many has 6 parameters (at most 5)", "2 of 2 functions exceed the limits"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
}

// The only exception is the interpreter loop, and it still needs to be one.
func TestExceptions(t *testing.T) {
	t.Parallel()
	if len(exceptions) != 1 {
		t.Errorf("%d exceptions, want 1", len(exceptions))
	}
	for name := range exceptions {
		file, function, _ := strings.Cut(name, ":")
		source, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		needed := false
		for _, f := range measure(fset, parsed, source) {
			needed = needed || f.name == function && len(f.excess()) > 0
		}
		if !needed {
			t.Errorf("%s does not exceed the limits", name)
		}
	}
}
