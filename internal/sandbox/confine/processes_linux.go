package confine

import (
	"os"
	"strconv"
	"strings"
)

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
