package launch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/luanette/luanette/internal/sandbox/confine"
)

// cgroups is a part of the hierarchy of cgroups that was given to us: by systemd's
// Delegate, or because we are root in a container with a hierarchy of its own.
type cgroups struct {
	folder string
	made   atomic.Int64
}

// controllers are those that limit programs. All of them must be there.
func controllers() []string { return []string{"memory", "pids", "cpu"} }

// findCgroups returns our part of the hierarchy below root, which is "/" but in tests, or
// why there is none.
func findCgroups(root string) (*cgroups, error) {
	own, err := ownCgroup(root)
	if err != nil {
		return nil, err
	}
	g := &cgroups{folder: own}
	if err := g.check(); err != nil {
		return nil, err
	}
	if err := g.enable(); err != nil {
		return nil, err
	}
	g.removeOld()
	return g, nil
}

// ownCgroup is the folder of the cgroup that this process is in.
func ownCgroup(root string) (string, error) {
	membership, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return "", errors.New("there are no cgroups")
	}
	path := ""
	for line := range strings.Lines(string(membership)) {
		if rest, found := strings.CutPrefix(line, "0::"); found {
			path = strings.TrimSpace(rest)
		}
	}
	mounts, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return "", err
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		place, kind, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(place) // id, parent, device, root, mount point
		if path == "" || len(fields) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		return filepath.Join(root, fields[4], below), nil
	}
	return "", errors.New("cgroups of version 2 are not mounted")
}

// check reports whether the folder is ours to divide.
func (g *cgroups) check() error {
	available := strings.Fields(g.read("cgroup.controllers"))
	for _, controller := range controllers() {
		if !slices.Contains(available, controller) {
			return fmt.Errorf("the cgroup has no controller %s", controller)
		}
	}
	if err := unix.Access(filepath.Join(g.folder, "cgroup.subtree_control"), unix.W_OK); err != nil {
		return errors.New("the cgroup is not delegated: use Delegate=yes in the unit of systemd")
	}
	if os.Getuid() == 0 && !g.delegated() {
		return errors.New("the cgroup is not delegated: use Delegate=yes in the unit of systemd")
	}
	for _, pid := range strings.Fields(g.read("cgroup.procs")) {
		if g.hasParent() && !isOurs(pid) {
			return errors.New("other programs are in the same cgroup")
		}
	}
	return nil
}

// isOurs reports whether a process is this one or descends from it.
func isOurs(pid string) bool {
	for pid != "" && pid != "0" {
		if pid == strconv.Itoa(os.Getpid()) {
			return true
		}
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // state, parent
		if len(fields) < 2 {
			return false
		}
		pid = string(fields[1])
	}
	return false
}

// delegated reports whether the folder is given to us, for root, who may write anywhere:
// systemd marks it, and in a container of its own it is the root.
func (g *cgroups) delegated() bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(g.folder, mark, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	_, err := os.Stat(filepath.Join(g.folder, "..", "cgroup.procs"))
	return err != nil
}

// hasParent reports whether it is not the root of the whole hierarchy, which alone may
// have both processes and groups.
func (g *cgroups) hasParent() bool {
	_, err := os.Stat(filepath.Join(g.folder, "cgroup.type"))
	return err == nil
}

// enable gives groups below the folder their controllers. A group with such groups below
// it has no processes of its own: ours move into one of them.
func (g *cgroups) enable() error {
	if g.hasParent() {
		main := filepath.Join(g.folder, "main")
		if err := os.Mkdir(main, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		for _, pid := range strings.Fields(g.read("cgroup.procs")) {
			if err := os.WriteFile(filepath.Join(main, "cgroup.procs"), []byte(pid), 0o600); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(g.folder, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers(), " +")), 0o600)
}

func (g *cgroups) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(g.folder, name))
	return string(text)
}

// removeOld removes the empty groups that processes before us have left.
func (g *cgroups) removeOld() {
	left, _ := filepath.Glob(filepath.Join(g.folder, "sandbox-*"))
	for _, folder := range left {
		_ = os.Remove(folder) // one with processes stays
	}
}

// cgroup is the group of one program.
type cgroup struct {
	folder *os.File
	limits confine.Limits
}

// group makes the group of a program.
func (g *cgroups) group(name string, l confine.Limits) (*cgroup, error) {
	path := filepath.Join(g.folder, fmt.Sprintf("sandbox-%s-%d-%d", safeName(name), os.Getpid(), g.made.Add(1)))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	set := func(file, value string) error { return os.WriteFile(filepath.Join(path, file), []byte(value), 0o600) }
	const period = 100_000 // microseconds
	share := "max"
	if l.CPU > 0 {
		share = strconv.Itoa(max(1000, int(l.CPU*period)))
	}
	err := errors.Join(
		set("memory.max", strconv.FormatInt(l.MaxMemory(), 10)),
		set("pids.max", strconv.Itoa(l.MaxTasks())),
		set("cpu.max", share+" "+strconv.Itoa(period)),
	)
	_ = set("memory.swap.max", "0") // there may be none
	_ = set("memory.oom.group", "1")
	folder, opened := os.Open(path)
	if err = errors.Join(err, opened); err != nil {
		_ = os.Remove(path)
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return &cgroup{folder, l}, nil
}

// startIn makes a process start in the group.
func (c *cgroup) startIn(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(c.folder.Fd())
}

// exceeded are the limits that the program has reached.
func (c *cgroup) exceeded() (notes []confine.Note) {
	if c.count("memory.events", "oom_kill") > 0 {
		notes = append(notes, confine.MemoryNote(c.limits.MaxMemory()))
	}
	if c.count("pids.events", "max") > 0 {
		notes = append(notes, confine.ProcessNote(c.limits.MaxProcesses()))
	}
	return notes
}

// count reads a number from a file of lines with a name and a number.
func (c *cgroup) count(file, name string) (n int64) {
	text, _ := os.ReadFile(filepath.Join(c.folder.Name(), file))
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			n, _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return n
}

// end kills what is left in the group and removes it.
func (c *cgroup) end() {
	path := c.folder.Name()
	defer c.folder.Close()
	_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0o600)
	for range 200 { // a killed process stays for a moment
		if err := os.Remove(path); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
