package main

import "testing"

func TestOpenJavaScript(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"1 + 1": false, "const f = (x) => {": true, "const f = (x) => {\n  return x }": false, "[1,\n 2": true,
		"`one": true, "`one\ntwo`": false, "'a { b'": false, "\"a \\\" (\"": false, "// a (": false, "/* a": true, "/* ( */ 1": false,
		"x = '": false, "f(`a ${b} (`": true, "a }": false,
	} {
		if got := openJavaScript(code); got != want {
			t.Errorf("openJavaScript(%q) = %v", code, got)
		}
	}
}

func TestDefinesMain(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"function main(params)\nend": true, "async function main({ n }) {}": true, "const main = async () => 1": true,
		"main = function() end": true, "function main<T>(p: T) {}": true, "domain = 1": false, "return 1": false, "const mainly = 1": false,
	} {
		if got := definesMain().MatchString(source); got != want {
			t.Errorf("%q: %v", source, got)
		}
	}
}
