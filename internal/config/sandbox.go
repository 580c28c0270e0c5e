package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Sandbox configures the limits of the programs we start: what holds where an upstream has
// no setting of its own, and for the programs of scripts.
type Sandbox struct {
	Level   string   `toml:"level" live:"yes" trust:"needed" help:"sandbox of upstreams and commands that do not set their own: off, open, strict, docker:IMAGE or podman:IMAGE; docs/sandbox.md"`
	Scripts string   `toml:"scripts" trust:"needed" help:"sandbox of the programs that scripts run: off, open or strict; they may write to the folders of scripts.write and read those of scripts.read"`
	Read    []string `toml:"read" live:"yes" trust:"needed" help:"folders that every sandboxed program may read"`
	Require bool     `toml:"require" live:"yes" help:"true refuses to start a sandboxed program where the kernel cannot do all of its level"`
}

func (s Sandbox) check() error {
	for key, level := range map[string]string{"level": s.Level, "scripts": s.Scripts} {
		if err := profile.Level(level).Check(); err != nil {
			return fault.Wrap(fault.Config, err, "sandbox.%s", key).WithHint("%s", fault.HintOf(err))
		}
	}
	return nil
}

// profile is what the upstream's program may reach. Paths are relative to the
// configuration file.
func (l *Loaded) profile(name string, u Upstream) profile.Profile {
	if u.Command == "" {
		return profile.Profile{Name: name}
	}
	p := profile.Profile{
		Name: name, Level: profile.Level(u.Sandbox), Network: u.Network, Exec: u.Exec, Sockets: u.Sockets, Require: l.Sandbox.Require,
		Read: l.allBeside(slices.Concat(u.Read, l.Sandbox.Read)), Write: l.allBeside(u.Write),
		Limits: profile.Limits{
			Memory: int64(u.MemoryMB) << 20, CPU: u.CPUs, Processes: u.Processes, Files: u.OpenFiles, Time: time.Duration(u.CPUTime), Disk: int64(u.DiskMB) << 20,
		},
	}
	if p.Level == "" {
		p.Level = profile.Level(l.Sandbox.Level)
	}
	if u.Require != nil {
		p.Require = *u.Require
	}
	return p
}

// ScriptProfile is what the programs of scripts may reach.
func (l *Loaded) ScriptProfile() profile.Profile {
	return profile.Profile{
		Name: "scripts", Level: profile.Level(l.Sandbox.Scripts), Require: l.Sandbox.Require,
		Read: l.allBeside(slices.Concat(l.Scripts.Read, l.Sandbox.Read)), Write: l.allBeside(l.Scripts.Write),
	}
}

// allBeside resolves paths relative to the configuration file, and makes them absolute.
func (l *Loaded) allBeside(paths []string) []string {
	resolved := make([]string, 0, len(paths))
	for _, path := range paths {
		resolved = append(resolved, l.beside(path))
	}
	return AbsoluteFolders(resolved)
}

// checkSandbox refuses a level that does not exist, and limits below zero.
func checkSandbox(name string, u Upstream) error {
	if err := profile.Level(u.Sandbox).Check(); err != nil {
		return fault.Wrap(fault.Config, err, "upstreams.%s.sandbox", name).WithHint("%s", fault.HintOf(err))
	}
	if u.MemoryMB < 0 || u.DiskMB < 0 || u.CPUs < 0 || u.Processes < 0 || u.OpenFiles < 0 || u.CPUTime < 0 {
		return fault.New(fault.Config, "upstreams.%s: memory_mb, disk_mb, cpus, processes, open_files and cpu_time must not be negative", name)
	}
	return nil
}

// Launcher returns what starts sandboxed programs.
func (l *Loaded) Launcher(env Environment) *launch.Launcher {
	launcher := &launch.Launcher{Home: env["HOME"], Hide: l.ownFiles(env)}
	if folder, err := filepath.Abs(filepath.Join(l.Data, "sandbox")); err == nil {
		launcher.Folder = folder
	}
	l.UseGateway(launcher, egress.Options{Secret: l.SecretFinder(env).Find})
	return launcher
}

// UseGateway lets sandboxed programs reach the network through a service, which it
// returns.
func (l *Loaded) UseGateway(launcher *launch.Launcher, o egress.Options) *egress.Service {
	o.Folder, o.RootFiles, o.Refused = filepath.Join(l.Data, "certificates"), []string{l.CAFile}, launcher.Keep
	if folder, err := filepath.Abs(o.Folder); err == nil {
		o.Folder = folder
	}
	o.Roots, _ = certpool.Load(l.CAFile) // whoever connects to an upstream reports a wrong file
	service := egress.New(o)
	launcher.Gateway = func(p profile.Profile) (launch.Gateway, error) { return service.Within(p) }
	return service
}

// ownFiles are our own files, which no sandboxed program may read.
func (l *Loaded) ownFiles(env Environment) []string {
	return AbsoluteFolders([]string{l.Data, dataFolder(env), UserFolder(env), filepath.Dir(TrustStore(env).Path)})
}

// Proposed returns an upstream that is to be added with the sandbox that it gets: open,
// with the folders that its arguments and variables name. It keeps a level of its own, and the
// default of the configuration.
func (l *Loaded) Proposed(name string, u Upstream, env Environment) Upstream {
	spec, _, err := specOf(name, u, env)
	level := profile.Level(l.Sandbox.Level)
	if err != nil || u.Command == "" || u.Sandbox != "" && u.Sandbox != string(profile.Open) || level == profile.Off { // who adds it reports the error
		return u
	}
	p := profile.Start{Command: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Cwd, Home: env["HOME"], UserID: os.Getuid()}
	if p.Dir = l.beside(p.Dir); spec.Cwd == "" {
		p.Dir, _ = os.Getwd()
	}
	proposed := p.Propose()
	if level == "" && u.Sandbox == "" {
		u.Sandbox = string(proposed.Level)
	}
	given := slices.Concat(u.Read, u.Write)
	u.Read, u.Write = withMore(u.Read, proposed.Read, given), withMore(u.Write, proposed.Write, given)
	return u
}

// withMore adds paths to a list, except those that a person has decided about.
func withMore(list, more, given []string) []string {
	for _, path := range more {
		if !slices.Contains(given, path) {
			list = append(slices.Clip(list), path)
		}
	}
	return list
}

// SandboxNotes say what the sandbox of an upstream of the file means, and what of it this
// computer cannot do.
func SandboxNotes(sources Sources, name string) []string {
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return nil
	}
	p := loaded.profile(name, loaded.Upstreams[name])
	if p.Level != profile.Open {
		return withoutSandbox(name, p)
	}
	folders := "its own folders"
	if len(p.Write) > 0 {
		folders += " and " + strings.Join(p.Write, ", ")
	}
	notes := []string{fmt.Sprintf("%s runs in a sandbox: it reads everything but credentials, and writes only to %s", name, folders)}
	if missing := loaded.Launcher(sources.Env).Support().Missing(); len(missing) > 0 {
		notes = append(notes, "not all of the sandbox is possible on this computer: "+strings.Join(missing, "; "))
	}
	return notes
}

func withoutSandbox(name string, p profile.Profile) []string {
	if p.Level != profile.Off {
		return nil // a URL, or somebody has chosen it
	}
	return []string{name + " runs without a sandbox, with all rights of its user"}
}
