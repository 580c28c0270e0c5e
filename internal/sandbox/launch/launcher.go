// Package launch starts programs inside the limits of their profile.
package launch

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Gateway is the only way out of a program that has no network of its own.
type Gateway interface {
	// Env returns the variables, as NAME=value, by which the program finds the gateway at
	// address, a host:port that it can connect to.
	Env(address string) []string

	// Files are files that the program must be able to read, such as certificates.
	Files() []string

	// Serve accepts the program's connections until the listener is closed. If shared,
	// other programs of this computer reach the listener, too, and the gateway must
	// check that a connection is from the program, by a password in Env.
	Serve(listener net.Listener, shared bool)

	// Ports are the ports of other hosts at which the gateway takes connections of
	// programs that do not know it.
	Ports() []int

	// ServeDirect accepts connections that the program believes to have with another
	// host, until the listener is closed. Their local address is that of the host.
	ServeDirect(listener net.Listener)

	// ServeNames answers questions of DNS until conn is closed, with addresses by which
	// the gateway knows the name again.
	ServeNames(conn net.PacketConn)

	// HostOf is the host that the program means by an address.
	HostOf(address netip.Addr) string

	// Close releases it, also if it was never served.
	Close()
}

// Launcher starts programs inside their profiles. Its fields must not change after the
// first use.
type Launcher struct {
	// Folder has a private folder for each profile's name.
	Folder string
	// Home is the user's home folder.
	Home string
	// Hide are paths that no program may read, besides profile.Secrets.
	Hide []string
	// Executable is our own program; empty: the one that runs.
	Executable string

	Log *slog.Logger // nil: no log

	// Refused is told what programs were refused; nil: nothing is noted. It must not block.
	Refused func(profile.Refusal)

	// Gateway makes the way out for a program of level Strict; nil: it has no network.
	Gateway func(profile.Profile) (Gateway, error)

	probe   sync.Once
	support Support
	groups  *cgroups // nil: there are none

	starting    sync.RWMutex // held for reading while a program starts
	runningLock sync.Mutex
	running     map[*Command]bool // those with a gateway
	started     map[int]string    // the names of the profiles of all programs that run, by process id

	tracing sync.Mutex
	traces  map[string]Trace
}

// Program is what to start.
type Program struct {
	Path string   // of the file to execute
	Args []string // with the program's name
	Env  []string // its whole environment, as NAME=value
	Dir  string   // working folder; empty: ours
}

// folders are the private folders of a profile.
type folders struct{ home, cache, tmp string }

// privateFolders makes the private folders of a profile.
func (l *Launcher) privateFolders(name string) (folders, error) {
	base := filepath.Join(l.Folder, safeName(name))
	f := folders{filepath.Join(base, "home"), filepath.Join(base, "cache"), filepath.Join(base, "tmp")}
	if l.Folder == "" {
		return f, fault.New(fault.Internal, "sandbox: there is no folder for private files")
	}
	for _, folder := range []string{f.home, f.cache, f.tmp} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return f, fault.Wrap(fault.Unavailable, err, "sandbox: private folder of %s", name)
		}
	}
	return f, nil
}

// safeName is a name as the name of a folder.
func safeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if safe == "" {
		return "_"
	}
	return safe
}

// environment is the program's own environment with the variables that lead to its
// private folders. At level Open the home stays the user's, which it can read.
func (f folders) environment(env []string, level profile.Level, tmp string) []string {
	set := map[string]string{
		"TMPDIR": tmp, "XDG_CACHE_HOME": f.cache, "npm_config_cache": filepath.Join(f.cache, "npm"),
		"UV_CACHE_DIR": filepath.Join(f.cache, "uv"), "UV_TOOL_DIR": filepath.Join(f.cache, "uv-tools"),
		"PIP_CACHE_DIR": filepath.Join(f.cache, "pip"), "npm_config_update_notifier": "false",
	}
	if level == profile.Strict {
		set["HOME"] = f.home
		for name, below := range map[string]string{"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"} {
			set[name] = filepath.Join(f.home, below)
		}
		set["XDG_RUNTIME_DIR"] = tmp
	}
	return withVariables(env, set)
}

// withVariables replaces variables of an environment.
func withVariables(env []string, set map[string]string) []string {
	out := make([]string, 0, len(env)+len(set))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if _, replaced := set[name]; !replaced {
			out = append(out, entry)
		}
	}
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	return out
}

// link makes what a profile gives of the user's home visible at the same place of the
// private one: a program that may read ~/.kube looks for it below its own HOME. What the
// program has made there itself stays.
func (l *Launcher) link(private folders, p profile.Profile) {
	if l.Home == "" || l.Home == "/" {
		return
	}
	root, err := os.OpenRoot(private.home) // the program may have put links there that lead out
	if err != nil {
		return
	}
	defer root.Close()
	for _, path := range slices.Concat(p.Read, p.Write) {
		rest, below := strings.CutPrefix(path, l.Home+"/")
		if !below || strings.HasPrefix(private.home+"/", path+"/") {
			continue
		}
		if root.MkdirAll(filepath.Dir(rest), 0o700) == nil {
			_ = root.Symlink(path, rest) // it exists already, or the program does without
		}
	}
}

// start starts the first process of a program and notes it. Started waits for both, so that
// a program that connects to this process at once is known as one of ours.
func (l *Launcher) start(c *Command) error {
	if l == nil {
		return c.Cmd.Start()
	}
	l.starting.RLock()
	defer l.starting.RUnlock()
	err := c.Cmd.Start()
	if err == nil {
		l.runningLock.Lock()
		defer l.runningLock.Unlock()
		if l.started == nil {
			l.started = map[int]string{}
		}
		l.started[c.Process.Pid] = c.name
	}
	return err
}

// wait waits for the end of a first process, which is none of ours from then on.
func (l *Launcher) wait(c *Command) error {
	err := c.Cmd.Wait()
	if l != nil {
		l.runningLock.Lock()
		defer l.runningLock.Unlock()
		delete(l.started, c.Process.Pid)
	}
	return err
}

// Started returns the programs that run: the names of their profiles, by process id.
func (l *Launcher) Started() map[int]string {
	if l == nil {
		return nil
	}
	l.starting.Lock()
	defer l.starting.Unlock()
	l.runningLock.Lock()
	defer l.runningLock.Unlock()
	return maps.Clone(l.started)
}
