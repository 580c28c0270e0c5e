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
		want         function // at left out
	}{
		{"nothing", `func f() {}`, function{ways: 1}},
		{"lines of code only", "func f() {\n\ta()\n\n\t// why\n\tb() // how\n\t/* and\n\tmore */\n}", function{ways: 1, lines: 2}},
		{"a value written out", "func f() []int {\n\treturn []int{\n\t\t1,\n\t\t2,\n\t}\n}", function{ways: 1}},
		{"turns", `func f(a, b bool) { if a && b || !a { for { } } else { g() } }`, function{ways: 5, depth: 2, params: 2}},
		{"an error handed on", `func f() error { if err := g(); err != nil { return err }; return nil }`, function{ways: 1, depth: 1}},
		{"an error looked at", `func f() error { if err := g(); err != nil { h(err) }; return nil }`, function{ways: 2, depth: 1}},
		{"a switch is one turn", `func f(a int) { switch a { case 1: x(); case 2: if b { y() } } }`, function{ways: 3, depth: 2, params: 1}},
		{"a select is one turn", `func f() { select { case <-a: case <-b: } }`, function{ways: 2, depth: 1}},
		{"else if is not deeper", `func f() { if a { } else if b { } else if c { } }`, function{ways: 4, depth: 1}},
		{"contexts do not count", `func f(ctx context.Context, a, b int, c ...string) {}`, function{ways: 1, params: 3}},
		{"a literal is on its own", `func f() { g(func() { if a { } }) }`, function{ways: 1}},
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
	long := "package p\nfunc long() {\n" + strings.Repeat("\ta()\n", mostLines+1) + "}\nfunc many(a, b, c, d, e, f int) {}\n"
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := report(&out, []string{file, "gone.go"}); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"p.go:2:1: long has 51 lines, 50 are the most", "many takes 6 parameters", "2 of 2 functions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
}
