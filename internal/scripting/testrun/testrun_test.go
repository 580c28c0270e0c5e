package testrun

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func names(folder string, tests []Test) (list []string) {
	for _, test := range tests {
		path, _ := filepath.Rel(folder, test.File.Path)
		list = append(list, fmt.Sprintf("%s:%d:%s", filepath.ToSlash(path), test.Line, test.Name))
	}
	return list
}

func TestFind(t *testing.T) {
	t.Parallel()
	folder := writeFiles(t, map[string]string{
		"a_test.lua":                     "local x = 1\nfunction test_one() end\nlocal function test_two()\nend\ntest_three = function() end\n  function test_nested() end\n-- function test_comment()\nfunction other() end\nfunction tester() end\n",
		"sub/b_test.js":                  "async function test_js() {}\nfunction test_plain(){}\nconst test_arrow = async () => {};\nlet test_value = 4;\n",
		"sub/c_test.ts":                  "async function test_ts(): Promise<void> {}\n",
		"plain.lua":                      "function test_not_here() end\n",
		"node_modules/x/y_test.js":       "function test_library() {}\n",
		".git/z_test.lua":                "function test_hidden() end\n",
		"sub/helper_test.lua.bak":        "function test_backup() end\n",
		"sub/testdata/deep/deep_test.js": "function test_deep() {}\n",
	})
	tests, err := Find([]string{folder, filepath.Join(folder, "a_test.lua")}, nil)
	want := []string{
		"a_test.lua:2:test_one", "a_test.lua:3:test_two", "a_test.lua:5:test_three",
		"sub/b_test.js:1:test_js", "sub/b_test.js:2:test_plain", "sub/b_test.js:3:test_arrow",
		"sub/c_test.ts:1:test_ts", "sub/testdata/deep/deep_test.js:1:test_deep",
	}
	if got := names(folder, tests); err != nil || !slices.Equal(got, want) {
		t.Errorf("found\n%q, %v, want\n%q", got, err, want)
	}
	tests, _ = Find([]string{folder}, regexp.MustCompile(`b_test\.js:test_(js|plain)$`))
	if got := names(folder, tests); !slices.Equal(got, want[3:5]) {
		t.Errorf("the filter chose %q", got)
	}
	if code := tests[0].Code(); !strings.HasSuffix(code, "\nreturn await test_js();\n") {
		t.Errorf("the code ends with %q", code)
	}
	if _, err := Find([]string{filepath.Join(folder, "none")}, nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a folder that does not exist gave %v", err)
	}
}

func someTests(n int) []Test {
	file := &File{Path: "folder/some_test.lua"}
	tests := make([]Test, n)
	for i := range tests {
		tests[i] = Test{File: file, Name: fmt.Sprint("test_", i), Line: 10 + i}
	}
	return tests
}

// Tests run at the same time, as many as allowed, and are reported in their order.
func TestRunIsParallelAndOrdered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		run := func(ctx context.Context, test Test) (tool.View, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Duration(20-test.Line) * time.Second) // later ones are faster
			mu.Lock()
			defer mu.Unlock()
			running--
			return tool.View{}, nil
		}
		var order []string
		Run(t.Context(), someTests(9), 4, run, func(o Outcome) { order = append(order, o.Name) })
		if most != 4 {
			t.Errorf("%d tests ran at the same time, want 4", most)
		}
		if want := "test_0 test_1 test_2 test_3 test_4 test_5 test_6 test_7 test_8"; strings.Join(order, " ") != want {
			t.Errorf("reported in the order %q", order)
		}
	})
}

// failing is the result of lua_eval for a script that failed.
func failing(t *testing.T, e *script.Error, output ...string) tool.View {
	t.Helper()
	var lines []host.OutputLine
	for _, text := range output {
		lines = append(lines, host.OutputLine{Stream: "stdout", Text: text})
	}
	view, err := script.ToolFailure(script.Outcome{Output: lines}, e).View()
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	views := map[string]tool.View{
		"test_0": {Structured: json.RawMessage(`{"result":null,"output":[{"stream":"stdout","text":"hello"}]}`)},
		"test_1": failing(t, &script.Error{Kind: script.RuntimeError, Script: "some_test.lua", Message: "got 2, want 3", Line: 42, SourceLine: "check.equal(2, 3)", Stack: []script.Frame{{Source: "some_test.lua", Line: 42, Function: "'test_1'"}}}, "before"),
		"test_2": failing(t, &script.Error{Kind: script.RuntimeError, Script: "weekly", Message: "in another script", Line: 99}),
		"test_3": {Structured: json.RawMessage(`{"status":"pending_approval","output":[]}`)},
	}
	run := func(_ context.Context, test Test) (tool.View, error) {
		if view, ok := views[test.Name]; ok {
			return view, nil
		}
		return tool.View{}, fault.New(fault.Config, "no recording").WithHint("record it")
	}
	var report Report
	var text strings.Builder
	Run(t.Context(), someTests(5), 2, run, func(o Outcome) {
		o.Duration = 1500 * time.Microsecond
		report.Outcomes = append(report.Outcomes, o)
		text.WriteString(o.Text(false))
	})
	want := `ok   folder/some_test.lua:10 test_0 (2ms)
FAIL folder/some_test.lua:11 test_1 (2ms)
     folder/some_test.lua:42: got 2, want 3
       42 | check.equal(2, 3)
     at some_test.lua:42: in 'test_1'
     | before
FAIL folder/some_test.lua:12 test_2 (2ms)
     folder/some_test.lua:12: in another script
FAIL folder/some_test.lua:13 test_3 (2ms)
     folder/some_test.lua:13: it waits for approval
     tests have nobody to ask: set approve = "never" in their configuration
FAIL folder/some_test.lua:14 test_4 (2ms)
     folder/some_test.lua:14: no recording
     record it
`
	if text.String() != want {
		t.Errorf("reported\n%s, want\n%s", text.String(), want)
	}
	if got := report.Outcomes[0].Text(true); !strings.Contains(got, "     | hello\n") {
		t.Errorf("the output of a test that passed is missing: %s", got)
	}
	if got := report.Summary(); got != "1 passed, 4 failed" {
		t.Errorf("the summary is %q", got)
	}
	checkJUnit(t, &report)
}

func checkJUnit(t *testing.T, report *Report) {
	t.Helper()
	report.Outcomes = append(report.Outcomes, Outcome{Test: Test{File: &File{Path: "other_test.js"}, Name: "test_x"}, Output: []string{"a < b & c"}})
	var out strings.Builder
	if err := report.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var read junitSuites
	if err := xml.Unmarshal([]byte(out.String()), &read); err != nil {
		t.Fatal(err)
	}
	if read.Tests != 6 || read.Failed != 4 || len(read.Suites) != 2 || read.Suites[0].Failed != 4 || read.Suites[0].Tests != 5 || read.Suites[0].Seconds != "0.007" && read.Suites[0].Seconds != "0.008" {
		t.Errorf("the report is\n%s", out.String())
	}
	second := read.Suites[0].Cases[1]
	if second.Failure == nil || second.Failure.Message != "folder/some_test.lua:42: got 2, want 3" || second.Line != 11 || second.Output != "before" {
		t.Errorf("a failed test is reported as %+v", second)
	}
	if got := read.Suites[1].Cases[0].Output; got != "a < b & c" {
		t.Errorf("the output is %q", got)
	}
}

// After an interrupt, tests that have not begun are reported as not run.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	var outcomes []Outcome
	Run(ctx, someTests(3), 1, func(context.Context, Test) (tool.View, error) {
		cancel(errors.New("interrupted"))
		return tool.View{}, nil
	}, func(o Outcome) { outcomes = append(outcomes, o) })
	if outcomes[0].Failure != nil || outcomes[1].Failure == nil || outcomes[2].Failure.Message != "not run: interrupted" {
		t.Errorf("the outcomes are %+v", outcomes)
	}
}
