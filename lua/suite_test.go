package lua

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// suiteFiles are the files of the official test suite that run here.
var suiteFiles = []string{
	"attrib", "big", "bitwise", "bwcoercion", "calls", "closure", "constructs", "coroutine", "cstack", "db", "errors",
	"events", "files", "gc", "gengc", "goto", "literals", "locals", "math", "nextvar", "pm", "sort", "strings", "tpack",
	"tracegc", "utf8", "vararg", "verybig",
}

// suiteLeftOut are the files that do not run here, and why. The README says
// the same.
var suiteLeftOut = map[string]string{
	"all":   "runs the other files; suite_test.go does that",
	"api":   "tests the C API",
	"code":  "tests the opcodes of the reference through its internal test library",
	"heavy": "needs many gigabytes of memory",
	"main":  "tests the options of the standalone interpreter",
}

// suitePrelude chooses the portable mode of the suite, as its own all.lua
// does: no assumptions about the platform, and no tests that take long.
const suitePrelude = `_port = true _soft = true _nomsg = true
package.path = "?.lua;libs/?.lua"
`

// TestSuite runs the official test suite for Lua 5.4. LUA_TESTES names the
// folder it was unpacked to; without it there is nothing to test.
func TestSuite(t *testing.T) {
	dir := os.Getenv("LUA_TESTES")
	if dir == "" {
		t.Skip("make test-lua-suite LUA_TESTES=DIR runs it: the suite is not ours to ship")
	}
	t.Chdir(dir)
	checkSuiteIsComplete(t)
	for _, name := range suiteFiles {
		t.Run(name, func(t *testing.T) { runSuiteFile(t, name+".lua") })
	}
}

// checkSuiteIsComplete reports files that neither run nor are left out.
func checkSuiteIsComplete(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range suiteFiles {
		known[name+".lua"] = true
	}
	for name := range suiteLeftOut {
		known[name+".lua"] = true
	}
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("LUA_TESTES has no Lua files: %v", err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s is neither run nor left out", file)
		}
	}
}

func runSuiteFile(t *testing.T, file string) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := New(Options{Stdout: &out, Stderr: &out, BinaryChunks: true})
	if err := s.Open(All()...); err != nil {
		t.Fatal(err)
	}
	if _, err := run(s, suitePrelude, "=prelude"); err != nil {
		t.Fatal(err)
	}
	_, err = run(s, string(source), "@"+file)
	if closeErr := s.CloseFiles(); closeErr != nil {
		t.Error(closeErr)
	}
	if err == nil {
		return
	}
	t.Errorf("%v", err)
	if e := new(Error); errors.As(err, &e) {
		t.Log(e.Traceback)
	}
	t.Logf("printed: %s", out.String())
}
