//go:build linux

package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// roleVariable says what a process of the test program is, other than the test.
const roleVariable = "SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "harmless":
	case "attack":
		os.Exit(attack())
	case "starter":
		os.Exit(starter())
	}
}

// trial is one run of the hostile program.
type trial struct {
	Level  profile.Level
	Bare   bool   // without namespaces
	Folder string // for everything that the trial makes
	Script string // a program of the shell in place of the hostile one
	End    bool   // the script is ended when it writes something
	Limits profile.Limits
}

// result is what a trial found.
type result struct {
	Support  Support
	Outcome  outcome
	Output   string // of the script
	Refusals []profile.Refusal
	Error    string
}

// starter starts the hostile program as the current user and prints the result.
func starter() int {
	var t trial
	var r result
	if err := json.Unmarshal([]byte(os.Getenv("TRIAL")), &t); err != nil {
		r.Error = err.Error()
	} else if err := t.run(&r); err != nil {
		r.Error = err.Error()
	}
	return printJSON(r)
}

// launcher starts programs for a trial.
func (t trial) launcher(r *result) *Launcher {
	var lock sync.Mutex
	l := &Launcher{
		Folder: filepath.Join(t.Folder, "data", "sandbox"), Home: filepath.Join(t.Folder, "home"),
		Hide: []string{filepath.Join(t.Folder, "data"), filepath.Join(t.Folder, "home", ".ssh")},
		Refused: func(refusal profile.Refusal) {
			lock.Lock()
			defer lock.Unlock()
			r.Refusals = append(r.Refusals, refusal)
		},
	}
	r.Support = l.examine()
	if t.Bare {
		r.Support.Namespaces = "switched off"
	}
	l.probe.Do(func() { l.support = r.Support })
	return l
}

func (t trial) run(r *result) error {
	if t.Script != "" {
		return t.runScript(r)
	}
	goal, err := t.build()
	if err != nil {
		return err
	}
	l := t.launcher(r)
	shared, err := unix.SysvShmGet(goal.Memory, 64, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	defer unix.SysvShmCtl(shared, unix.IPC_RMID, nil)
	leak, err := unix.Open(goal.Folder+"/secret", unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		return err
	}
	defer unix.Close(leak)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, _ := json.Marshal(goal)
	cmd, err := l.Command(
		profile.Profile{Name: "hostile", Level: t.Level, Read: []string{goal.Given}, Write: []string{goal.Own}},
		Program{Path: self, Args: []string{"hostile"}, Env: []string{"PATH=/usr/bin:/bin", roleVariable + "=attack", "TARGET=" + string(text)}},
	)
	if err != nil {
		return err
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, errs.String())
	}
	return json.Unmarshal([]byte(out.String()), &r.Outcome)
}

// build makes what the hostile program attacks.
func (t trial) build() (target, error) {
	goal := target{
		Folder: filepath.Join(t.Folder, "outside"), Hidden: filepath.Join(t.Folder, "home", ".ssh"), Pid: os.Getpid(),
		Own: filepath.Join(t.Folder, "own"), Given: filepath.Join(t.Folder, "given"), Abstract: filepath.Base(t.Folder), Memory: 0x5b000000 + os.Getpid(),
	}
	for _, folder := range []string{goal.Folder, goal.Hidden, goal.Own, goal.Given} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return goal, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return goal, err
	}
	image, err := os.ReadFile(self)
	if err != nil {
		return goal, err
	}
	for name, content := range map[string][]byte{
		goal.Folder + "/secret": []byte("secret"), goal.Folder + "/victim": []byte("victim"), goal.Folder + "/victim2": nil, goal.Folder + "/tool": image,
		goal.Hidden + "/key": []byte("key"), goal.Given + "/text": []byte("text"),
	} {
		if err := os.WriteFile(name, content, 0o755); err != nil {
			return goal, err
		}
	}
	for _, address := range []string{goal.Folder + "/unix.sock", goal.Hidden + "/agent.sock", "@" + goal.Abstract} {
		if _, err := net.Listen("unix", address); err != nil {
			return goal, err
		}
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return goal, err
	}
	goal.Port = tcp.Addr().(*net.TCPAddr).Port
	return goal, nil
}

// openAnyway are the attempts that succeed at a level, since it does not forbid them or
// cannot without namespaces.
func openAnyway(t trial) []string {
	reading := []string{
		"read a file outside", "stat a file outside", "list a folder outside", "read through a symbolic link", "leave by ..", "execute a program outside",
	}
	open := []string{
		"execute a dropped file", "execute a dropped file of /tmp", "execute from memory", "map a dropped file as code",
		"connect to the computer", "send a datagram", "connect to a Unix socket", "listen for the network",
	}
	bare := []string{"stat a file outside", "chmod a file outside", "see processes of the computer", "attach shared memory"}
	switch {
	case t.Level == profile.Open && t.Bare:
		return slices.Concat(reading, open, bare, []string{"list the credentials", "connect to a hidden Unix socket"})
	case t.Level == profile.Open:
		return slices.Concat(reading, open)
	case t.Bare:
		return slices.Concat(bare, []string{"map a dropped file as code"})
	}
	return nil
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	users := map[string]*syscall.Credential{"as this user": nil}
	if os.Getuid() == 0 {
		users["as nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for who, credential := range users {
		for _, level := range []profile.Level{profile.Strict, profile.Open} {
			for _, bare := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/namespaces=%v", who, level, !bare)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					attacked(t, trial{Level: level, Bare: bare}, credential)
				})
			}
		}
	}
}

// attacked runs one trial and compares its outcome with what the level promises.
func attacked(t *testing.T, one trial, credential *syscall.Credential) {
	r := one.start(t, credential)
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	one.Bare = r.Support.Namespaces != "" // also where the kernel has none
	want := openAnyway(one)
	for name, cause := range r.Outcome {
		if succeeded := cause == ""; succeeded != slices.Contains(want, name) {
			t.Errorf("%s: succeeded is %v (%s)", name, succeeded, cause)
		}
	}
	for _, name := range want {
		if _, tried := r.Outcome[name]; !tried {
			t.Errorf("%s: there is no such attempt", name)
		}
	}
	checkRefusals(t, one, r.Refusals)
}

// checkRefusals looks for the refusals that must have been noticed.
func checkRefusals(t *testing.T, one trial, refusals []profile.Refusal) {
	want := map[string]string{
		profile.Reading: one.Folder + "/home/.ssh/key", profile.Writing: one.Folder + "/outside/new", profile.Calling: "ptrace",
	}
	if one.Level == profile.Strict {
		want[profile.Executing] = one.Folder + "/outside/tool"
	}
	for action, object := range want {
		if !slices.ContainsFunc(refusals, func(r profile.Refusal) bool { return r.Action == action && r.Object == object && r.Name == "hostile" }) {
			t.Errorf("the refusal to %s %s was not noticed; noticed were %v", action, object, refusals)
		}
	}
}

// start runs the starter as a user, with a copy of the test program that the user can
// execute.
func (one *trial) start(t *testing.T, credential *syscall.Credential) (r result) {
	one.Folder = folderOutsideTmp(t)
	program := filepath.Join(one.Folder, "program", "test")
	copySelf(t, program)
	if credential != nil {
		if err := os.Chown(one.Folder, int(credential.Uid), int(credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := json.Marshal(one)
	cmd := exec.Command(program)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVariable+"=starter", "TRIAL="+string(text)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// folderOutsideTmp returns a folder for everybody. The programs have a /tmp of their own.
func folderOutsideTmp(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "luanette-sandbox-") //nolint:usetesting // t.TempDir is in /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func copySelf(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a process that is forked while the file is open for writing makes it busy
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, from); err != nil {
		t.Fatal(err)
	}
}
