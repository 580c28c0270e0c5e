package config

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// DefaultGCPercent is the default GOGC value. A server has a small heap and many
// short-lived allocations: collecting a quarter as often costs some megabytes and saves
// a tenth of its CPU time.
const DefaultGCPercent = 400

// TuneCollector sets how often this process collects garbage. GOGC and GOMEMLIMIT take
// precedence; without GOMEMLIMIT the memory limit of the container applies.
func TuneCollector(percent int, env Environment) {
	if env["GOGC"] == "" {
		debug.SetGCPercent(percent)
	}
	if limit := containerMemory(); env["GOMEMLIMIT"] == "" && limit > 0 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// containerMemory is the memory limit of this process's control group in bytes; zero if
// there is none.
func containerMemory() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max"
		return 0
	}
	return limit
}
