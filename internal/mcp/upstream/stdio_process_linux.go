package upstream

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the processor times in /proc, on all systems of today.
const clockTick = 10 * time.Millisecond

// treeWork is the processor time that a process and its descendants have used, and whether one of
// them computes, waits for a processor or reads from a disk.
func treeWork(pid int) (used time.Duration, busy, known bool) {
	for todo := []int{pid}; len(todo) > 0; {
		folder := "/proc/" + strconv.Itoa(todo[0])
		todo = todo[1:]
		text, err := os.ReadFile(folder + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 15 {
			continue
		}
		known = true
		for _, field := range fields[11:15] { // utime, stime, cutime, cstime
			ticks, _ := strconv.ParseInt(field, 10, 64)
			used += time.Duration(ticks) * clockTick
		}
		busy = busy || fields[0] == "R" || fields[0] == "D"
		todo = append(todo, children(folder)...)
	}
	return used, busy, known
}

// children are the processes that a process has started.
func children(folder string) (list []int) {
	threads, _ := os.ReadDir(folder + "/task") // it may have ended
	for _, thread := range threads {
		text, _ := os.ReadFile(folder + "/task/" + thread.Name() + "/children")
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}
