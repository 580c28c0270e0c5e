//go:build linux

package launch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/confine"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// hierarchy makes files as the kernel has them for a process in the group /unit.service.
func hierarchy(t *testing.T, files map[string]string) (root, unit string) {
	t.Helper()
	root = t.TempDir()
	all := map[string]string{
		"proc/self/cgroup":                                  "1:name=systemd:/x\n0::/unit.service\n",
		"proc/self/mountinfo":                               "25 20 0:22 / /proc rw - proc proc rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/unit.service/cgroup.controllers":     "cpuset cpu io memory pids\n",
		"sys/fs/cgroup/unit.service/cgroup.procs":           strconv.Itoa(os.Getpid()) + "\n",
		"sys/fs/cgroup/unit.service/cgroup.type":            "domain\n",
		"sys/fs/cgroup/unit.service/cgroup.subtree_control": "\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, filepath.Join(root, "sys/fs/cgroup/unit.service")
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDelegatedCgroup(t *testing.T) {
	t.Parallel()
	root, unit := hierarchy(t, nil)
	groups, err := findCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, unit+"/main/cgroup.procs"); got != strconv.Itoa(os.Getpid()) {
		t.Error("we are not in main: ", got)
	}
	if got := content(t, unit+"/cgroup.subtree_control"); got != "+memory +pids +cpu" {
		t.Error(got)
	}
	group, err := groups.group("a/b", confine.Limits{Memory: 64 << 20, CPU: 0.5, Processes: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer group.folder.Close()
	folder := group.folder.Name()
	if !strings.HasPrefix(filepath.Base(folder), "sandbox-a_b-") {
		t.Error(folder)
	}
	for file, want := range map[string]string{"memory.max": "67108864", "cpu.max": "50000 100000", "pids.max": "40", "memory.oom.group": "1"} {
		if got := content(t, filepath.Join(folder, file)); got != want {
			t.Errorf("%s has %q", file, got)
		}
	}
	for file, text := range map[string]string{"memory.events": "low 0\noom 1\noom_kill 3\n", "pids.events": "max 0\n"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if notes := group.exceeded(); len(notes) != 1 || notes[0].Object != "more than 64 MB of memory" || notes[0].Allow != "memory_mb = 128" {
		t.Errorf("%+v", notes)
	}
}

func TestCgroupThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]string{
		"cgroups of version 2 are not mounted":    {"proc/self/mountinfo": "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
		"the cgroup has no controller memory":     {"sys/fs/cgroup/unit.service/cgroup.controllers": "pids\n"},
		"other programs are in the same cgroup":   {"sys/fs/cgroup/unit.service/cgroup.procs": "1\n"},
		"use Delegate=yes in the unit of systemd": {"sys/fs/cgroup/cgroup.procs": ""}, // root, and nothing says so
	} {
		if strings.HasPrefix(want, "use") && os.Getuid() != 0 {
			continue
		}
		root, unit := hierarchy(t, files)
		if _, err := findCgroups(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(unit + "/main"); err == nil {
			t.Error("a group was made: ", want)
		}
	}
}

// On a real hierarchy, which any root can change, a program starts in its group, and what
// it leaves there is killed.
func TestProgramInCgroup(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root may make groups here")
	}
	own, err := ownCgroup("/")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(own, "luanette-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Skip(err)
	}
	folder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	group := &cgroup{folder: folder}
	one := trial{Level: profile.Strict, Folder: folderOutsideTmp(t)}
	var r result
	l := one.launcher(&r)
	cmd, err := l.Command(profile.Profile{Name: "grouped", Level: one.Level}, Program{Path: "/bin/sh", Args: []string{"sh", "-c", "echo started; sleep 100000"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	group.startIn(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil {
		t.Error(err)
	}
	if got := strings.Fields(content(t, filepath.Join(path, "cgroup.procs"))); len(got) < 2 { // the first process and sh
		t.Error(got)
	}
	group.end()
	_ = cmd.Wait()
	if _, err := os.Stat(path); err == nil {
		t.Error("the group is still there")
	}
}
