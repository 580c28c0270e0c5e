// Package config reads, checks, shows and edits the configuration. It comes from
// luanette.toml, the environment and flags; each takes precedence over the one before.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
)

// Config holds all settings. Other packages do not read it; they get their own Options,
// which are made from it. Every scalar can be set in luanette.toml and by an environment
// variable (LUANETTE_ and the key in capitals, dots as underscores), some also by flags;
// the later source takes precedence. Settings tagged live take effect when the file
// changes, all others at the next start: see live.go.
type Config struct {
	Listen    string              `toml:"listen" help:"address the HTTP server listens on"`
	Data      string              `toml:"data" help:"folder for all stored data"`
	Database  string              `toml:"database" help:"where the store is: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE, which several servers may share" secret:"url"`
	Blobs     string              `toml:"blobs" help:"where contents are stored: folder (in the data folder), database, or the path of a folder that all servers share; empty means database with Postgres, otherwise folder"`
	Node      string              `toml:"node" help:"name of this process among those that share a Postgres database; it must be unique; the machine's name when empty"`
	Drain     Duration            `toml:"drain" help:"how long running calls and chat turns may take to finish when the server stops; jobs continue later"`
	Linger    Duration            `toml:"linger" help:"how long a stopping server still serves requests while /ready reports 503, for load balancers that poll it"`
	GCPercent int                 `toml:"gc_percent" live:"yes" help:"how much the heap may grow before garbage is collected, in percent; GOGC and GOMEMLIMIT take precedence"`
	Log       Log                 `toml:"log"`
	Telemetry Telemetry           `toml:"telemetry"`
	HUD       HUD                 `toml:"hud"`
	MCP       MCP                 `toml:"mcp"`
	Scripts   Scripts             `toml:"scripts"`
	Jobs      Jobs                `toml:"jobs"`
	Bridge    Bridge              `toml:"bridge"`
	Hoot      Hoot                `toml:"hoot"`
	Chat      Chat                `toml:"chat"`
	OAuth     OAuth               `toml:"oauth"`
	Keys      map[string]Key      `toml:"keys"`
	Upstreams map[string]Upstream `toml:"upstreams" live:"yes"`

	Sessions      Sessions          `toml:"sessions"`
	Approve       string            `toml:"approve" live:"yes" help:"which effects of scripts need approval: never, writes or all; docs/approvals.md"`
	ApproveExpire Duration          `toml:"approve_expire" help:"how long a request for approval stays open before it is denied"`
	Approvals     map[string]string `toml:"approvals" live:"yes"`

	ReadOnly bool                `toml:"read_only" live:"yes" help:"refuse all tools that may change something; docs/policy.md"`
	Readers  []string            `toml:"read_only_tools" live:"yes" help:"tools that change nothing, as namespace.tool or namespace.*; for the namespaces named here, the readOnlyHint of tools is ignored"`
	Policy   []PolicyRule        `toml:"policy" live:"yes"`
	Accepts  map[string][]string `toml:"accepts" live:"yes"`
	Audit    Audit               `toml:"audit"`

	Trust string `toml:"trust" live:"yes" help:"default trust in tool servers: open uses their tools as they are, pin withholds each definition until it is approved; docs/trust.md"`

	TLSCert        string            `toml:"tls_cert" help:"certificate chain for HTTPS, as PEM; reloaded when it changes"`
	TLSKey         string            `toml:"tls_key" help:"the certificate's private key, as PEM"`
	MaxConnections int               `toml:"max_connections" help:"how many connections may be open; further ones wait"`
	Issuers        map[string]Issuer `toml:"issuers"`
}

// Bridge configures the ZeroMQ endpoint that serves our tools to front ends.
type Bridge struct {
	Listen    string `toml:"listen" help:"address that front ends connect to over ZeroMQ, such as tcp://127.0.0.1:5570; empty disables it"`
	Broadcast string `toml:"broadcast" help:"address that events are published on; empty means the port after listen"`
}

// Log configures the log, which goes to standard error.
type Log struct {
	Level  string `toml:"level" live:"yes" help:"debug, info, warn or error"`
	Format string `toml:"format" help:"text for people, json for programs"`
}

// Telemetry configures OpenTelemetry, in addition to the standard OTEL_* variables.
type Telemetry struct {
	OTLPEndpoint string `toml:"otlp_endpoint" help:"collector to send traces, metrics and logs to (host:port or URL); empty sends nothing"`
	Environment  string `toml:"environment" alias:"ENVIRONMENT" help:"deployment environment, such as production; sent to the collector with all data"`
}

// HUD configures how many recent events and traces the server keeps for dashboards.
type HUD struct {
	RecentEvents int `toml:"recent_events" help:"how many events are kept in memory, for pages that are opened later"`
	RecentTraces int `toml:"recent_traces" help:"how many traces are kept in memory; 0 keeps none"`
}

// MCP configures the MCP server and its upstreams.
type MCP struct {
	Import         []string `toml:"import" live:"yes" help:"mcpServers files of other clients to import, such as .mcp.json"`
	AllowedOrigins []string `toml:"allowed_origins" help:"web origins that may use the server, in addition to its own"`
	AllowedHosts   []string `toml:"allowed_hosts" help:"hosts that mcp_connect may reach, in addition to loopback; * allows every public host; a server that other machines can reach allows loopback only with localhost"`
	SessionIdle    Duration `toml:"session_idle" help:"how long an idle client session is kept"`
	Mode           string   `toml:"mode" live:"yes" help:"how clients see tools: direct lists every exposed tool; code lists only search_tools, get_tool_definitions and execute_code; auto is direct up to code_threshold"`
	CodeThreshold  int      `toml:"code_threshold" live:"yes" help:"up to how many upstream tools auto lists directly"`
	Pinned         []string `toml:"pinned" live:"yes" help:"tools that are listed in every mode, as namespace.tool or the name of a script"`
	ResultKB       int      `toml:"result_kb" help:"how much of a result of call_tool or execute_code is returned, in KiB; larger results are stored and returned as a handle"`
}

// Scripts configures the permissions and limits of scripts.
type Scripts struct {
	Folder    string   `toml:"folder" help:"folder whose *.lua, *.js and *.ts files are published as tools; scripts in the data folder when empty"`
	Startup   string   `toml:"startup" help:"script to run at start; startup.lua in the user's configuration folder when empty"`
	Cache     string   `toml:"cache" help:"cache folder of the JavaScript engine, which several data folders of one user may share; a folder in the data folder when empty"`
	Timeout   Duration `toml:"timeout" help:"how long one run may take"`
	MemoryMB  int      `toml:"memory_mb" help:"how much memory one run may hold, in MiB"`
	Calls     int      `toml:"calls" help:"how many tool calls and other effects one run may make"`
	CodeTime  Duration `toml:"code_timeout" alias:"CODE_EXEC_TIMEOUT_MS" help:"default timeout of execute_code"`
	CodeMB    int      `toml:"code_memory_mb" help:"how much memory one execute_code may hold, in MiB"`
	CodeCalls int      `toml:"code_calls" help:"how many tools one execute_code may call"`
	ChatCalls int      `toml:"code_calls_chat" help:"how many tools one execute_code may call in a chat"`
	Read      []string `toml:"read" help:"folders scripts may read"`
	Write     []string `toml:"write" help:"folders scripts may read and write"`
	Env       []string `toml:"env" help:"environment variables scripts may see"`
	Commands  []string `toml:"commands" help:"programs scripts may start with run_command, in the first write folder; git allows git_status, * allows every program; an empty list disables it"`
	HookTime  Duration `toml:"hook_timeout" help:"how long one hook of startup.lua may take"`
	HookFails string   `toml:"hook_errors" help:"what happens to a call whose hook fails: pass continues it unchanged, refuse rejects it"`
	HTTPHosts []string `toml:"http_hosts" help:"hosts the http module may reach; an empty list disables it"`
	HTTPGet   string   `toml:"http_get" help:"how a GET request is classified: read, which previews send, or write, which previews only plan and approve = writes covers"`
}

// Upstream is one tool server to connect to: a URL, or a command to run.
// Its address, command, environment and headers may refer to variables of the server's
// environment, as ${VAR} or ${VAR:-default}.
type Upstream struct {
	URL       string            `toml:"url,omitempty" help:"URL of a running server; without a path it is tried as given, then with /mcp; or zmq+tcp://HOST:PORT of a backend"`
	Command   string            `toml:"command,omitempty" help:"program to start; it is used over its standard input and output"`
	Args      []string          `toml:"args,omitempty" help:"the program's arguments"`
	Env       map[string]string `toml:"env,omitempty" secret:"values" help:"environment variables for the program; it inherits no others"`
	EnvFile   string            `toml:"env_file,omitempty" help:"file of NAME=value lines with more variables, read at every start"`
	Cwd       string            `toml:"cwd,omitempty" help:"folder the program runs in"`
	Transport string            `toml:"transport,omitempty" help:"auto, http, sse, stdio or zmq+tcp"`
	Protocol  string            `toml:"protocol,omitempty" help:"auto, legacy (with initialize) or modern (2026-07-28)"`
	Headers   map[string]string `toml:"headers,omitempty" secret:"values" help:"HTTP headers sent with every request"`
	BearerEnv string            `toml:"bearer_env,omitempty" help:"variable that holds a bearer token"`
	Timeout   Duration          `toml:"timeout,omitempty" help:"how long one call may take without progress (60s)"`
	MaxTime   Duration          `toml:"max_time,omitempty" help:"how long one call may take in total (30m)"`
	Wait      Duration          `toml:"wait,omitempty" help:"how long a call waits for a lost connection to be restored (2s)"`
	Start     string            `toml:"start,omitempty" help:"eager, or lazy: start on first use"`
	Idle      Duration          `toml:"idle,omitempty" help:"stop a lazy program after this long without a call"`
	Expose    any               `toml:"expose,omitempty" help:"which of its tools our clients see directly: none, all, or a list of names"`
	Prefixes  []string          `toml:"prefixes,omitempty" help:"prefixes of tool names; tools with such a prefix are listed under their own names, without the namespace"`
	Allowed   []string          `toml:"allowed_tools,omitempty" help:"only these tools exist"`
	Disabled  []string          `toml:"disabled_tools,omitempty" help:"these tools do not exist"`
	ReadOnly  bool              `toml:"read_only,omitempty" help:"only tools with readOnlyHint exist"`
	Aliases   map[string]string `toml:"aliases,omitempty" help:"additional names of its tools: alias = the tool's own name"`
	Priority  int               `toml:"priority,omitempty" help:"priority of its tools: higher ones are listed and found first"`
	Ranks     map[string]int    `toml:"priorities,omitempty" help:"priority of single tools, added to that of the server"`
	OAuth     *UpstreamOAuth    `toml:"oauth,omitempty" help:"how to log in to it; docs/oauth.md"`
	Approve   string            `toml:"approve,omitempty" help:"which of its tools need approval when scripts call them: never, writes or all"`
	Trust     string            `toml:"trust,omitempty" help:"open uses its tools as they are, pin withholds each definition until it is approved"`
	Labels    []string          `toml:"labels,omitempty" help:"labels of the data read from it; such data may only flow where they are accepted; docs/policy.md"`
	Accepts   []string          `toml:"accepts,omitempty" help:"labels that may be sent to it"`
	Enabled   *bool             `toml:"enabled,omitempty" help:"false disables it"`

	Concurrent int `toml:"concurrent,omitempty" help:"how many calls may run at a time (64); further calls wait, callers in turn"`
	Rate       int `toml:"rate,omitempty" help:"how many calls a minute are sent; further calls are refused"`
}

// defaults returns the configuration without any file, variable or flag.
func defaults(env Environment) Config {
	return Config{
		Chat:      chatDefaults(),
		Listen:    "127.0.0.1:8081",
		Data:      dataFolder(env),
		Drain:     Duration(10 * time.Second),
		GCPercent: DefaultGCPercent,
		Log:       Log{Level: "info", Format: "text"},
		HUD:       HUD{RecentEvents: 4096, RecentTraces: 200},
		MCP:       MCP{SessionIdle: Duration(30 * time.Minute), Mode: builtin.ModeAuto, CodeThreshold: builtin.DefaultThreshold, ResultKB: builtin.DefaultShown >> 10},
		Scripts: Scripts{
			Timeout: Duration(30 * time.Second), MemoryMB: 128, Calls: 1000,
			CodeTime: Duration(5 * time.Second), CodeMB: 64, CodeCalls: 100, ChatCalls: 10,
			HookTime: Duration(100 * time.Millisecond), HookFails: "pass", HTTPGet: "read",
		},
		MaxConnections: 10_000,
		Jobs:           defaultJobs(),
		Hoot:           defaultHoot(),
		Sessions:       defaultSessions(),
		Approve:        "never", ApproveExpire: Duration(7 * 24 * time.Hour),
		Trust: string(pin.Open), Audit: defaultAudit(),
	}
}

// Environment is the process environment. It is a parameter so that tests can set it.
type Environment map[string]string

// ProcessEnvironment reads "KEY=value" pairs as os.Environ gives them.
func ProcessEnvironment(pairs []string) Environment {
	env := make(Environment, len(pairs))
	for _, pair := range pairs {
		if key, value, ok := strings.Cut(pair, "="); ok {
			env[key] = value
		}
	}
	return env
}

// Sources are the sources of a configuration. In ascending precedence they are the
// defaults, the file, the environment and the flags.
type Sources struct {
	File  string            // explicit path; with "" the usual places are searched, and no file is required
	Env   Environment       // LUANETTE_* and the variables that the defaults need (HOME, XDG_*)
	Flags map[string]string // by key, such as "listen" or "log.level"; only those given
}

// Loaded is a configuration together with where each value came from.
type Loaded struct {
	Config
	File    string            // the file read, or ""
	Origins map[string]string // by key: "file", "environment" or "flag"; absent means default

	sources Sources   // to read the configuration again
	waiting []pending // settings of the file that take effect at the next start
}

// Load reads the configuration. Every mistake is an invalid_config fault that
// names the place and the key and suggests the nearest known one.
func Load(sources Sources) (*Loaded, error) {
	path, err := configFile(sources)
	if err != nil {
		return nil, err
	}
	return loadFrom(path, sources)
}

// Reread reads the configuration again from the file that was read before, or from
// the user's own file if it was created since.
func (l *Loaded) Reread(env Environment) (*Loaded, error) {
	path := l.File
	if own := UserFile(env); path == "" {
		if _, err := os.Stat(own); err == nil {
			path = own
		}
	}
	return loadFrom(path, l.sources)
}

// loadFrom is Load with the file at path; "" is none.
func loadFrom(path string, sources Sources) (*Loaded, error) {
	loaded := &Loaded{Config: defaults(sources.Env), Origins: map[string]string{}, sources: sources}
	if path != "" {
		if err := loaded.readFile(path); err != nil {
			return nil, err
		}
	}
	if err := loaded.readEnvironment(sources.Env); err != nil {
		return nil, err
	}
	if err := loaded.readFlags(sources.Flags); err != nil {
		return nil, err
	}
	if loaded.Database == "" {
		loaded.Database = "sqlite:" + filepath.Join(loaded.Data, "luanette.db")
	}
	return loaded, loaded.check()
}

func (l *Loaded) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Config, err, "read configuration").
			WithHint("name another file with --config, or omit it to start with the defaults")
	}
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&l.Config); err != nil {
		return decodeFault(path, string(text), err)
	}
	l.File = path
	l.markFileKeys(text)
	return nil
}

// decodeFault turns the decoder's error into "file:line: key: problem".
func decodeFault(path, text string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		return unknownKeys(path, unknown)
	}
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return fault.Wrap(fault.Config, err, "%s", path)
	}
	line, column := bad.Position()
	problem := strings.TrimPrefix(bad.Error(), "toml: ")
	if m := wrongType().FindStringSubmatch(problem); m != nil {
		problem = fmt.Sprintf("expected %s, got %s", m[2], m[1])
	}
	if key := keyAt(text, line); key != "" {
		problem = key + ": " + problem
	}
	return fault.New(fault.Config, "%s:%d:%d: %s", path, line, column, problem).
		WithHint("docs/configuration.md lists every key with its type")
}

// wrongType matches the decoder's error about a value of the wrong type.
var wrongType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^cannot (?:decode|unmarshal) TOML (\w+) into (?:struct field \S+|a Go value) of type (\S+)`)
})

// keyAt returns the key on a line, with its section, for errors in which the decoder
// names only the position.
func keyAt(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	key, _, assigns := strings.Cut(lines[line-1], "=")
	if !assigns {
		return ""
	}
	key = strings.TrimSpace(key)
	for i := line - 2; i >= 0; i-- {
		if section := strings.TrimSpace(lines[i]); strings.HasPrefix(section, "[") && strings.HasSuffix(section, "]") {
			return strings.Trim(section, "[] ") + "." + key
		}
	}
	return key
}

func unknownKeys(path string, unknown *toml.StrictMissingError) error {
	var problems, hints []string
	for _, missing := range unknown.Errors {
		line, column := missing.Position()
		key := strings.Join(missing.Key(), ".")
		problems = append(problems, fmt.Sprintf("%s:%d:%d: unknown key %q", path, line, column, key))
		if near := nearestKey(key); near != "" {
			hints = append(hints, fmt.Sprintf("did you mean %q instead of %q?", near, key))
		}
	}
	hints = append(hints, "docs/configuration.md lists every key")
	return fault.New(fault.Config, "%s", strings.Join(problems, "\n")).WithHint("%s", strings.Join(hints, " "))
}

// nearestKey suggests a known key. A key of an upstream is compared with the
// fields that any upstream has.
func nearestKey(key string) string {
	parts := strings.Split(key, ".")
	prefix, known := "", settingKeys()
	if len(parts) == 3 && parts[0] == "upstreams" {
		prefix, key, known = parts[0]+"."+parts[1]+".", parts[2], upstreamKeys()
	}
	if len(parts) == 2 && parts[0] == "policy" {
		prefix, key, known = "policy.", parts[1], []string{"key", "tool", "do", "reason"}
	}
	if near := suggest.Names(key, known, 1); len(near) > 0 {
		return prefix + near[0]
	}
	return ""
}

func (l *Loaded) readEnvironment(env Environment) error {
	byVariable := map[string]setting{}
	for _, s := range settingsOf(&l.Config) {
		byVariable[s.variable()] = s
		if err := l.readAlias(s, env); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, "LUANETTE_") || strings.HasPrefix(name, testVariables) || name == configVariable || name == keyVariable {
			continue
		}
		s, ok := byVariable[name]
		if !ok {
			f := fault.New(fault.Config, "environment: unknown variable %s", name)
			if near := suggest.Names(name, slices.Sorted(maps.Keys(byVariable)), 1); len(near) > 0 {
				return f.WithHint("did you mean %s? `luanette config show` lists them all", near[0])
			}
			return f.WithHint("`luanette config show` lists the known ones")
		}
		if err := s.set(env[name]); err != nil {
			return fault.Wrap(fault.Config, err, "environment: %s=%q", name, env[name])
		}
		l.Origins[s.key] = "environment"
	}
	return nil
}

// readAlias reads a setting from its alternative variable.
func (l *Loaded) readAlias(s setting, env Environment) error {
	value, ok := env[s.alias]
	if !ok || s.alias == "" {
		return nil
	}
	if strings.HasSuffix(s.alias, "_MS") {
		value += "ms"
	}
	if err := s.set(value); err != nil {
		return fault.Wrap(fault.Config, err, "environment: %s=%q", s.alias, value)
	}
	l.Origins[s.key] = "environment"
	return nil
}

func (l *Loaded) readFlags(flags map[string]string) error {
	for _, s := range settingsOf(&l.Config) {
		value, given := flags[s.key]
		if !given {
			continue
		}
		if err := s.set(value); err != nil {
			return fault.Wrap(fault.Config, err, "flag for %s", s.key)
		}
		l.Origins[s.key] = "flag"
	}
	return nil
}

// check refuses invalid values that the decoder does not detect.
func (c *Config) check() error {
	if err := c.checkChoices(); err != nil {
		return err
	}
	if c.GCPercent < 10 || c.GCPercent > 10_000 {
		return fault.New(fault.Config, "gc_percent: %d is not between 10 and 10000", c.GCPercent).WithHint("400 suits most; less saves memory")
	}
	if err := checkBlobs(c.Blobs); err != nil {
		return err
	}
	if c.MCP.ResultKB < 1 {
		return fault.New(fault.Config, "mcp.result_kb: %d is too small", c.MCP.ResultKB).WithHint("use 1 or more; 32 is usual")
	}
	for _, check := range []func() error{
		c.Hoot.check, c.Jobs.check, c.checkPrefixes, c.Sessions.check, c.checkApprovals, c.checkTrust, c.checkPolicy, c.Audit.check, c.Chat.check, c.checkTLS, c.checkIssuers, c.checkUpstreams,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkChoices refuses unknown values of settings with a fixed set of values.
func (c *Config) checkChoices() error {
	for _, s := range []struct {
		key, value, kind string
		words            []string
	}{
		{"log.level", c.Log.Level, "a level", []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, "a format", []string{"text", "json"}},
		{"scripts.http_get", c.Scripts.HTTPGet, "a kind of effect", []string{"read", "write"}},
		{"scripts.hook_errors", c.Scripts.HookFails, "an outcome", []string{"pass", "refuse"}},
		{"mcp.mode", c.MCP.Mode, "a mode", builtin.Modes},
	} {
		if !slices.Contains(s.words, s.value) {
			return fault.New(fault.Config, "%s: %q is not %s", s.key, s.value, s.kind).WithHint("use %s or %s", strings.Join(s.words[:len(s.words)-1], ", "), s.words[len(s.words)-1])
		}
	}
	return nil
}

// checkUpstreams refuses upstreams that cannot be connected to.
func (c *Config) checkUpstreams() error {
	for name, u := range c.Upstreams {
		if (u.URL == "") == (u.Command == "") {
			return fault.New(fault.Config, "upstreams.%s: needs either url or command", name).
				WithHint("url connects to a running server; command starts one")
		}
		if err := u.OAuth.check(name); err != nil {
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

const (
	configVariable = "LUANETTE_CONFIG"
	keyVariable    = "LUANETTE_KEY"   // for commands that connect to a server
	testVariables  = "LUANETTE_TEST_" // used by our own tests; not settings
)

// configFile returns the file to read: the one that a flag or variable names, which must
// exist, or the first that exists in the usual places.
func configFile(sources Sources) (string, error) {
	if sources.File != "" {
		return sources.File, nil
	}
	if named := sources.Env[configVariable]; named != "" {
		return named, nil
	}
	for _, path := range []string{"luanette.toml", UserFile(sources.Env)} {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.Config, err, "look for configuration")
		}
	}
	return "", nil
}

// UserFile returns the path of the user's own configuration file.
func UserFile(env Environment) string { return filepath.Join(UserFolder(env), "luanette.toml") }

func UserFolder(env Environment) string {
	if dir := env["XDG_CONFIG_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	return filepath.Join(env["HOME"], ".config", "luanette")
}

func dataFolder(env Environment) string {
	if dir := env["XDG_DATA_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	if home := env["HOME"]; home != "" {
		return filepath.Join(home, ".local", "share", "luanette")
	}
	return "luanette-data"
}

// DefaultGCPercent is the default GOGC value. A server has a small heap and many
// short-lived allocations: collecting a quarter as often costs some megabytes and saves
// a tenth of its CPU time.
const DefaultGCPercent = 400
