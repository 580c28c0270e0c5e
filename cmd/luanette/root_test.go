//go:build linux

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/programtest"
)

// serviceUser is nobody that the system knows.
const serviceUser = 64999

// rootService is a server that runs as a user of its own, and root beside it.
type rootService struct {
	t             *testing.T
	folder, data  string
	program, file string
}

func newService(t *testing.T) *rootService {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root has services with users of their own")
	}
	folder, err := os.MkdirTemp("", "service-") //nolint:usetesting // others may not enter folders of tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &rootService{t, folder, filepath.Join(folder, "data"), filepath.Join(folder, "luanette"), filepath.Join(folder, "luanette.toml")}
	text := "[upstreams.marked]\ncommand = \"sh\"\nargs = [\"-c\", \"id -u >> " + filepath.Join(s.data, "started") + "\"]\n"
	if err := errors.Join(os.Chmod(folder, 0o755), os.Mkdir(s.data, 0o700), os.WriteFile(s.file, []byte(text), 0o644), s.copyProgram()); err != nil {
		t.Fatal(err)
	}
	if err := programtest.CopyDatabase(s.data); err != nil {
		t.Fatal(err)
	}
	s.own()
	return s
}

// own gives the data folder to the service.
func (s *rootService) own() {
	s.t.Helper()
	err := filepath.WalkDir(s.data, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, serviceUser, serviceUser))
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// copyProgram puts the program where the service's user finds it.
func (s *rootService) copyProgram() error {
	path, err := exec.LookPath("luanette")
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(s.program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// command is one of root's, or with serve that of the service.
func (s *rootService) command(args ...string) *exec.Cmd {
	home := filepath.Join(s.folder, "home")
	cmd := programtest.Command(s.t.Context(), s.folder, []string{"HOME=" + home, programtest.ScriptsCache + "="}, append(args, "--config", s.file, "--data", s.data)...)
	if args[0] == "serve" {
		cmd.Path = s.program
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: serviceUser, Gid: serviceUser}}
		cmd.Env = append(cmd.Env, "HOME="+s.data)
	}
	return cmd
}

// expect runs a command of root's, whose output must have a text.
func (s *rootService) expect(want string, args ...string) {
	s.t.Helper()
	output, _ := s.command(args...).CombinedOutput() // the exit code is that of what it says
	if !strings.Contains(string(output), want) {
		s.t.Errorf("luanette %s lacks %q:\n%s", strings.Join(args, " "), want, output)
	}
	s.expectOwned()
}

// expectOwned checks that the data folder has nothing that the service cannot read.
func (s *rootService) expectOwned() {
	s.t.Helper()
	_ = filepath.WalkDir(s.data, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && fileowner.Of(path) == 0 {
			s.t.Errorf("%s is root's", path)
		}
		return nil // files come and go
	})
}

// TestRootActsThroughTheService checks that root's commands find the server of a service, leave
// nothing in its data folder, and start no program, also while it does not run.
func TestRootActsThroughTheService(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.expect("belongs to the user 64999, and no server runs on it", "key", "create", "early")
	s.expect("belongs to the user 64999, and no server runs on it", "call", "clock.now")
	s.expect("journalctl -u luanette", "doctor")
	s.expect("root does not start", "upstream", "test", "marked")

	cmd := s.command("serve", "--listen", "127.0.0.1:0")
	_, output, err := programtest.Listen(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.expect("lnt_", "key", "create", "admin", "--scope", "admin")
	s.expect("admin  active", "key", "list")
	s.expect("42", "eval", "return 6 * 7")
	s.expect("key.created", "audit")
	s.expect("its server is asked for what is in it", "doctor")
	s.expect("1 active; clients over HTTP need one", "doctor")
	s.expect("reloaded the configuration", "reload")
	s.expect("backed up", "backup", filepath.Join(s.folder, "a.backup"))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := <-output
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if started, err := os.ReadFile(filepath.Join(s.data, "started")); err != nil || strings.Contains("\n"+string(started), "\n0\n") {
		t.Errorf("the upstream was started by %q, %v", started, err)
	}
	s.expect("restored", "restore", filepath.Join(s.folder, "a.backup"), "--replace")
}

// TestDeniedFileNamesItsOwner checks that whoever may not use a file is told who may.
func TestDeniedFileNamesItsOwner(t *testing.T) {
	t.Parallel()
	s := newService(t)
	cmd := s.command("key", "list")
	cmd.Path = s.program
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: serviceUser + 1, Gid: serviceUser + 1}}
	output, err := cmd.CombinedOutput()
	if want := s.data + " belongs to the user 64999"; err == nil || !strings.Contains(string(output), want) {
		t.Errorf("%v\n%s\nlacks %q", err, output, want)
	}
}
