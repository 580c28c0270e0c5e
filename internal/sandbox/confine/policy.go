// Package confine is the part of the sandbox that runs in the child process: it builds
// the namespaces' contents, gives up rights, starts the program and stays as its parent.
package confine

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Args are the arguments by which our own program becomes a sandbox's first process.
func Args() []string { return []string{"sandbox", "exec"} }

// ControlFile is the descriptor of the control socket in the child.
const ControlFile = 3

// The networks of a Policy.
const (
	HostNetwork    = "host"    // as outside
	NoNetwork      = "none"    // none at all
	GatewayNetwork = "gateway" // the gateway's sockets
)

// How much of what the program does is noted.
const (
	NoteNothing  = ""
	NoteRefusals = "refusals"
	NoteAll      = "all"
)

// Policy is everything that the child process must know. Paths are absolute.
type Policy struct {
	Program string   // file to execute
	Args    []string // with the program's name
	Dir     string   // working folder; where it is not visible, Home

	Namespaces bool // user, mount, PID, IPC and UTS namespaces are new, and network unless it is the host's
	OwnRoot    bool // only Read and Write are visible; otherwise everything but Hide
	Landlock   bool
	Seccomp    bool

	Read, Write []string
	Hide        []string // not readable, though Read or the whole root contains it
	Home        string   // the private home

	Network string
	Port    int   // of the gateway; in the program's own network it is also the port to listen on
	Direct  []int // ports at which connections to any address of the program's own network reach the gateway

	Exec    bool // programs may be executed from Write and from memory
	Sockets bool // Unix sockets may be used
	Limits  Limits
	Cgroup  bool     // limits memory
	Private []string // folders that Limits.Disk is for
	Note    string

	// Probe ends the process in place of starting the program.
	Probe bool
}

// Allows reports whether the policy lets the program do something with a path.
func (p *Policy) Allows(action, path string) bool {
	own := p.Owns(path)
	switch {
	case p.Namespaces && p.conceals(path): // Landlock cannot take it out of a writable folder
		return false
	case action == Writing:
		return within(path, p.Write) || own && !p.readsInScratch(path)
	case p.reads(path):
		return true
	case own:
		return action != Executing || p.Exec || !p.OwnRoot
	}
	return !p.OwnRoot && !within(path, p.Hide)
}

// reads reports whether Read names the path or a folder above it, and nothing hides it
// below that.
func (p *Policy) reads(path string) bool {
	return slices.ContainsFunc(p.Read, func(folder string) bool {
		return Below(path, folder) && !slices.ContainsFunc(p.Hide, func(hidden string) bool {
			return hidden != folder && Below(hidden, folder) && Below(path, hidden)
		})
	})
}

// conceals reports whether the path is hidden, and nothing inside of what is hidden opens
// it again.
func (p *Policy) conceals(path string) bool {
	return slices.ContainsFunc(p.Hide, func(hidden string) bool {
		opens := func(folder string) bool { return Below(path, folder) && Below(folder, hidden) }
		return Below(path, hidden) && !slices.ContainsFunc(p.Read, opens) && !slices.ContainsFunc(p.Write, opens)
	})
}

// readsInScratch reports whether the path is in a folder that is only read, inside of one
// that the sandbox has for itself.
func (p *Policy) readsInScratch(path string) bool {
	return slices.ContainsFunc(p.Read, func(folder string) bool { return Below(path, folder) && within(folder, p.scratch()) })
}

// Owns reports whether a path is in a folder of Write, or in one that the sandbox has for
// itself.
func (p *Policy) Owns(path string) bool { return within(path, p.scratch()) || within(path, p.Write) }

// scratch are the folders that the sandbox has for itself.
func (p *Policy) scratch() []string {
	if p.Namespaces {
		return []string{"/proc", "/dev", "/tmp"}
	}
	return []string{"/proc", "/dev"}
}

// within reports whether a path is one of the folders or below one.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return Below(path, folder) })
}

// Below reports whether a path is a folder or inside it.
func Below(path, folder string) bool {
	rest, found := strings.CutPrefix(path, folder)
	return found && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}

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

// The kinds of a Message. Those of sockets come with a descriptor.
const (
	Listener = "listener" // of the gateway
	Direct   = "direct"   // a listener of connections that do not ask the gateway
	Names    = "names"    // a packet socket for questions about names
	Started  = "started"
	Failed   = "failed"
	Noted    = "noted"
)

// Message is what the child process tells the one that started it.
type Message struct {
	Kind  string
	Step  string `json:",omitempty"` // of Failed: what was being done
	Error string `json:",omitempty"`
	Notes []Note `json:",omitempty"`
}

// What a Note is about. The words are those of profile.Refusal. That package is not
// imported: what this one imports is initialised before the program can start.
const (
	Reading    = "read"
	Writing    = "write"
	Executing  = "execute"
	Connecting = "connect" // Object is host:port
	Calling    = "call"    // of the kernel; Object names the system call
	Using      = "use"     // of more than a limit allows
)

// Note is something that the program did, or tried.
type Note struct {
	Action  string
	Object  string
	Refused bool
	Allow   string `json:",omitempty"` // the setting that would allow it, if that does not follow from the others
}
