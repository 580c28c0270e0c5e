package confine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guard looks after limits for which the kernel has none that holds for all processes of
// a program together: their memory where there is no cgroup, and the size of the private
// folders. What exceeds them is ended.
type guard struct {
	policy *Policy
	pause  time.Duration // until the next look

	// Of the private folders when they were last measured:
	free     uint64 // of their file system
	measured time.Time
	took     time.Duration
}

// How often it looks: more often when memory may soon be too much.
const (
	guardEvery = time.Second
	guardSoon  = 100 * time.Millisecond
)

// run returns what the program uses too much of.
func (g *guard) run() Note {
	for g.pause = guardEvery; ; {
		time.Sleep(g.pause)
		if note := g.exceeded(); note.Refused {
			return note
		}
	}
}

func (g *guard) exceeded() Note {
	p := g.policy
	g.pause = guardEvery
	if !p.Cgroup {
		most, used := p.Limits.MaxMemory(), p.memory(false)
		if used > most && p.memory(true) > most {
			return MemoryNote(most)
		}
		if used > most/2 {
			g.pause = guardSoon
		}
	}
	if most := p.Limits.maxDisk(); g.mayHaveGrown(most) {
		if size := g.measure(); size > most {
			return Note{
				Action: Using, Refused: true, Object: fmt.Sprintf("more than %d MB of private files (%s)", most>>20, strings.Join(p.Private, ", ")),
				Allow: fmt.Sprintf("disk_mb = %d", 2*most>>20),
			}
		}
	}
	return Note{}
}

// MemoryNote says that a program used more memory than it may.
func MemoryNote(most int64) Note {
	return Note{Action: Using, Refused: true, Object: fmt.Sprintf("more than %d MB of memory", most>>20), Allow: fmt.Sprintf("memory_mb = %d", 2*most>>20)}
}

// ProcessNote says that a program tried to have more processes than it may.
func ProcessNote(most int) Note {
	return Note{Action: Using, Refused: true, Object: fmt.Sprintf("more than %d processes", most), Allow: fmt.Sprintf("processes = %d", 2*most)}
}

// memory is that of all processes, with the files that are in memory. What forked
// processes share is counted once if exact, which takes longer.
func (p *Policy) memory(exact bool) (bytes int64) {
	for _, pid := range p.processes() {
		if exact {
			bytes += sharedMemory(pid)
		} else {
			bytes += privateMemory(pid)
		}
	}
	if p.Namespaces {
		for _, folder := range []string{"/tmp", "/dev/shm"} {
			var info unix.Statfs_t
			if unix.Statfs(folder, &info) == nil {
				bytes += int64(info.Blocks-info.Bfree) * info.Bsize // its type depends on the processor
			}
		}
	}
	return bytes
}

// privateMemory is the memory of a process without files.
func privateMemory(pid int) int64 {
	fields := strings.Fields(processFile(pid, "statm"))
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}

// sharedMemory is the same, with the part of the process in what it shares.
func sharedMemory(pid int) int64 {
	for line := range strings.Lines(processFile(pid, "smaps_rollup")) {
		if rest, found := strings.CutPrefix(line, "Pss_Anon:"); found {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return privateMemory(pid)
}

// mayHaveGrown reports whether the private folders are to be measured: when so much of
// their file system was filled meanwhile that it could matter, and now and then. Large
// folders, for which that takes long, are measured less often.
func (g *guard) mayHaveGrown(most int64) bool {
	since := time.Since(g.measured)
	if len(g.policy.Private) == 0 || since < 20*g.took {
		return false
	}
	var info unix.Statfs_t
	if unix.Statfs(g.policy.Private[0], &info) != nil {
		return false
	}
	free := info.Bavail * uint64(info.Bsize)
	if g.free > free+uint64(most/16) || since > max(10*time.Second, 200*g.took) {
		g.free = free
		return true
	}
	g.free = max(g.free, free)
	return false
}

// measure returns the size of the private folders, with files that were removed but are
// still open.
func (g *guard) measure() (bytes int64) {
	began := time.Now()
	var device uint64
	for _, folder := range g.policy.Private {
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it was removed meanwhile
			}
			if info, err := entry.Info(); err == nil {
				if stat, ok := info.Sys().(*syscall.Stat_t); ok {
					bytes, device = bytes+stat.Blocks*512, uint64(stat.Dev) // its type depends on the processor
				}
			}
			return nil
		})
	}
	for _, pid := range g.policy.processes() {
		bytes += removedFiles(pid, device)
	}
	g.took, g.measured = time.Since(began), time.Now()
	return bytes
}

// removedFiles is the size of the removed files on a device that a process has open.
func removedFiles(pid int, device uint64) (bytes int64) {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		var info unix.Stat_t
		if unix.Stat(folder+entry.Name(), &info) == nil && info.Nlink == 0 && uint64(info.Dev) == device && info.Mode&unix.S_IFMT == unix.S_IFREG { // its type depends on the processor
			bytes += info.Blocks * 512
		}
	}
	return bytes
}

// processes are those of the program: all others in our PID namespace, or else all that
// descend from us.
func (p *Policy) processes() (pids []int) {
	if !p.Namespaces {
		return descendants(os.Getpid())
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants are the processes below a process.
func descendants(of int) (pids []int) {
	for _, child := range childrenOf(of) {
		pids = append(append(pids, child), descendants(child)...)
	}
	return pids
}

// childrenOf lists the child processes of a process.
func childrenOf(pid int) (pids []int) {
	folder := "/proc/" + strconv.Itoa(pid) + "/task/"
	tasks, _ := os.ReadDir(folder)
	for _, task := range tasks {
		text, _ := os.ReadFile(folder + task.Name() + "/children")
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// processFile reads a file of a process in /proc; empty if it has ended.
func processFile(pid int, name string) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	return string(text)
}

// outlivers reports whether processes of the program have left its session, so that they
// would have outlived it.
func (p *Policy) outlivers() bool {
	own := os.Getpid() // we are the first of the session
	for _, pid := range p.processes() {
		stat := processFile(pid, "stat")
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name may contain anything
		if len(fields) < 4 || fields[0] == "Z" {
			continue
		}
		if session, err := strconv.Atoi(fields[3]); err == nil && session != own {
			return true
		}
	}
	return false
}
