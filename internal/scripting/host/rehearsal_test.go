package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// listedTools are tools that are listed and never called.
type listedTools []tool.Info

func (s listedTools) Tools(context.Context) ([]tool.Info, error) { return s, nil }

func (s listedTools) Call(context.Context, tool.Call) (tool.Result, error) {
	panic("a rehearsal called a tool")
}

// rehearsed returns an environment whose Handler is a rehearsal, with files to write.
func rehearsed(t *testing.T, r *Rehearsal) (call func(module, name string, kind Kind, path int, do func(*Services, Args) ([]Value, error), args ...Value) ([]Value, error), folder string) {
	t.Helper()
	folder = t.TempDir()
	temp := NewTemp(t.TempDir(), 1000)
	env := NewEnv(nil, r, &Services{
		Files: NewFiles(temp, FilesOptions{Write: []string{folder}}), Temp: temp, Clock: NewClock(clock.NewVirtual(time.UnixMilli(0))),
	})
	return func(module, name string, kind Kind, path int, do func(*Services, Args) ([]Value, error), args ...Value) ([]Value, error) {
		f := &Func{Name: name, Kind: kind, Path: path, Action: Does(name, 1), Effect: func(_ context.Context, w *Services, a Args) ([]Value, error) { return do(w, a) }}
		return env.Call(t.Context(), module, f, args)
	}, folder
}

func writeFile(w *Services, a Args) ([]Value, error) {
	path, _ := a.String(1)
	text, _ := a.String(2)
	return nil, w.Files.Write(path, []byte(text), false)
}

func readFile(w *Services, a Args) ([]Value, error) {
	path, _ := a.String(1)
	data, err := w.Files.Read(path)
	return []Value{string(data)}, err
}

// TestRehearsalMakesNoReadThatNeedsApproval checks that such a read is an entry of the plan.
func TestRehearsalMakesNoReadThatNeedsApproval(t *testing.T) {
	t.Parallel()
	r := NewRehearsal(nil, verdicts{"git.log": Ask, "git.blame": Deny}, nil)
	call, _ := rehearsed(t, r)
	made := 0
	read := func(*Services, Args) ([]Value, error) { made++; return nil, nil }
	for _, name := range []string{"log", "status", "blame"} {
		if _, err := call("mcp", "call", Read, 0, read, "git", name, json.RawMessage("{}")); (err != nil) != (name == "blame") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := PlanText(r.Plan()); made != 1 || got != "1. would call git.log {}" || len(r.Reads()) != 1 {
		t.Errorf("%d reads were made; plan: %s", made, got)
	}
}

func TestRehearsalPlansAndMocks(t *testing.T) {
	t.Parallel()
	r := NewRehearsal(listedTools{{
		Ref:    tool.Ref{Space: "git", Name: "issue"},
		Output: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer","minimum":1},"url":{"type":"string"}}}`),
	}}, nil, map[string]json.RawMessage{"git.close": json.RawMessage(`{"closed":true}`)})
	call, folder := rehearsed(t, r)
	never := func(*Services, Args) ([]Value, error) { t.Error("the effect was carried out"); return nil, nil }
	file := filepath.Join(folder, "a.txt")
	if values, err := call("fs", "write", Idempotent, 1, writeFile, file, "hello"); err != nil || values != nil {
		t.Errorf("write answered %v, %v", values, err)
	}
	if _, err := call("fs", "write", Idempotent, 1, writeFile, "/etc/passwd", "x"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("writing elsewhere: %v", err)
	}
	for name, want := range map[string]string{"issue": `{"number":1,"url":""}`, "close": `{"closed":true}`, "unknown": `{}`} {
		values, err := call("mcp", "call", Write, 0, never, "git", name, json.RawMessage(`{"title":"x"}`))
		if err != nil || len(values) != 1 || fmt.Sprintf("%s", values[0]) != want {
			t.Errorf("%s answered %s, %v, want %s", name, values, err, want)
		}
		values[0].(*Lazy).Look()
	}
	if values, err := call("fs", "read", Read, 0, readFile, file); err != nil || len(values) != 1 || values[0] != "hello" {
		t.Errorf("what would be written reads as %v, %v", values, err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("written to disk: %v", left)
	}
	plan := r.Plan()
	if len(r.Reads()) != 1 || len(plan) != 4 {
		t.Fatalf("reads %v, plan %v", r.Reads(), plan)
	}
	if plan[0].Action != `write "`+file+`" (5 bytes)` || plan[0].Uncertain || plan[1].Uncertain || !plan[2].Uncertain || r.Certain() {
		t.Errorf("plan %+v", plan)
	}
}

// TestRehearsalReadsItsOwnWrites checks that all read functions see what a rehearsal would
// have written.
func TestRehearsalReadsItsOwnWrites(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "changed"), []byte("old"), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "removed"), []byte("x"), 0o600))
	files := NewFiles(NewTemp(t.TempDir(), 1000), FilesOptions{Write: []string{folder}}).ForRehearsal()
	at := func(name string) string { return filepath.Join(folder, name) }
	must(t, files.Write(at("changed"), []byte(" and new"), true))
	must(t, files.Write(at("sub/deep.txt"), []byte("one"), false))
	must(t, files.Remove(at("removed")))
	if err := files.Remove(at("never")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("removing what is not there: %v", err)
	}
	if text, err := files.Read("changed"); err != nil || string(text) != "old and new" {
		t.Errorf("changed reads %q, %v", text, err)
	}
	if _, err := files.Read(at("removed")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("removed reads %v", err)
	}
	if there, err := files.Exists(at("sub")); !there || err != nil {
		t.Errorf("sub: %t, %v", there, err)
	}
	entries, err := files.List(folder)
	if got := fmt.Sprint(entries); err != nil || got != "[{changed false 11} {sub true 0}]" {
		t.Errorf("List = %s, %v", got, err)
	}
	if entries, err = files.List(at("sub")); err != nil || fmt.Sprint(entries) != "[{deep.txt false 3}]" {
		t.Errorf("List(sub) = %v, %v", entries, err)
	}
	if found, err := files.Find("**/*.txt", 10); err != nil || len(found) != 1 || found[0] != at("sub/deep.txt") {
		t.Errorf("Find = %v, %v", found, err)
	}
	var walked []string
	must(t, files.Walk("", func(string) bool { return false }, func(path string, _ fs.FileInfo, read func() ([]byte, error)) error {
		text, err := read()
		walked = append(walked, filepath.Base(path)+"="+string(text))
		return err
	}))
	if got := strings.Join(walked, " "); got != "changed=old and new deep.txt=one" {
		t.Errorf("walked %s", got)
	}
	if err := files.Write(at("large"), make([]byte, 2000), false); fault.CodeOf(err) != fault.Limit {
		t.Errorf("more than it may hold: %v", err)
	}
	if left, _ := os.ReadFile(at("changed")); string(left) != "old" {
		t.Errorf("on disk now: %q", left)
	}
}

// TestRehearsedTime checks that sleeping in a rehearsal takes no time and advances
// the run's clock.
func TestRehearsedTime(t *testing.T) {
	t.Parallel()
	call, _ := rehearsed(t, NewRehearsal(nil, nil, nil))
	sleep := func(w *Services, _ Args) ([]Value, error) {
		return nil, w.Clock.Sleep(context.Background(), time.Hour)
	}
	now := func(w *Services, _ Args) ([]Value, error) { return []Value{w.Clock.Milliseconds()}, nil }
	if _, err := call("clock", "sleep", Nondeterministic, 0, sleep); err != nil {
		t.Fatal(err)
	}
	if values, err := call("clock", "now", Nondeterministic, 0, now); err != nil || values[0] != int64(3600_000) {
		t.Errorf("now = %v, %v", values, err)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                               `{}`,
		`{"type":"string","enum":["a"]}`: `"a"`,
		`{"type":["null","number"]}`:     `0`,
		`{"items":{"type":"boolean"}}`:   `[false]`,
		`{"anyOf":[{"const":7},{}]}`:     `7`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`: `{"b":""}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`:                                   `null`,
	} {
		if got := string(Sample(json.RawMessage(schema))); got != want {
			t.Errorf("Sample(%s) = %s, want %s", schema, got, want)
		}
	}
}
