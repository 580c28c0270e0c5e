package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Upstream is one tool server to connect to. Its texts may refer to variables of the server's
// environment, as ${VAR} or ${VAR:-default}.
type Upstream = upstream.Settings

// checkUpstreams refuses upstreams that cannot be connected to.
func (c *Config) checkUpstreams() error {
	for name, u := range c.Upstreams {
		places := slices.DeleteFunc([]string{u.URL, u.Command, u.OpenAPI, u.GraphQL, u.GRPC}, func(text string) bool { return text == "" })
		if len(places) > 1 || len(places) == 0 && u.Mock == "" {
			return fault.New(fault.Config, "upstreams.%s: needs either url or command", name).
				WithHint("url connects to a running server; command starts one; openapi, graphql and grpc are APIs; mock answers from a recording")
		}
		if err := checkLogin(name, u); err != nil {
			return err
		}
		for undone, r := range u.Revert {
			if r.Tool == "" {
				return fault.New(fault.Config, "upstreams.%s.revert.%s: needs tool, the name of the tool that undoes a call", name, undone)
			}
		}
		if err := checkSandbox(name, u); err != nil {
			return err
		}
		if err := ruleOf(u).Validate(); err != nil {
			return fault.Wrap(fault.Config, err, "upstreams.%s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	return nil
}

// checkPrefixes refuses empty prefixes, and those that two upstreams have.
func (c *Config) checkPrefixes() error {
	leads := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		for _, prefix := range c.Upstreams[name].Prefixes {
			if other, twice := leads[prefix]; twice || prefix == "" {
				return fault.New(fault.Config, "upstreams.%s.prefixes: %q already belongs to %s", name, prefix, cmp.Or(other, "everywhere")).
					WithHint("a prefix such as \"cas_\" belongs to one upstream; the longest matching prefix is used")
			}
			leads[prefix] = name
		}
	}
	return nil
}

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
		spec, more, err := specOf(name, u, env)
		if err != nil {
			return nil, nil, err
		}
		spec.Credentials = held
		spec.Profile = l.profile(name, u)
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
	for i := range specs {
		specs[i].Install = cmp.Or(specs[i].Install, l.Starts.Install)
	}
	return specs, append(warnings, more...), nil
}

// Packages returns the packages that are installed for upstreams. launcher runs their install
// scripts.
func (l *Loaded) Packages(launcher *launch.Launcher, log *slog.Logger) *packages.Store {
	folder := filepath.Join(l.Data, "packages")
	if absolute, err := filepath.Abs(folder); err == nil {
		folder = absolute
	}
	return packages.New(packages.Options{Folder: folder, Parallel: cmp.Or(l.Starts.Installs, runtime.GOMAXPROCS(0)), Sandbox: launcher, Log: log})
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
			spec.Trusted, spec.Profile = true, l.profile(spec.Name, Upstream{Command: spec.Command})
			specs = append(specs, spec)
		}
	}
	return specs, warnings
}

// withFiles returns an upstream whose files are found from the working folder, and without
// the server that a recording replaces.
func (l *Loaded) withFiles(u Upstream) Upstream {
	_ = tagged.Texts(&u, "file", func(_, path string) (string, error) {
		if path == "" || api.IsURL(path) {
			return path, nil
		}
		return l.beside(path), nil
	})
	if u.Mock != "" {
		u.URL, u.Command, u.Transport, u.OpenAPI, u.GraphQL, u.GRPC = "", "", "", "", "", ""
	}
	return u
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

// specOf returns the upstream for the connection manager. Variables are replaced from env.
func specOf(name string, u Upstream, env Environment) (spec upstream.Spec, warnings []string, err error) {
	spec, warnings = upstream.Spec{Name: name, Settings: u.WithAPI(), Trusted: true}.Expand(env.Lookup)
	if err := spec.Validate(); err != nil {
		return spec, nil, fault.Wrap(fault.Config, err, "upstreams.%s", name).WithHint("%s", fault.HintOf(err))
	}
	return spec, warnings, nil
}

// ruleOf returns the names and priorities of an upstream's tools.
func ruleOf(u Upstream) overlay.Rule {
	return overlay.Rule{Priority: u.Priority, Tools: u.Ranks, Aliases: u.Aliases}
}

// OverlayRules returns the rules of all upstreams that have any, by namespace.
func (l *Loaded) OverlayRules() map[string]overlay.Rule {
	rules := map[string]overlay.Rule{}
	for name, u := range l.Upstreams {
		rules[name] = ruleOf(u)
	}
	return rules
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

// SetTools changes which tools of an upstream of the configuration file exist, what they
// are called and which of them clients see. The rest of the file does not change.
func SetTools(ctx context.Context, sources Sources, name string, s upstreamset.ToolSettings) error {
	loaded, err := loadEditable(sources, name)
	if err != nil {
		return err
	}
	if err := (overlay.Rule{Aliases: s.Aliases}).Validate(); err != nil {
		return err
	}
	err = edit(loaded.File, func(text string) (string, error) {
		changed := []byte(text)
		for _, v := range toolValues(s) {
			if changed, err = toml.SetValue(changed, []string{"upstreams", name}, v.key, v.value); err != nil {
				return "", noHeader(err, name)
			}
		}
		return string(changed), nil
	})
	if err != nil {
		return err
	}
	return TrustUpstreams(ctx, sources, name)
}

type keyValue struct {
	key   string
	value json.RawMessage // null: the key is left out
}

// toolValues are the settings as the file has them.
func toolValues(s upstreamset.ToolSettings) []keyValue {
	list := []keyValue{}
	for _, v := range []struct {
		key   string
		count int
		value any
	}{{"expose", len(s.Expose), upstream.Expose(s.Expose)}, {"aliases", len(s.Aliases), s.Aliases}, {"disabled_tools", len(s.Disabled), s.Disabled}} {
		raw := json.RawMessage("null")
		if v.count > 0 {
			raw, _ = json.Marshal(v.value) // texts always encode
		}
		list = append(list, keyValue{v.key, raw})
	}
	return list
}

// noHeader explains the error of a table that cannot be edited.
func noHeader(err error, name string) error {
	if errors.Is(err, toml.ErrNoHeader) {
		return fault.New(fault.Config, "the table [upstreams.%s] has no header of its own", name).WithHint("change it in the file by hand")
	}
	return err
}

// Revert returns how calls of a tool are undone.
func (c *Config) Revert(ref tool.Ref) (r tool.Revert, ok bool) {
	declared, ok := c.Upstreams[ref.Space].Revert[ref.Name]
	if !ok {
		return r, false
	}
	arguments, err := json.Marshal(declared.Arguments)
	if err != nil || declared.Arguments == nil {
		arguments = json.RawMessage("{}")
	}
	return tool.Revert{Tool: declared.Tool, Arguments: arguments}, true
}
