package config

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// unknownMemory is what a process may use where the system does not say.
const unknownMemory = 4 << 30

// processMemory is how many bytes of memory this process may use: the least of GOMEMLIMIT,
// the limits of its control groups and the memory of the machine.
func processMemory(env Environment) int64 {
	limit := int64(0)
	for _, one := range []int64{goMemoryLimit(env["GOMEMLIMIT"]), controlGroupMemory("/proc/self/cgroup", "/sys/fs/cgroup"), machineMemory("/proc/meminfo")} {
		if one > 0 && (limit == 0 || one < limit) {
			limit = one
		}
	}
	if limit == 0 {
		return unknownMemory
	}
	return limit
}

// goMemoryLimit reads the value of GOMEMLIMIT; zero if it does not limit.
func goMemoryLimit(text string) int64 {
	for suffix, shift := range map[string]uint{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			return positive(number) << shift
		}
	}
	return positive(strings.TrimSuffix(text, "B"))
}

// positive reads a number of bytes; zero if there is none, or if it is more than any
// machine has.
func positive(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n
}

// controlGroupMemory is the least memory limit of the control groups that the file list
// names, of version 2 or 1, and of those above them; zero if there is none.
func controlGroupMemory(list, root string) int64 {
	text, err := os.ReadFile(list)
	if err != nil {
		return 0
	}
	limit := int64(0)
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		top, file := root, "memory.max"
		switch {
		case part[1] == "memory":
			top, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		case part[1] != "":
			continue
		}
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			if n := numberIn(path.Join(top, group, file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

func numberIn(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	return positive(string(text))
}

// machineMemory reads the memory of the machine from a file such as /proc/meminfo; zero if
// there is none.
func machineMemory(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			return positive(strings.TrimSuffix(strings.TrimSpace(rest), "kB")) << 10
		}
	}
	return 0
}
