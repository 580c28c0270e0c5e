package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Upstream is one tool server to connect to: a URL, or a command to run.
// Its address, command, environment and headers may refer to variables of the server's
// environment, as ${VAR} or ${VAR:-default}.
type Upstream struct {
	URL          string            `toml:"url,omitempty" help:"URL of a running server; without a path it is tried as given, then with /mcp; or zmq+tcp://HOST:PORT of a backend"`
	Command      string            `toml:"command,omitempty" help:"program to start; it is used over its standard input and output"`
	OpenAPI      string            `toml:"openapi,omitempty" help:"file or URL of the OpenAPI or Swagger document of an API, whose operations become tools; docs/apis.md"`
	GraphQL      string            `toml:"graphql,omitempty" help:"URL of a GraphQL service, whose queries and mutations become tools; docs/graphql.md"`
	GRPC         string            `toml:"grpc,omitempty" help:"HOST:PORT of a gRPC service, whose methods become tools; https:// or http:// in front chooses TLS or none; docs/grpc.md"`
	Mock         string            `toml:"mock,omitempty" help:"file of luanette record that answers in place of the server, which is not connected; relative to this file; docs/testing.md"`
	Record       string            `toml:"record,omitempty" help:"file to which the server's answers are added, without secrets, for mock"`
	Args         []string          `toml:"args,omitempty" help:"the program's arguments"`
	Env          map[string]string `toml:"env,omitempty" secret:"values" help:"environment variables for the program, in addition to those it inherits; docs/upstreams.md lists them"`
	EnvFile      string            `toml:"env_file,omitempty" help:"file of NAME=value lines with more variables, read at every start"`
	InheritEnv   []string          `toml:"inherit_env,omitempty" help:"further variables of the server's environment that the program inherits; * stands for any text, as in GIT_*"`
	CleanEnv     bool              `toml:"clean_env,omitempty" help:"true lets the program inherit only what inherit_env names"`
	Cwd          string            `toml:"cwd,omitempty" help:"folder the program runs in"`
	Transport    string            `toml:"transport,omitempty" help:"auto, http, sse, stdio or zmq+tcp"`
	Protocol     string            `toml:"protocol,omitempty" help:"auto, legacy (with initialize) or modern (2026-07-28)"`
	Roots        []string          `toml:"roots,omitempty" help:"folders or file:// URIs that the server gets as roots where no client gives its own"`
	Headers      map[string]string `toml:"headers,omitempty" secret:"values" help:"HTTP headers sent with every request"`
	BearerEnv    string            `toml:"bearer_env,omitempty" help:"variable that holds a bearer token"`
	CAFile       string            `toml:"ca_file,omitempty" help:"PEM file with the certificate authority of the server and of its logins, besides the system's"`
	Timeout      Duration          `toml:"timeout,omitempty" help:"how long one call may take without progress (60s)"`
	MaxTime      Duration          `toml:"max_time,omitempty" help:"how long one call may take in total (30m)"`
	Wait         Duration          `toml:"wait,omitempty" help:"how long a call waits for a lost connection to be restored (2s); it waits longer for one that is starting"`
	StartTimeout Duration          `toml:"start_timeout,omitempty" help:"how long it may take until it is connected (2m for a program, 30s for a URL)"`
	Start        string            `toml:"start,omitempty" help:"eager, or lazy: start on first use"`
	Idle         Duration          `toml:"idle,omitempty" help:"stop a lazy program after this long without a call"`
	Expose       any               `toml:"expose,omitempty" help:"which of its tools our clients see directly: none, all, or a list of names"`
	Prefixes     []string          `toml:"prefixes,omitempty" help:"prefixes of tool names; tools with such a prefix are listed under their own names, without the namespace"`
	Allowed      []string          `toml:"allowed_tools,omitempty" help:"only these tools exist"`
	Disabled     []string          `toml:"disabled_tools,omitempty" help:"these tools do not exist"`
	ReadOnly     bool              `toml:"read_only,omitempty" help:"only tools with readOnlyHint exist"`
	Aliases      map[string]string `toml:"aliases,omitempty" help:"additional names of its tools: alias = the tool's own name"`
	Priority     int               `toml:"priority,omitempty" help:"priority of its tools: higher ones are listed and found first"`
	Ranks        map[string]int    `toml:"priorities,omitempty" help:"priority of single tools, added to that of the server"`
	OAuth        *UpstreamOAuth    `toml:"oauth,omitempty" help:"how to log in to it; docs/oauth.md"`
	Login        string            `toml:"login,omitempty" help:"whose account calls use: shared (one connection for everybody), each (everybody logs in, and has a connection or program of their own), exchange or id-jag (the same without a login, by the company's provider); docs/upstreams.md"`
	People       int               `toml:"people,omitempty" help:"how many people may be connected at a time if login is not shared (50)"`
	Approve      string            `toml:"approve,omitempty" help:"which of its tools need approval when scripts call them: never, writes or all"`
	Trust        string            `toml:"trust,omitempty" help:"open uses its tools as they are, pin withholds each definition until it is approved"`
	Labels       []string          `toml:"labels,omitempty" help:"labels of the data read from it; such data may only flow where they are accepted; docs/policy.md"`
	Accepts      []string          `toml:"accepts,omitempty" help:"labels that may be sent to it"`
	Enabled      *bool             `toml:"enabled,omitempty" help:"false disables it"`
	Org          any               `toml:"org,omitempty" help:"the organisation, or a list of organisations, whose members alone see it; each has a connection of its own; docs/organisations.md"`

	// Revert is by the tool's own name.
	Revert map[string]UpstreamRevert `toml:"revert,omitempty" help:"how calls of its tools are undone: tool = { tool = \"other\", arguments = { id = \"$result/id\" } }; docs/jobs.md"`

	API *UpstreamAPI `toml:"api,omitempty" help:"how an API is called; docs/apis.md"`

	Curve *UpstreamCurve `toml:"curve,omitempty,inline" help:"keys of a ZeroMQ backend that uses CURVE; docs/backends.md"`

	Faults *UpstreamFaults `toml:"faults,omitempty,inline" help:"faults that are injected into calls, for tests; docs/testing.md"`

	Concurrent int `toml:"concurrent,omitempty" help:"how many calls may run at a time (64); further calls wait, callers in turn"`
	Rate       int `toml:"rate,omitempty" help:"how many calls a minute are sent; further calls are refused"`

	Hub       bool     `toml:"hub,omitempty" trust:"needed" help:"true lets its program use this server while no key exists, with rights of its own; others are refused"`
	Sandbox   string   `toml:"sandbox,omitempty" help:"what the program may reach: off, open (reads all but credentials, writes its own folders), strict (sees its own files only), docker:IMAGE or podman:IMAGE; docs/sandbox.md"`
	Read      []string `toml:"read,omitempty" help:"folders and files that the sandboxed program may read"`
	Write     []string `toml:"write,omitempty" help:"folders that the sandboxed program may write to"`
	Network   []string `toml:"network,omitempty" help:"hosts that a program in a strict sandbox may connect to, such as api.github.com:443 or *.example.org:443"`
	Require   *bool    `toml:"require,omitempty" help:"true refuses the start where the kernel cannot do all of the sandbox"`
	Exec      bool     `toml:"exec,omitempty" help:"true lets a program in a strict sandbox execute files that it wrote, as npx and uvx need it"`
	Sockets   bool     `toml:"sockets,omitempty" help:"true lets a program in a strict sandbox use Unix sockets, as browsers need it"`
	MemoryMB  int      `toml:"memory_mb,omitempty" help:"most memory of all processes of the sandboxed program, in MiB (8192, or half of the computer's)"`
	DiskMB    int      `toml:"disk_mb,omitempty" help:"most size of the private folders of the sandboxed program, in MiB (10240)"`
	CPUs      float64  `toml:"cpus,omitempty" help:"how many processors the sandboxed program may use, such as 0.5; needs a delegated cgroup"`
	Processes int      `toml:"processes,omitempty" help:"how many processes and threads the sandboxed program may have (512)"`
	OpenFiles int      `toml:"open_files,omitempty" help:"how many files each process of the sandboxed program may have open (4096)"`
	CPUTime   Duration `toml:"cpu_time,omitempty" help:"most processor time of each process of the sandboxed program"`
}

// checkUpstreams refuses upstreams that cannot be connected to.
func (c *Config) checkUpstreams() error {
	for name, u := range c.Upstreams {
		if places := u.places(); places > 1 || places == 0 && u.Mock == "" {
			return fault.New(fault.Config, "upstreams.%s: needs either url or command", name).
				WithHint("url connects to a running server; command starts one; openapi, graphql and grpc are APIs; mock answers from a recording")
		}
		if err := u.OAuth.check(name, u.Login); err != nil {
			return err
		}
		if err := u.checkReverts(name); err != nil {
			return err
		}
		if err := u.checkSandbox(name); err != nil {
			return err
		}
		if err := u.rule().Validate(); err != nil {
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

func upstreamKeys() []string {
	t := reflect.TypeFor[Upstream]()
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("toml"), ",")
	}
	return keys
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
	expose := any(s.Expose)
	if slices.Contains(s.Expose, upstream.ExposeAll) {
		expose = "all"
	}
	list := []keyValue{}
	for _, v := range []struct {
		key   string
		count int
		value any
	}{{"expose", len(s.Expose), expose}, {"aliases", len(s.Aliases), s.Aliases}, {"disabled_tools", len(s.Disabled), s.Disabled}} {
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

// UpstreamRevert says how calls of a tool are undone, by another tool of the same
// upstream.
type UpstreamRevert struct {
	Tool      string         `toml:"tool" help:"the tool that undoes a call"`
	Arguments map[string]any `toml:"arguments,omitempty" help:"its arguments; $arguments/… and $result/… stand for parts of the call"`
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

// checkReverts refuses declarations without a tool.
func (u Upstream) checkReverts(name string) error {
	for undone, r := range u.Revert {
		if r.Tool == "" {
			return fault.New(fault.Config, "upstreams.%s.revert.%s: needs tool, the name of the tool that undoes a call", name, undone)
		}
	}
	return nil
}
