package config

import (
	"runtime/debug"

	"github.com/luanette/luanette/internal/scripting/memory"
)

// leastHeap is the least memory limit of the garbage collector. With less, a server
// without any script would spend its time collecting.
const leastHeap = 512 << 20

// TuneCollector sets how often this process collects garbage, and the amount of memory
// near which it collects more often. GOGC and GOMEMLIMIT take precedence.
func (c *Config) TuneCollector(env Environment) {
	if env["GOGC"] == "" {
		debug.SetGCPercent(c.GCPercent)
	}
	if env["GOMEMLIMIT"] == "" {
		debug.SetMemoryLimit(c.heapLimit(processMemory(env)))
	}
}

// heapLimit is three quarters of what the process may use: memory of JavaScript is not
// part of the heap. If scripts may hold less than half, the limit is lower too.
func (c *Config) heapLimit(usable int64) int64 {
	return max(min(usable/4*3, c.scriptMemory(usable)/2*3), min(leastHeap, usable/4*3))
}

// ScriptMemory is the memory that all scripts may hold together. After many of them ended
// at once, it goes back to the system.
func (c *Config) ScriptMemory(env Environment) *memory.Pool {
	return memory.NewPool(memory.Options{
		Total: c.scriptMemory(processMemory(env)), Reserve: int64(c.Scripts.MemoryMB) << 20, Burst: debug.FreeOSMemory,
	})
}

func (c *Config) scriptMemory(usable int64) int64 {
	if c.Scripts.TotalMB > 0 {
		return int64(c.Scripts.TotalMB) << 20
	}
	return usable / 2
}

// The values of telemetry.metrics.
const (
	MetricsAuto = "auto"
	metricsOn   = "on"
	metricsOff  = "off"
)

// ServesMetrics reports whether there is a /metrics for Prometheus. By default only
// programs on this machine can see it.
func (c *Config) ServesMetrics() bool {
	return c.Telemetry.Metrics == metricsOn || c.Telemetry.Metrics == MetricsAuto && ListensLocally(c.Listen)
}
