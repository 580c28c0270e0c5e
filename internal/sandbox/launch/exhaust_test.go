//go:build linux

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// runScript runs a program of the shell, which may write to the folder "own".
func (t trial) runScript(r *result) error {
	own := filepath.Join(t.Folder, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		return err
	}
	cmd, err := t.launcher(r).Command(
		profile.Profile{Name: "hostile", Level: t.Level, Write: []string{own}, Limits: t.Limits},
		Program{Path: "/bin/sh", Args: []string{"sh", "-c", t.Script}, Env: []string{"PATH=/usr/bin:/bin", "OWN=" + own, "PRIVATE=" + filepath.Join(t.Folder, "data/sandbox/hostile/home")}, Dir: "/"},
	)
	if err != nil {
		return err
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if t.End {
		cmd.Stdout = endOnWrite{cmd}
	}
	err = cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	r.Output = fmt.Sprintf("%s(%v)", out.String(), err)
	return nil
}

// endOnWrite ends a program when it writes.
type endOnWrite struct{ cmd *Command }

func (e endOnWrite) Write(text []byte) (int, error) {
	e.cmd.End()
	return len(text), nil
}

// exhaustion is a program that uses up something of the computer, and waits then, or
// leaves something behind.
type exhaustion struct {
	script  string
	limits  profile.Limits
	end     bool   // when it writes something
	refused string // the refusal
	output  string // part of what it writes and how it ends
}

const megabyte = 1 << 20

func exhaustions() map[string]exhaustion {
	disk := profile.Limits{Disk: 16 * megabyte}
	const survive = `setsid sh -c 'exec 9> $OWN/lock; flock 9; mkdir $OWN/locked; sleep 100000' > /dev/null 2>&1 & until [ -e $OWN/locked ]; do sleep 0.05; done; `
	const overDisk, wait = "use of more than 16 MB of private files", "; sleep 100000"
	return map[string]exhaustion{
		"processes": {
			script:  `i=0; while [ $i -lt 200 ]; do sleep 100000 & i=$((i+1)); done; echo "all started"`,
			limits:  profile.Limits{Processes: 50},
			refused: "use of more than 50 processes", output: "ork", // cannot fork
		},
		"memory of several processes": {
			script:  `for i in 1 2 3 4; do (head -c 40000000 /dev/zero; exec sleep 100000) | tail & done; wait`,
			limits:  profile.Limits{Memory: 100 * megabyte},
			refused: "use of more than 100 MB of memory", output: "exit status 137",
		},
		"disk":                    {script: `head -c 64000000 /dev/zero > $PRIVATE/x` + wait, limits: disk, refused: overDisk, output: "exit status 137"},
		"removed files":           {script: `exec 3> $PRIVATE/x; rm $PRIVATE/x; head -c 64000000 /dev/zero >&3` + wait, limits: disk, refused: overDisk, output: "exit status 137"},
		"survival":                {script: survive + `echo "end"`, refused: "use of processes after its end", output: "end"},
		"survival of being ended": {script: survive + `echo "ready"` + wait, end: true, refused: "use of processes after its end", output: "exit status 137"},
	}
}

// Programs that use up processes, memory or disk are stopped, and those that stay after
// their server's end; each time there is an event.
func TestExhaustion(t *testing.T) {
	t.Parallel()
	uid := uint32(61000) // the kernel counts processes by user: each trial has its own
	for name, e := range exhaustions() {
		for _, level := range []profile.Level{profile.Strict, profile.Open} {
			for _, bare := range []bool{false, true} {
				for _, ordinary := range []bool{false, true} {
					if ordinary && os.Getuid() != 0 {
						continue // we are an ordinary user already
					}
					var credential *syscall.Credential
					if uid++; ordinary {
						credential = &syscall.Credential{Uid: uid, Gid: uid}
					}
					t.Run(fmt.Sprintf("%s/%s/namespaces=%v/ordinary=%v", name, level, !bare, ordinary), func(t *testing.T) {
						t.Parallel()
						exhausted(t, e, trial{Level: level, Bare: bare, Script: e.script, End: e.end, Limits: e.limits}, credential)
					})
				}
			}
		}
	}
}

func exhausted(t *testing.T, e exhaustion, one trial, credential *syscall.Credential) {
	r := one.start(t, credential)
	if r.Error != "" || !strings.Contains(r.Output, e.output) {
		t.Fatal(r.Error, r.Output)
	}
	if !slices.ContainsFunc(r.Refusals, func(refusal profile.Refusal) bool {
		return strings.HasPrefix(refusal.String(), "hostile was refused "+e.refused)
	}) {
		t.Errorf("there is no event: %v", r.Refusals)
	}
	lock, err := os.Open(filepath.Join(one.Folder, "own", "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Error("a process is still there: ", err)
	}
}

// The private /tmp is in memory, and as large as the private folders may be.
func TestTmpIsBounded(t *testing.T) {
	t.Parallel()
	one := trial{Level: profile.Strict, Script: `head -c 64000000 /dev/zero > $TMPDIR/x`, Limits: profile.Limits{Disk: 16 * megabyte}}
	r := one.start(t, nil)
	if r.Support.Namespaces == "" && !strings.Contains(r.Output, "No space left") {
		t.Error(r.Error, r.Output)
	}
}
