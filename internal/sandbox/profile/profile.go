// Package profile says what a program that we start may reach.
package profile

import (
	"slices"
	"time"
)

// Level is how much is closed before the lists of a Profile open something again.
type Level string

// The levels. The empty level is Off.
const (
	// Off starts the program as it is.
	Off Level = "off"
	// Open lets it read everything but the folders of Secrets, write to its own and the
	// given folders, and use the network.
	Open Level = "open"
	// Strict shows it its own folders, its program and the given folders only; network
	// only to the given hosts.
	Strict Level = "strict"
)

// Profile is what one program may reach.
type Profile struct {
	Name  string // of the server, the tool or the script's programs; names its private folders
	Level Level

	// Read and Write are folders or files that it may read, or read and write, besides
	// what its level gives. They are absolute.
	Read, Write []string

	// Network are the hosts that it may connect to, as host:port; *.example.org:443 is
	// all names below example.org. Only Strict heeds it.
	Network []string

	// Exec allows programs from folders that it may write to, and from memory: package
	// runners and compilers at run time need it. Open always allows it.
	Exec bool

	// Sockets allows Unix sockets. Open always allows them.
	Sockets bool

	// Require refuses the start where the kernel cannot do all of the level.
	Require bool

	Limits Limits

	// Credentials are secrets that it uses without having them, at every level.
	Credentials []Credential
}

// Limits are what a program with its children may use. Zero is the default of the level.
type Limits struct {
	Memory    int64         // bytes of all processes
	CPU       float64       // processors, 0.5 is half of one; needs a cgroup
	Processes int           // processes, and threads of each
	Files     int           // open files of each process
	Time      time.Duration // processor time of each process
	Disk      int64         // bytes of the private folders
}

// Active reports whether the profile restricts anything.
func (p Profile) Active() bool { return p.Level != "" && p.Level != Off }

// Equal reports whether nothing differs.
func (p Profile) Equal(other Profile) bool {
	return p.Name == other.Name && p.Level == other.Level && p.Exec == other.Exec && p.Sockets == other.Sockets &&
		p.Require == other.Require && p.Limits == other.Limits &&
		slices.Equal(p.Read, other.Read) && slices.Equal(p.Write, other.Write) && slices.Equal(p.Network, other.Network) &&
		slices.EqualFunc(p.Credentials, other.Credentials, Credential.Equal)
}
