package install_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/textdiff"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/install"
)

type fixture struct {
	*testing.T
	install.Installer
}

func open(t *testing.T) fixture {
	t.Helper()
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	system := clientfile.System{OS: "linux", Home: home, Dir: project, Getenv: func(string) string { return "" }}
	return fixture{t, install.Installer{System: system, Records: filepath.Join(home, "records")}}
}

// client returns a client and the path of its file.
func (f fixture) client(name string) (clientfile.Client, string) {
	f.Helper()
	c, err := clientfile.ClientNamed(name)
	if err != nil {
		f.Fatal(err)
	}
	file, err := c.Target(f.System, false)
	if err != nil {
		f.Fatal(err)
	}
	return c, file.Path
}

func (f fixture) write(path, text string) {
	f.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
		f.Fatal(err)
	}
}

// wantFile fails unless a file has a text; "" means that there is none.
func (f fixture) wantFile(path, want string) {
	f.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !(want == "" && errors.Is(err, fs.ErrNotExist)) || string(text) != want {
		f.Errorf("%s is\n%s\n(%v), want\n%s", filepath.Base(path), text, err, want)
	}
}

var stdio = clientfile.Launch{Command: "luanette", Args: []string{"stdio"}}

func (f fixture) install(name string, change func(*install.Request)) install.Result {
	f.Helper()
	c, _ := f.client(name)
	q := install.Request{Client: c, Launch: stdio}
	if change != nil {
		change(&q)
	}
	r, err := f.Install(f.Context(), q)
	if err != nil {
		f.Fatalf("install in %s: %v", name, err)
	}
	return r
}

func (f fixture) uninstall(name string) install.Result {
	f.Helper()
	c, _ := f.client(name)
	r, err := f.Uninstall(c, false, false)
	if err != nil {
		f.Fatalf("uninstall from %s: %v", name, err)
	}
	return r
}

// TestEveryClient reads a file of each client, installs Luanette in it and removes it
// again. testdata has the files, what is read from them, and what they become.
func TestEveryClient(t *testing.T) {
	t.Parallel()
	for _, c := range clientfile.Clients {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			golden := filepath.Join("testdata", c.Name+".txtar")
			archive, err := txtar.ParseFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			before := string(archive.Files[0].Data)
			f := open(t)
			_, path := f.client(c.Name)
			f.write(path, before)
			got := &txtar.Archive{Files: []txtar.File{archive.Files[0], {Name: "servers", Data: f.servers(clientfile.File{Client: c, Path: path})}}}

			for _, kind := range []string{"installed", "url"} {
				launch := stdio
				if kind == "url" {
					launch = clientfile.Launch{URL: "http://127.0.0.1:8081/mcp", Headers: map[string]string{"Authorization": "Bearer x"}}
				}
				if _, err := c.Entry(launch); err != nil {
					continue
				}
				r := f.install(c.Name, func(q *install.Request) { q.Launch = launch })
				got.Files = append(got.Files, txtar.File{Name: kind, Data: r.After})
				f.uninstall(c.Name)
				f.wantFile(path, before)
			}
			text := txtar.Format(got)
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, text, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, _ := os.ReadFile(golden); !bytes.Equal(want, text) {
				t.Errorf("%s differs; run `make golden`:\n%s", golden, textdiff.Unified(golden, want, text))
			}
			f.wantNothingLeft(path)
		})
	}
}

// wantNothingLeft fails if there is anything but one file and empty folders.
func (f fixture) wantNothingLeft(but string) {
	f.Helper()
	err := filepath.WalkDir(f.System.Home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path != but {
			f.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		f.Error(err)
	}
}

// servers describes what is read from a file.
func (f fixture) servers(file clientfile.File) []byte {
	servers, err := file.Read(f.System)
	if err != nil {
		f.Fatal(err)
	}
	var out strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&out, "%s:", s.Key)
		line := []any{"command", s.Spec.Command, "args", s.Spec.Args, "url", s.Spec.URL, "transport", s.Spec.Transport, "env", s.Spec.Env, "headers", s.Spec.Headers,
			"env_file", s.Spec.EnvFile, "cwd", s.Spec.Cwd, "bearer_env", s.Spec.BearerEnv, "timeout", s.Spec.Timeout.String(), "allowed", s.Spec.AllowedTools,
			"disabled_tools", s.Spec.DisabledTools, "project", s.Project, "inputs", s.Inputs}
		for i := 0; i < len(line); i += 2 {
			text, err := json.Marshal(line[i+1])
			if err != nil {
				f.Fatal(err)
			}
			if shown := strings.ReplaceAll(string(text), f.System.Home, "~"); shown != `""` && shown != "null" && shown != `"0s"` {
				fmt.Fprintf(&out, " %s=%s", line[i], shown)
			}
		}
		if s.Disabled {
			out.WriteString(" disabled")
		}
		out.WriteString("\n")
	}
	return []byte(out.String())
}

// TestAbsentFiles installs Luanette where a client has no file yet.
func TestAbsentFiles(t *testing.T) {
	t.Parallel()
	for _, c := range clientfile.Clients {
		f := open(t)
		_, path := f.client(c.Name)
		f.install(c.Name, nil)
		if servers, err := (clientfile.File{Client: c, Path: path}).Read(f.System); err != nil || len(servers) != 1 || !servers[0].Ours() {
			t.Errorf("%s: %+v, %v", c.Name, servers, err)
		}
		f.uninstall(c.Name)
		f.wantFile(path, "")
		left, err := os.ReadDir(f.System.Home)
		if err != nil || len(left) != 2 { // the project and the records
			t.Errorf("%s: left are %v, %v", c.Name, left, err)
		}
	}
}

func TestBytesModeAndLinkAreKept(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, path := f.client("cursor")
	before := "\ufeff{\r\n\t\"mcpServers\": {}\r\n}"
	real := filepath.Join(f.System.Home, "dotfiles", "mcp.json")
	f.write(real, before)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(real, path)); err != nil {
		t.Fatal(err)
	}
	r := f.install("cursor", nil)
	if !bytes.HasPrefix(r.After, []byte("\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"luanette\"")) {
		t.Errorf("after %q", r.After)
	}
	f.wantFile(r.Backup, before)
	again := f.install("cursor", nil)
	if again.Changed() {
		t.Error("installing twice changes the file")
	}
	for _, do := range []func(){func() {}, func() { f.uninstall("cursor") }} {
		do()
		info, err := os.Stat(path)
		link, linked := os.Lstat(path)
		if err != nil || linked != nil || info.Mode().Perm() != 0o640 || link.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%v, %v, %v", info, link, err)
		}
	}
	f.wantFile(real, before)
	f.wantFile(r.Backup, "")
}

// TestChangedFiles checks that what a client changed since stays.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, path := f.client("cursor")
	f.write(path, "{\n  \"theme\": 1\n}\n")
	r := f.install("cursor", nil)
	f.write(path, strings.Replace(string(r.After), `"theme": 1`, `"theme": 2`, 1))
	if undone := f.uninstall("cursor"); !undone.Cut {
		t.Error("the file had changed")
	}
	f.wantFile(path, "{\n  \"theme\": 2\n}\n")
}

func TestMove(t *testing.T) {
	t.Parallel()
	before := "{\n  \"mcpServers\": {\n    // one\n    \"a\": { \"command\": \"x\" },\n    \"b\": { \"command\": \"y\" }\n  }\n}\n"
	for _, changed := range []bool{false, true} {
		f := open(t)
		c, path := f.client("cursor")
		f.write(path, before)
		servers, err := clientfile.File{Client: c, Path: path}.Read(f.System)
		if err != nil {
			t.Fatal(err)
		}
		r := f.install("cursor", func(q *install.Request) { q.Move = servers })
		if left, err := (clientfile.File{Client: c, Path: path}).Read(f.System); err != nil || len(left) != 1 {
			t.Errorf("left %v, %v", left, err)
		}
		if !changed {
			f.uninstall("cursor")
			f.wantFile(path, before)
			continue
		}
		f.write(path, string(r.After)+"\n")
		f.uninstall("cursor")
		if back, err := (clientfile.File{Client: c, Path: path}).Read(f.System); err != nil || len(back) != 2 || back[0].Spec.Command+back[1].Spec.Command != "yx" {
			t.Errorf("put back %+v, %v", back, err)
		}
	}
}

func TestUnreadableFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"cursor": "{\n  \"mcpServers\": {\n}\n", "codex": "a = 1\nb =\n", "goose": "a: 1\n b: 2\n"} {
		f := open(t)
		c, path := f.client(name)
		f.write(path, text)
		_, err := f.Install(t.Context(), install.Request{Client: c, Launch: stdio})
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "line ") || !strings.Contains(fault.HintOf(err), "nothing was changed") {
			t.Errorf("%s: %v", name, err)
		}
		f.wantFile(path, text)
	}
}

// TestOwnCommand checks that a client's own command is used, and that what it wrote is
// undone, too.
func TestOwnCommand(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, path := f.client("claude-code")
	f.write(path, `{"mcpServers":{"a":{"command":"x"}}}`)
	f.Installer.Run = func(_ context.Context, argv []string) error {
		if got := strings.Join(argv, " "); got != "claude mcp add -s user luanette -- luanette stdio" {
			t.Errorf("ran %s", got)
		}
		f.write(path, `{"mcpServers":{"a":{"command":"x"},"luanette":{"type":"stdio","command":"luanette","args":["stdio"],"env":{}}},"seen":true}`)
		return nil
	}
	f.install("claude-code", nil)
	f.uninstall("claude-code")
	f.wantFile(path, `{"mcpServers":{"a":{"command":"x"}}}`)

	f.Installer.Run = func(context.Context, []string) error { return errors.New("broken") }
	f.install("claude-code", nil)
	f.uninstall("claude-code")
	f.wantFile(path, `{"mcpServers":{"a":{"command":"x"}}}`)
}

// TestCopiesOfClientsStay checks that what a client keeps beside its file is left alone.
func TestCopiesOfClientsStay(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, path := f.client("qwen")
	f.write(path, "{}\n")
	r := f.install("qwen", nil)
	f.write(path+".orig", string(r.After))
	f.uninstall("qwen")
	f.wantFile(path, "{}\n")
	f.wantFile(path+".orig", string(r.After))
}

// TestTrailingCommaStays checks a file that was changed between both commands.
func TestTrailingCommaStays(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		"{\n  // mine\n  \"context_servers\": {\n    \"a\": {\"command\": \"x\"},\n  },\n}\n",
		`{"context_servers": {"a": {"command": "x"},},}`,
	} {
		f := open(t)
		_, path := f.client("zed")
		f.write(path, before)
		r := f.install("zed", nil)
		f.write(path, strings.Replace(string(r.After), `"x"`, `"y"`, 1))
		f.uninstall("zed")
		f.wantFile(path, strings.Replace(before, `"x"`, `"y"`, 1))
	}
}

// TestListOfContinue installs in files without a list, with an empty one, and with an entry of
// ours, and puts each back after a change of the client.
func TestListOfContinue(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"no list": "name: mine\n", "empty list": "name: mine\nmcpServers: []\n",
		"another entry of ours": "name: mine\nmcpServers:\n  - name: luanette\n    command: old\n",
	} {
		f := open(t)
		_, path := f.client("continue")
		f.write(path, before)
		r := f.install("continue", nil)
		if want := "name: mine\nmcpServers:\n  - name: luanette\n    type: stdio\n    command: luanette\n    args:\n      - stdio\n"; string(r.After) != want {
			t.Errorf("%s: got\n%s", name, r.After)
		}
		f.write(path, strings.Replace(string(r.After), "mine", "yours", 1))
		f.uninstall("continue")
		f.wantFile(path, strings.Replace(before, "mine", "yours", 1))
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	got := textdiff.Unified("f", []byte("1\n2\n3\n4\n5\n6\n7\n8"), []byte("1\n2\n3\n4\nx\n6\n7\n8"))
	if want := "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n\\ No newline at end of file\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}
