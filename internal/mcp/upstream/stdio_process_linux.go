package upstream

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the processor times in /proc, on all systems of today.
const clockTick = 10 * time.Millisecond

// treeWork is what a process and its descendants have done.
func treeWork(pid int) (w work) {
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
		w.known = true
		for _, field := range fields[11:15] { // utime, stime, cutime, cstime
			ticks, _ := strconv.ParseInt(field, 10, 64)
			w.used += time.Duration(ticks) * clockTick
		}
		w.busy = w.busy || fields[0] == "R" || fields[0] == "D"
		w.waited += waited(folder)
		todo = append(todo, children(folder)...)
	}
	return w
}

// waited is how long the first thread of a process has waited for a processor.
func waited(folder string) time.Duration {
	text, _ := os.ReadFile(folder + "/schedstat") // not every kernel has it
	fields := strings.Fields(string(text))        // time on a processor, waiting for one, and turns
	if len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(ns)
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
