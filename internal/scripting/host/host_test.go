package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestFilesStayInside(t *testing.T) {
	t.Parallel()
	outside, readable, writable := t.TempDir(), t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
	must(t, os.WriteFile(filepath.Join(readable, "song.abc"), []byte("X:1"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(writable, "way-out")))
	temp := NewTemp(t.TempDir(), 1000)
	files := NewFiles(temp, FilesOptions{Read: []string{readable}, Write: []string{writable}})

	for _, path := range []string{
		filepath.Join(outside, "secret"),
		filepath.Join(readable, "..", filepath.Base(outside), "secret"),
		"../" + filepath.Base(outside) + "/secret",
		filepath.Join(writable, "way-out", "secret"),
		"/etc/passwd",
	} {
		if _, err := files.Read(path); err == nil {
			t.Errorf("Read(%q) left the allowed folders", path)
		}
		if err := files.Write(path, []byte("x"), false); err == nil {
			t.Errorf("Write(%q) left the allowed folders", path)
		}
	}
	if err := files.Write(filepath.Join(readable, "new"), nil, false); fault.CodeOf(err) != fault.Denied {
		t.Errorf("writing to a read-only folder: %v", err)
	}
	if data, err := files.Read(filepath.Join(readable, "song.abc")); err != nil || string(data) != "X:1" {
		t.Errorf("Read = %q, %v", data, err)
	}
	if data, err := files.Read("song.abc"); err != nil || string(data) != "X:1" {
		t.Errorf("Read of a relative path = %q, %v", data, err)
	}
	must(t, files.Write(filepath.Join(writable, "a", "b.txt"), []byte("1"), false))
	must(t, files.Write(filepath.Join(writable, "a", "b.txt"), []byte("2"), true))
	if data, _ := files.Read(filepath.Join(writable, "a", "b.txt")); string(data) != "12" {
		t.Errorf("appended file holds %q", data)
	}
	found, err := files.Find("**/*.txt", 10)
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "b.txt" {
		t.Errorf("Find = %q, %v", found, err)
	}
}

func TestTempIsLimitedAndRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	temp := NewTemp(parent, 100)
	files := NewFiles(temp, FilesOptions{})
	path, err := temp.Path("out.mid")
	must(t, err)
	must(t, files.Write(path, make([]byte, 80), false))
	if err := files.Write("second", make([]byte, 80), false); fault.CodeOf(err) != fault.Limit {
		t.Errorf("writing to a full temp folder: %v", err)
	}
	must(t, files.Remove(path))
	if err := files.Write("second", make([]byte, 80), false); err != nil {
		t.Errorf("removing a file did not free space: %v", err)
	}
	if _, err := temp.Path("../x"); err == nil {
		t.Error("a temp path left the folder")
	}
	must(t, temp.Close())
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("%d entries are left behind", len(left))
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	done := 0
	env := func(d Handler) *Env { return NewEnv(nil, d, &Services{}) }
	effect := &Func{Name: "write", Kind: Write, Effect: func(context.Context, *Services, Args) ([]Value, error) {
		done++
		return []Value{int64(done)}, nil
	}}
	observe := &Func{Name: "info", Kind: Observe, Effect: effect.Effect}

	if _, err := env(DenyEffects("describing")).Call(t.Context(), "fs", effect, nil); fault.CodeOf(err) != fault.Denied || done != 0 {
		t.Errorf("DenyEffects let a write pass: %v", err)
	}
	if _, err := env(DenyEffects("describing")).Call(t.Context(), "log", observe, nil); err != nil || done != 1 {
		t.Errorf("DenyEffects refused an observation: %v", err)
	}
	counted := env(LimitEffects(Live(), 2))
	for i, want := range []fault.Code{"", "", fault.Limit} {
		_, err := counted.Call(t.Context(), "fs", effect, nil)
		if err == nil && want != "" || err != nil && fault.CodeOf(err) != want {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if done != 3 {
		t.Errorf("%d effects were done", done)
	}
}

func TestArgErrorsReadAsInLua(t *testing.T) {
	t.Parallel()
	args := Args{Func: "midi.write", Values: []Value{true, 1.5, json.RawMessage(`{"a":1}`), "text", int64(7)}}
	for _, c := range []struct {
		get  func() error
		want string
	}{
		{func() error { _, err := args.String(1); return err }, "bad argument #1 to 'midi.write' (string expected, got boolean)"},
		{func() error { _, err := args.Int(2); return err }, "bad argument #2 to 'midi.write' (whole number expected, got number)"},
		{func() error { _, err := args.Table(4); return err }, "bad argument #4 to 'midi.write' (table expected, got string)"},
		{func() error { _, err := args.Float(9); return err }, "bad argument #9 to 'midi.write' (number expected, got no value)"},
	} {
		if err := c.get(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	var table struct{ A int }
	if err := args.Decode(3, &table); err != nil || table.A != 1 {
		t.Errorf("Decode = %+v, %v", table, err)
	}
	if s, err := args.String(5); err != nil || s != "7" {
		t.Errorf("a number as string = %q, %v", s, err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var seen []string
	out := NewOutput(slog.New(slog.NewTextHandler(&log, nil)), 20, func(l OutputLine) { seen = append(seen, l.Text) })
	now := time.Unix(0, 0)
	must(t, out.Print("stdout", "", "hello", now))
	must(t, out.Log(t.Context(), slog.LevelWarn, "careful", now))
	if err := out.Print("stdout", "", strings.Repeat("x", 30), now); fault.CodeOf(err) != fault.Limit {
		t.Errorf("printing past the limit: %v", err)
	}
	if got := strings.Join(seen, "|"); got != "hello|careful" || len(out.Lines()) != 2 {
		t.Errorf("stored %v, watched %q", out.Lines(), got)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "careful") {
		t.Errorf("log = %s", &log)
	}
}

func TestClockAdvances(t *testing.T) {
	t.Parallel()
	c := NewClock(clock.NewVirtual(time.UnixMilli(5000)))
	c.Advance(1000)
	if got := c.Milliseconds(); got != 6000 {
		t.Errorf("Milliseconds = %d", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
