package lua

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved runs a program in a sandbox and saves the state.
func saved(t testing.TB, source string) []byte {
	t.Helper()
	s := sandbox(t, source)
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func sandbox(t testing.TB, source string) *State {
	t.Helper()
	s := New(Options{Seed: 3})
	if err := s.Open(Sandboxed()...); err != nil {
		t.Fatal(err)
	}
	if _, err := run(s, source, "=saved"); err != nil {
		t.Fatal(err)
	}
	return s
}

// answer calls the global function answer of a state.
func answer(t testing.TB, s *State) string {
	t.Helper()
	vals, err := s.Call(context.Background(), s.Globals().GetString("answer"))
	if err != nil {
		t.Fatal(err)
	}
	return vals[0].String()
}

// TestSnapshotIsDeterministic saves equal states, restored ones included.
func TestSnapshotIsDeterministic(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("testdata/transfer/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range programs {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(source), "\n----\n")
		var snapshots [4]bytes.Buffer
		var out bytes.Buffer
		for i := range 2 {
			s := newPrintingState(t, &out)
			perform(s, &out, first)
			if err := s.Snapshot(&snapshots[i]); err != nil {
				t.Fatal(err)
			}
		}
		restored, err := Restore(snapshots[0].Bytes(), RestoreOptions{Libraries: All()})
		if err != nil {
			t.Fatal(err)
		}
		forked, err := restored.Fork()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(restored.Snapshot(&snapshots[2]), forked.Snapshot(&snapshots[3])); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"", "of an equal state", "of the restored state", "of its fork"} {
			if !bytes.Equal(snapshots[0].Bytes(), snapshots[i].Bytes()) {
				t.Errorf("%s: the snapshot %s differs", path, name)
			}
		}
	}
}

// TestSnapshotNames checks that a snapshot names what cannot be saved.
func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	s := sandbox(t, `x = {y = {}} function holder() return x end
		local secret = {} function hidden() return secret end
		local co = coroutine.wrap(function() local inside = {} coroutine.yield(inside) end) box = co() gen = co
		answer = function() return tostring(x.y.handle) .. tostring(anonymous) .. #list end list = {1, 2, 3}`)
	handle := NewUserdata(os.Stdin, nil).Value()
	x, _ := s.Globals().GetString("x").AsTable()
	y, _ := x.GetString("y").AsTable()
	y.SetString("handle", handle)
	var data bytes.Buffer
	err := s.Snapshot(&data)
	var stuck *TransferError
	if !errors.As(err, &stuck) || stuck.Error() != "globals.x.y.handle: a userdata of type *os.File cannot be saved" {
		t.Errorf("got %v", err)
	}
	if data.Len() != 0 {
		t.Error("a strict snapshot wrote something")
	}
	s.Globals().SetString("anonymous", NewFunc("", func(*Call) error { return nil }).Value())
	left, err := s.SnapshotPartial(&data)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range left {
		paths = append(paths, e.Path)
	}
	if got := strings.Join(paths, " "); got != "globals.anonymous globals.x.y.handle" {
		t.Errorf("left out: %s", got)
	}
	restored, err := Restore(data.Bytes(), RestoreOptions{Libraries: Sandboxed()})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, restored); got != "nilnil3" {
		t.Errorf("the rest is %s", got)
	}
	y.SetString("handle", Nil)
	s.Globals().SetString("anonymous", Nil)
	checkPath(t, s, "box", "globals.gen(value 1)(local inside).h")
	inside, _ := s.Globals().GetString("box").AsTable()
	inside.SetString("h", Nil)
	secret := *s.Globals().GetString("hidden").function().upvalues[0].v
	_ = secret.table().Set(Bool(true), handle)
	if err := s.Snapshot(&data); err == nil || !strings.Contains(err.Error(), "globals.hidden(upvalue secret)[true]: ") {
		t.Errorf("got %v", err)
	}
}

// checkPath puts something into the table of a global that is only reached
// elsewhere, and expects the message to name that path.
func checkPath(t *testing.T, s *State, global, path string) {
	t.Helper()
	inside, _ := s.Globals().GetString(global).AsTable()
	inside.SetString("h", NewUserdata(make(chan int), nil).Value())
	s.Globals().SetString(global, Nil)
	err := s.Snapshot(new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), path+": a userdata of type chan int cannot be saved") {
		t.Errorf("got %v, want path %s", err, path)
	}
	s.Globals().SetString(global, inside.Value())
}

// TestRestoreNeedsFunctions checks that Restore names a missing host function, and finds
// those that are given.
func TestRestoreNeedsFunctions(t *testing.T) {
	t.Parallel()
	greet := NewFunc("test.greet", func(c *Call) error { return c.Return(String("hello " + c.Upvalue(1).String())) })
	s := sandbox(t, `answer = function() return greet() end`)
	s.Globals().SetString("greet", greet.Bind(String("you")).Value())
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(data.Bytes(), RestoreOptions{Libraries: Sandboxed()})
	if err == nil || !strings.Contains(err.Error(), `the host function "test.greet"`) {
		t.Errorf("got %v", err)
	}
	restored, err := Restore(data.Bytes(), RestoreOptions{Libraries: Sandboxed(), Functions: []*Function{greet}})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, restored); got != "hello you" {
		t.Errorf("got %s", got)
	}
	if _, err := Restore(data.Bytes(), RestoreOptions{}); err == nil {
		t.Error("restored without libraries")
	}
}

// TestTransferOfHostYield moves a coroutine that waits in a host function.
func TestTransferOfHostYield(t *testing.T) {
	t.Parallel()
	ask := NewFunc("test.ask", func(c *Call) error {
		if !c.Resumed() {
			return c.Yield(String("question"), c.Arg(1))
		}
		return c.Return(String("answer"), c.Arg(1))
	})
	opts := RestoreOptions{Libraries: Sandboxed(), Functions: []*Function{ask}}
	s := New(Options{})
	if err := s.Open(Sandboxed()...); err != nil {
		t.Fatal(err)
	}
	s.Globals().SetString("ask", ask.Value())
	if _, err := run(s, `co = coroutine.wrap(function() return pcall(function() return "got", ask(1) end) end) co()
		answer = function() return table.concat({select(2, co("yes"))}, " ") end`, "=asking"); err != nil {
		t.Fatal(err)
	}
	s.Registry().SetString("held by the host", s.Globals().GetString("co"))
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(data.Bytes(), opts)
	if err != nil {
		t.Fatal(err)
	}
	forked, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]*State{"restored": restored, "forked": forked, "original": s} {
		if state.Registry().GetString("held by the host") != state.Globals().GetString("co") {
			t.Errorf("%s: the host lost its coroutine", name)
		}
		if got := answer(t, state); got != "got answer yes" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

type note struct {
	Text string `json:"text"`
}

func (n *note) Save() (string, []byte, error) {
	data, err := json.Marshal(n)
	return "test.note", data, err
}

// TestSnapshotUserdata saves a userdata whose Data is a Saver.
func TestSnapshotUserdata(t *testing.T) {
	t.Parallel()
	s := sandbox(t, `answer = function() return tostring(n) .. tostring(null) end`)
	meta := NewTable(0, 0)
	meta.SetString("__name", String("note"))
	s.Globals().SetString("n", NewUserdata(&note{"remember"}, meta).Value())
	s.Globals().SetString("null", Null)
	list := NewArray(0)
	s.Globals().SetString("list", list.Value())
	want := answer(t, s)
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(data.Bytes(), RestoreOptions{Libraries: Sandboxed()}); err == nil || !strings.Contains(err.Error(), `kind "test.note"`) {
		t.Errorf("got %v", err)
	}
	restored, err := Restore(data.Bytes(), RestoreOptions{
		Libraries: Sandboxed(),
		Userdata: map[string]func([]byte) (any, error){"test.note": func(data []byte) (any, error) {
			n := &note{}
			return n, json.Unmarshal(data, n)
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := restored.Globals().GetString("n").AsUserdata()
	if n, ok := u.Data.(*note); !ok || n.Text != "remember" {
		t.Errorf("got %#v", u.Data)
	}
	if got := answer(t, restored); got != want || restored.Globals().GetString("null") != Null {
		t.Errorf("got %s, want %s", got, want)
	}
	if l, _ := restored.Globals().GetString("list").AsTable(); !l.IsArray() {
		t.Error("the mark of an array is lost")
	}
}

// TestRestoreGrownLibrary restores a state where its libraries have more
// functions than where it was saved.
func TestRestoreGrownLibrary(t *testing.T) {
	t.Parallel()
	one := func(c *Call) error { return c.Return(Int(1)) }
	old := NewLibrary("tool", []Reg{{"call", one}, {"drop", one}}, nil, nil)
	grown := NewLibrary("tool", []Reg{{"call", one}, {"fresh", one}, {"drop", one}}, nil, nil)
	for name, change := range map[string]string{"untouched": "", "changed": "tool.drop = nil tool.own = 5 "} {
		s := New(Options{})
		if err := s.Open(Base, old); err != nil {
			t.Fatal(err)
		}
		if _, err := run(s, change+`answer = function() local names = "" for k in pairs(tool) do names = names .. k .. " " end return names end`, "=x"); err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		if err := s.Snapshot(&data); err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(data.Bytes(), RestoreOptions{Libraries: []*Library{Base, grown}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"untouched": "call fresh drop ", "changed": "call own fresh "}[name]
		if got := answer(t, restored); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		_, err = Restore(data.Bytes(), RestoreOptions{Libraries: []*Library{Base}})
		if err == nil || !strings.Contains(err.Error(), "tool") {
			t.Errorf("%s, without the library: %v", name, err)
		}
	}
}

// TestRestoreRefuses checks that only an undamaged snapshot of this engine is accepted.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	data := saved(t, "x = 1")
	opts := RestoreOptions{Libraries: Sandboxed()}
	if _, err := Restore(data, opts); err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		c := bytes.Clone(data)
		c[at]++
		return c
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":         {nil, ErrNotSnapshot},
		"something else":  {[]byte("print('hello, this is a program')"), ErrNotSnapshot},
		"another version": {changed(len(snapshotMagic)), ErrSnapshotVersion},
		"another machine": {changed(len(snapshotMagic) + 1), ErrSnapshotVersion},
		"a changed byte":  {changed(len(data) / 2), ErrSnapshotCorrupt},
		"a piece":         {data[:len(data)/2], ErrSnapshotCorrupt},
	} {
		if _, err := Restore(c.data, opts); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	opts.Budget.Memory = 100
	var over *BudgetError
	if _, err := Restore(data, opts); !errors.As(err, &over) {
		t.Errorf("over budget: got %v", err)
	}
}

// TestRestoreWithoutLibraries restores a state that has no libraries.
func TestRestoreWithoutLibraries(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	if _, err := run(s, `x = {1, 2} function answer() return #x end`, "=bare"); err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(data.Bytes(), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, restored); got != "2" {
		t.Errorf("got %s", got)
	}
}

// TestRestoreKeepsItsBudget checks that the budget limits a restored state.
func TestRestoreKeepsItsBudget(t *testing.T) {
	t.Parallel()
	data := saved(t, "function answer() while true do end end")
	s, err := Restore(data, RestoreOptions{Libraries: Sandboxed(), Budget: Budget{Steps: 1000, Memory: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	var over *BudgetError
	_, err = s.Call(context.Background(), s.Globals().GetString("answer"))
	if !errors.As(err, &over) || over.Limit != LimitSteps {
		t.Errorf("got %v", err)
	}
	if used := s.Usage().Memory; used < 1000 || used > 100_000 {
		t.Errorf("a small state uses %d bytes", used)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for name, source := range map[string]string{"empty": "", "small": smallSession, "1MB": largeSession} {
		b.Run(name, func(b *testing.B) {
			s := benchmarkState(b, source)
			var data bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				data.Reset()
				if err := s.Snapshot(&data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(data.Len()), "snapshot-bytes")
		})
	}
}

func BenchmarkRestore(b *testing.B) {
	for name, source := range map[string]string{"empty": "", "small": smallSession, "1MB": largeSession} {
		b.Run(name, func(b *testing.B) {
			var data bytes.Buffer
			if err := benchmarkState(b, source).Snapshot(&data); err != nil {
				b.Fatal(err)
			}
			opts := RestoreOptions{Libraries: Sandboxed()}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Restore(data.Bytes(), opts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
