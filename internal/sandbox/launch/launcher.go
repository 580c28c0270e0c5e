package launch

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

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
