package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Proposed returns an upstream that is to be added with the sandbox that it gets: open,
// with the folders that its arguments and variables name. It keeps its own level, and the
// default of the configuration.
func (l *Loaded) Proposed(name string, u Upstream, env Environment) Upstream {
	spec, _, err := u.spec(name, env)
	level := profile.Level(l.Sandbox.Level)
	if err != nil || u.Command == "" || u.Sandbox != "" || level == profile.Off { // who adds it reports the error
		return u
	}
	p := profile.Start{Command: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Cwd, Home: env["HOME"], UserID: os.Getuid()}
	if p.Dir = l.beside(p.Dir); spec.Cwd == "" {
		p.Dir, _ = os.Getwd()
	}
	proposed := p.Propose()
	if level == "" {
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
