package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// UpstreamSpecs returns the configured upstreams: those of the configuration's tables and
// of the mcpServers files it imports. If a name is in both, the table takes precedence.
// Warnings are for people: a file that cannot be imported is one, too.
func (l *Loaded) UpstreamSpecs(env Environment) (specs []upstream.Spec, warnings []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(l.Upstreams)) {
		u := l.Upstreams[name]
		if u.Enabled != nil && !*u.Enabled || l.withholds(upstreamKey(name)) {
			continue
		}
		u = l.withFiles(u)
		var held []profile.Credential
		u.Env, held = l.withSecrets(u.Env)
		spec, more, err := u.spec(name, env)
		if err != nil {
			return nil, nil, err
		}
		spec.Credentials = held
		spec.Sandbox = l.profile(name, u)
		warnings = append(warnings, more...)
		specs = append(specs, spec)
	}
	spec, ok, err := l.commandSpec(env)
	if err != nil {
		return nil, nil, err
	}
	if ok {
		specs = append(specs, spec)
	}
	specs, more := l.withImported(specs, env)
	return specs, append(warnings, more...), nil
}

// withImported adds the servers of the files that are imported.
func (l *Loaded) withImported(specs []upstream.Spec, env Environment) (all []upstream.Spec, warnings []string) {
	for _, path := range l.MCP.Import {
		imported, more := l.importServers(path, env.Lookup)
		warnings = append(warnings, more...)
		for _, spec := range imported {
			if _, own := l.Upstreams[spec.Name]; own || l.withholds(importedKey(path, spec.Name)) {
				continue
			}
			if slices.ContainsFunc(specs, func(s upstream.Spec) bool { return s.Name == spec.Name }) {
				warnings = append(warnings, fmt.Sprintf("%s: server %q: ignored, since an earlier file has a server of that name", path, spec.Name))
				continue
			}
			spec.Trusted, spec.Sandbox = true, l.profile(spec.Name, Upstream{Command: spec.Command})
			specs = append(specs, spec)
		}
	}
	return specs, warnings
}

// withFiles returns an upstream whose recordings are found from the working folder, and
// without the server that a recording replaces.
func (l *Loaded) withFiles(u Upstream) Upstream {
	if u.Record != "" {
		u.Record = l.beside(u.Record)
	}
	if u.Mock != "" {
		u.Mock, u.URL, u.Command, u.Transport = l.beside(u.Mock), "", "", ""
		u.OpenAPI, u.GraphQL, u.GRPC = "", "", ""
	}
	return l.withAPIFiles(u)
}

// beside resolves a path relative to the configuration file. A leading ~ is the home
// folder.
func (l *Loaded) beside(path string) string {
	if rest, below := strings.CutPrefix(filepath.ToSlash(path), "~/"); below && l.home() != "" {
		return filepath.Join(l.home(), rest)
	}
	if filepath.IsAbs(path) || l.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(l.File), path)
}

func (l *Loaded) home() string { return l.sources.Env["HOME"] }

// importServers reads a file of another client. Nothing in it stops us: it belongs to
// another program.
func (l *Loaded) importServers(path string, getenv func(string) (string, bool)) (specs []upstream.Spec, warnings []string) {
	path = l.beside(path)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, []string{fmt.Sprintf("mcp.import: %v", err)}
	}
	servers, err := clientfile.Parse(text, clientfile.SourceOf(path, l.home()))
	if err != nil {
		return nil, []string{fmt.Sprintf("mcp.import: %v", err)}
	}
	servers = slices.DeleteFunc(servers, clientfile.Server.Ours)
	specs, warnings = clientfile.Specs(servers, getenv)
	for i := range warnings {
		warnings[i] = path + ": " + warnings[i]
	}
	return specs, warnings
}

// spec returns the upstream's options for the connection manager. Variables are replaced
// from env.
func (u Upstream) spec(name string, env Environment) (spec upstream.Spec, warnings []string, err error) {
	expose, err := exposeList(u.Expose)
	if err != nil {
		return spec, nil, fault.Wrap(fault.Config, err, "upstreams.%s.expose", name).
			WithHint(`use "none", "all", or a list of tool names`)
	}
	spec, warnings = upstream.Spec{
		Name: name, URL: u.URL, API: u.apiSettings(), Command: u.Command, Args: u.Args, Env: u.Env, EnvFile: u.EnvFile, Cwd: u.Cwd,
		Transport: u.Transport, Protocol: u.Protocol, Roots: u.Roots, Headers: u.Headers, BearerEnv: u.BearerEnv, CAFile: u.CAFile,
		Timeout: time.Duration(u.Timeout), MaxTime: time.Duration(u.MaxTime), Wait: time.Duration(u.Wait),
		StartTimeout: time.Duration(u.StartTimeout), Start: u.Start, Idle: time.Duration(u.Idle),
		InheritEnv: u.InheritEnv, CleanEnv: u.CleanEnv,
		Mock: u.Mock, Record: u.Record, Faults: u.Faults.settings(),
		Trusted: true, OAuth: u.OAuth.settings(), Curve: u.Curve.settings(), Login: u.Login, People: u.People,
		Expose: expose, Prefixes: u.Prefixes, AllowedTools: u.Allowed, DisabledTools: u.Disabled, ReadOnly: u.ReadOnly,
	}.Expand(env.Lookup)
	if err := spec.Validate(); err != nil {
		return spec, nil, fault.Wrap(fault.Config, err, "upstreams.%s", name).WithHint("%s", fault.HintOf(err))
	}
	return spec, warnings, nil
}

// rule returns which of the upstream's tools are exposed, and under which names.
func (u Upstream) rule() overlay.Rule {
	return overlay.Rule{Priority: u.Priority, Tools: u.Ranks, Aliases: u.Aliases}
}

// OverlayRules returns the rules of all upstreams that have any, by namespace.
func (l *Loaded) OverlayRules() map[string]overlay.Rule {
	rules := map[string]overlay.Rule{}
	for name, u := range l.Upstreams {
		rules[name] = u.rule()
	}
	return rules
}

// exposeList reads "none", "all" or a list of names.
func exposeList(value any) ([]string, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		switch v {
		case "none", "":
			return nil, nil
		case "all":
			return []string{upstream.ExposeAll}, nil
		}
		return nil, fmt.Errorf("%q is neither none nor all", v)
	case []string:
		return v, nil
	case []any:
		names := make([]string, len(v))
		for i, item := range v {
			name, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("item %d is not a name", i+1)
			}
			names[i] = name
		}
		return names, nil
	default:
		return nil, fmt.Errorf("%v is neither a string nor a list", v)
	}
}

// Pairs returns the environment as os.Environ does.
func (e Environment) Pairs() []string {
	pairs := make([]string, 0, len(e))
	for name, value := range e {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// Lookup reads a variable, as os.LookupEnv does.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}
