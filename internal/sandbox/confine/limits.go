package confine

import "time"

// Limits are profile.Limits. Zero means a default.
type Limits struct {
	Memory    int64
	CPU       float64
	Processes int
	Files     int
	Time      time.Duration
	Disk      int64
}

// Defaults of Limits.
const (
	DefaultFiles     = 4096
	DefaultProcesses = 512
	DefaultDisk      = 10 << 30
	mostMemory       = 8 << 30 // or half of the computer's, if that is less
	mostTmp          = 512 << 20
)

// MaxProcesses is how many processes a program may have, and threads each of them.
func (l Limits) MaxProcesses() int {
	if l.Processes > 0 {
		return l.Processes
	}
	return DefaultProcesses
}

// MaxTasks is how many threads all processes of a program may have.
func (l Limits) MaxTasks() int { return 4 * l.MaxProcesses() }

// MaxMemory is how much memory all processes of a program may have.
func (l Limits) MaxMemory() int64 {
	if l.Memory > 0 {
		return l.Memory
	}
	return min(mostMemory, computerMemory()/2)
}

// maxDisk is how large the private folders of a program may be.
func (l Limits) maxDisk() int64 {
	if l.Disk > 0 {
		return l.Disk
	}
	return DefaultDisk
}

// maxTmp is how large the private /tmp may be, which is in memory.
func (l Limits) maxTmp() int64 { return min(mostTmp, l.maxDisk(), l.MaxMemory()/2) }
