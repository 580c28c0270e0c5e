package main

import (
	"strings"
	"testing"
	"time"
)

// output is what `go test -json` prints of a package whose only subtest fails.
const output = `{"Action":"start","Package":"github.com/luanette/luanette/internal/x"}
{"Action":"run","Package":"github.com/luanette/luanette/internal/x","Test":"TestA"}
{"Action":"run","Package":"github.com/luanette/luanette/internal/x","Test":"TestA/b"}
{"Action":"output","Package":"github.com/luanette/luanette/internal/x","Test":"TestA/b","Output":"    x_test.go:7: wrong\n"}
{"Action":"fail","Package":"github.com/luanette/luanette/internal/x","Test":"TestA/b","Elapsed":1}
{"Action":"fail","Package":"github.com/luanette/luanette/internal/x","Test":"TestA","Elapsed":1}
{"Action":"run","Package":"github.com/luanette/luanette/internal/x","Test":"TestC"}
{"Action":"output","Package":"github.com/luanette/luanette/internal/x","Test":"TestC","Output":"    x_test.go:9: no such program\n"}
{"Action":"skip","Package":"github.com/luanette/luanette/internal/x","Test":"TestC"}
{"Action":"fail","Package":"github.com/luanette/luanette/internal/x","Elapsed":1.5}
`

func TestReport(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	r := newReport(&printed, time.Minute)
	r.expect(2)
	if err := r.read(strings.NewReader(output)); err != nil {
		t.Fatal(err)
	}
	if r.summary() == nil {
		t.Error("a failed test is no error")
	}
	for _, want := range []string{
		"[1/2]    1.5 s  FAIL  internal/x", "FAIL ./internal/x TestA/b\n        x_test.go:7: wrong\n",
		`make test ARGS='-count=1 ./internal/x -run="TestA/b"'`, "skipped 1: no such program", "\n0 passed, 1 failed, 1 skipped",
	} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is not in:\n%s", want, printed.String())
		}
	}
}

// TestDeadProcess checks that the output of tests whose end was not reported is shown.
func TestDeadProcess(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	r := newReport(&printed, time.Minute)
	lines := strings.SplitAfter(output, "\n")
	if err := r.read(strings.NewReader(strings.Join(append(lines[:4:4], lines[9]), ""))); err != nil {
		t.Fatal(err)
	}
	if r.summary() == nil || !strings.Contains(printed.String(), "x_test.go:7: wrong") {
		t.Errorf("printed:\n%s", printed.String())
	}
}

// TestStacks checks that the stacks of a process that hangs are shown, although they follow the
// output of a test that has passed.
func TestStacks(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	r := newReport(&printed, time.Minute)
	line := func(rest string) {
		if err := r.read(strings.NewReader(`{"Package":"github.com/luanette/luanette/internal/x",` + rest + "}\n")); err != nil {
			t.Fatal(err)
		}
	}
	line(`"Action":"run","Test":"TestHangs"`)
	line(`"Action":"run","Test":"TestPasses"`)
	line(`"Action":"output","Test":"TestPasses","Output":"--- PASS: TestPasses (0.30s)\n"`)
	p := r.running["github.com/luanette/luanette/internal/x"]
	if name, _ := p.longest(); name != "TestHangs" || !p.tests["TestPasses"].since.IsZero() {
		t.Errorf("%s runs, and TestPasses since %v", name, p.tests["TestPasses"].since)
	}
	p.hangs = true
	line(`"Action":"output","Test":"TestPasses","Output":"goroutine 7 [select]:\n"`)
	line(`"Action":"pass","Test":"TestPasses"`)
	line(`"Action":"fail"`)
	if r.summary() == nil || !strings.Contains(printed.String(), "goroutine 7") {
		t.Errorf("printed:\n%s", printed.String())
	}
}

// TestLongest checks that neither a test that waits for its turn nor one that waits for its
// subtests is taken for one that hangs.
func TestLongest(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *test { return &test{since: time.Now().Add(-d)} }
	p := &pack{tests: map[string]*test{"TestA": ago(time.Hour), "TestA/b": ago(time.Minute), "TestA/paused": {}, "TestC": ago(time.Second)}}
	if name, took := p.longest(); name != "TestA/b" || took < time.Minute {
		t.Errorf("%s for %s", name, took)
	}
	p.end("TestA/b")
	p.end("TestA/paused")
	if name, took := p.longest(); took > time.Minute {
		t.Errorf("after its subtests %s hangs for %s", name, took)
	}
}
