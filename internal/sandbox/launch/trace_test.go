//go:build linux

package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// busy is a program that reads, writes, executes and looks into homes. It prints "done".
const busy = `
cat "$1/books/a" > /dev/null || exit 1
echo hello > "$1/notes/b" || exit 2
"$1/bin/tool" || exit 3
cat "$1/home/.ssh/key" > /dev/null 2>&1
cat "$HOME/.settings" > /dev/null 2>&1
cp /bin/sh "$TMPDIR/dropped" && "$TMPDIR/dropped" -c true || exit 4
echo done`

// TestTracedProgramWorksInTheSmallestProfile traces a program, and starts it again in the
// profile that the trace shows.
func TestTracedProgramWorksInTheSmallestProfile(t *testing.T) {
	t.Parallel()
	folder := folderOutsideTmp(t)
	l := &Launcher{Folder: filepath.Join(folder, "data", "sandbox"), Home: filepath.Join(folder, "home")}
	if s := l.Support(); !s.enough(profile.Strict) || s.Namespaces != "" { // without them, TMPDIR is a folder that exists
		t.Skipf("strict is not possible here: %v", s.Missing())
	}
	program := busyProgram(t, folder)
	given := profile.Profile{Name: "busy", Level: profile.Strict}
	if _, err := output(t, l, given, program); err == nil {
		t.Error("it works in a strict sandbox without a trace")
	}

	var trace profile.Trace
	stop := l.Trace("busy", Trace{Write: []string{filepath.Join(folder, "notes")}, Noted: trace.Add})
	if text, err := output(t, l, given, program); text != "done\n" {
		t.Fatalf("traced: %q %v", text, err)
	}
	stop()
	learned := profile.Learned{Name: "busy", Home: l.Home, UserID: os.Getuid(), Uses: trace.Uses()}
	smallest := learned.Smallest()
	if want := []string{filepath.Join(folder, "bin/tool"), filepath.Join(folder, "books/a")}; !slices.Equal(smallest.Read, want) {
		t.Errorf("read is %v, not %v", smallest.Read, want)
	}
	if want := []string{filepath.Join(folder, "notes")}; !slices.Equal(smallest.Write, want) || !smallest.Exec || smallest.Sockets || smallest.Network != nil {
		t.Errorf("the profile is %+v", smallest)
	}
	text := learned.TOML()
	for _, part := range []string{"# It tried to read credentials. To allow it: read = [", `"~/.ssh/key"`, "only yours has. To give it: read = [", `"~/.settings"`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if text, err := output(t, l, smallest, program); text != "done\n" {
		t.Errorf("in its profile: %q %v", text, err)
	}
}

func busyProgram(t *testing.T, folder string) Program {
	t.Helper()
	for name, content := range map[string]string{
		"books/a": "", "notes/old": "", "bin/tool": "#!/bin/sh\nexit 0\n", "home/.ssh/key": "secret", "home/.settings": "",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	return Program{Path: shell, Args: []string{"sh", "-c", busy, "sh", folder}, Env: []string{"PATH=/usr/bin:/bin"}}
}

// output runs a program to its end and returns what it wrote.
func output(t *testing.T, l *Launcher, p profile.Profile, program Program) (string, error) {
	t.Helper()
	cmd, err := l.Command(p, program)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// TestGivenPartsOfTheHomeAreInThePrivateHome reads a file of the user's home as programs do,
// below HOME, and leaves alone what a hostile program has put in its place.
func TestGivenPartsOfTheHomeAreInThePrivateHome(t *testing.T) {
	t.Parallel()
	folder := folderOutsideTmp(t)
	l := &Launcher{Folder: filepath.Join(folder, "data", "sandbox"), Home: filepath.Join(folder, "home")}
	if s := l.Support(); !s.enough(profile.Strict) {
		t.Skipf("strict is not possible here: %v", s.Missing())
	}
	program := busyProgram(t, folder)
	program.Args = []string{"sh", "-c", `cat "$HOME/.ssh/key"; rm -rf "$HOME/.config"; ln -s "$1/notes" "$HOME/.config"`, "sh", folder}
	p := profile.Profile{Name: "x", Level: profile.Strict, Read: []string{filepath.Join(l.Home, ".ssh"), filepath.Join(l.Home, ".config", "tool")}}
	for range 2 {
		if text, err := output(t, l, p, program); text != "secret" || err != nil {
			t.Errorf("%q %v", text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(folder, "notes", "tool")); err == nil {
		t.Error("a link was made outside of the private home")
	}
}

func TestContainersAreNotTraced(t *testing.T) {
	t.Parallel()
	l := &Launcher{Folder: t.TempDir()}
	defer l.Trace("x", Trace{Noted: func(profile.Use) {}})()
	_, err := l.Command(profile.Profile{Name: "x", Level: "docker:node"}, Program{Path: "node", Args: []string{"node"}})
	if err == nil || !strings.Contains(err.Error(), "cannot be traced") {
		t.Errorf("got %v", err)
	}
}
