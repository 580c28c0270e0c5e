package server

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/config"
)

// TuneCollector sets how often this process collects garbage. What Go's own
// variables say stands; without a limit of theirs, that of the container is kept.
func TuneCollector(percent int, env config.Environment) {
	if env["GOGC"] == "" {
		debug.SetGCPercent(percent)
	}
	if limit := containerMemory(); env["GOMEMLIMIT"] == "" && limit > 0 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// containerMemory is how many bytes the control group of this process may hold, or
// zero when nobody says.
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
