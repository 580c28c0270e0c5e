// Package config reads, checks, shows and edits the configuration. It comes from
// luanette.toml, the environment and flags; each takes precedence over the one before.
package config

import (
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/gcpercent"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/registry"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Config holds all settings. Other packages do not read it; they get their own Options,
// which are made from it. Every scalar can be set in luanette.toml and by an environment
// variable (LUANETTE_ and the key in capitals, dots as underscores), some also by flags;
// the later source takes precedence. Settings tagged live take effect when the file
// changes, all others at the next start: see setting.go. Settings tagged trust are ignored in
// a file that is not trusted: see trusted.go.
type Config struct {
	Listen        string              `toml:"listen" trust:"remote" help:"address the HTTP server listens on"`
	Local         string              `toml:"local" words:"guest|owner|none" trust:"needed" help:"what requests from this machine may do without the owner's sign-in, as long as no key exists: guest (use tools, change nothing), owner (everything), none; docs/security.md"`
	LocalUsers    string              `toml:"local_users" words:"own|all" trust:"needed" help:"which users of this machine are served as guests: own (the user of the server, and root) or all"`
	Data          string              `toml:"data" help:"folder for all stored data"`
	Database      string              `toml:"database" trust:"remote" help:"where the store is: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE, which several servers may share" secret:"url"`
	Blobs         string              `toml:"blobs" help:"where contents are stored: folder (in the data folder), database, or the path of a folder that all servers share; empty means database with Postgres, otherwise folder"`
	Node          string              `toml:"node" help:"name of this process among those that share a Postgres database; it must be unique; the machine's name when empty"`
	Drain         Duration            `toml:"drain" help:"how long running calls and chat turns may take to finish when the server stops; jobs continue later"`
	ShutdownDelay Duration            `toml:"shutdown_delay" help:"how long a stopping server still serves requests while /ready reports 503, for load balancers that poll it"`
	GCPercent     int                 `toml:"gc_percent" min:"10" max:"10000" live:"yes" help:"how much the heap may grow before garbage is collected, in percent; GOGC and GOMEMLIMIT take precedence"`
	Log           Log                 `toml:"log"`
	Telemetry     Telemetry           `toml:"telemetry"`
	Registry      Registry            `toml:"registry"`
	HUD           HUD                 `toml:"hud"`
	Daemon        Daemon              `toml:"daemon"`
	MCP           MCP                 `toml:"mcp"`
	Scripts       Scripts             `toml:"scripts"`
	Jobs          Jobs                `toml:"jobs"`
	Backup        Backup              `toml:"backup"`
	Bridge        Bridge              `toml:"bridge"`
	Music         Music               `toml:"music"`
	Search        Search              `toml:"search"`
	Chat          Chat                `toml:"chat"`
	OAuth         OAuth               `toml:"oauth"`
	Keys          map[string]Key      `toml:"keys"`
	Starts        Starts              `toml:"starts"`
	Upstreams     map[string]Upstream `toml:"upstreams" live:"yes"`
	Secrets       map[string]Secret   `toml:"secrets" live:"yes"`
	Tools         map[string]Tool     `toml:"tools" live:"yes"`
	Sets          map[string]Set      `toml:"sets" live:"yes"`
	Sandbox       Sandbox             `toml:"sandbox"`

	Sessions       Sessions          `toml:"sessions"`
	Approve        string            `toml:"approve" words:"approvals" live:"yes" help:"which effects of scripts need approval: never, writes or all; docs/approvals.md"`
	ApproveOwn     bool              `toml:"approve_own" live:"yes" trust:"needed" help:"let people approve what they asked for themselves; never where a policy rule names a role"`
	ApproveWebhook string            `toml:"approve_webhook" trust:"needed" secret:"url" help:"URL that is told of each request for approval, signed by Standard Webhooks"`
	ApproveSecret  string            `toml:"approve_webhook_secret" trust:"needed" secret:"all" help:"secret of these signatures, whsec_ and base64, as a reference such as ${env:NAME}"`
	Mail           Mail              `toml:"mail"`
	ApproveExpire  Duration          `toml:"approve_expire" min:"1ms" help:"how long a request for approval stays open before it is denied"`
	Approvals      map[string]string `toml:"approvals" words:"approvals" live:"yes"`

	ReadOnly bool                `toml:"read_only" live:"yes" help:"refuse all tools that may change something; docs/policy.md"`
	Readers  []string            `toml:"read_only_tools" live:"yes" help:"tools that change nothing, as namespace.tool or namespace.*; for the namespaces named here, the readOnlyHint of tools is ignored"`
	Policy   []PolicyRule        `toml:"policy" live:"yes"`
	Accepts  map[string][]string `toml:"accepts" live:"yes"`
	Audit    Audit               `toml:"audit"`
	Activity Activity            `toml:"activity"`

	Trust string `toml:"trust" words:"trust" live:"yes" help:"default trust in tool servers: open uses their tools as they are, pin withholds each definition until it is approved; docs/trust.md"`

	TLSCert        string            `toml:"tls_cert" help:"certificate chain for HTTPS, as PEM; reloaded when it changes"`
	TLSKey         string            `toml:"tls_key" help:"the certificate's private key, as PEM"`
	CAFile         string            `toml:"ca_file" trust:"needed" help:"PEM file with certificate authorities that are trusted besides the system's: for upstreams, logins to them, identity providers, issuers, and commands with --server"`
	MaxConnections int               `toml:"max_connections" min:"1" help:"how many connections may be open; further ones wait"`
	TrustedProxies []string          `toml:"trusted_proxies" trust:"needed" help:"addresses and networks of reverse proxies whose X-Forwarded-For, X-Real-IP or Forwarded header names the client, for limits and the audit log; docs/security.md"`
	PublicURL      string            `toml:"public_url" trust:"needed" help:"address at which browsers and clients reach the server, such as https://hub.example, which may have a path; people sign in there; docs/people.md"`
	Issuers        map[string]Issuer `toml:"issuers"`
	Hooks          map[string]Hook   `toml:"hooks" live:"yes"`

	Identity map[string]Identity `toml:"identity"`
	Orgs     map[string]Org      `toml:"orgs" live:"yes"`
	Roles    map[string]Role     `toml:"roles"`
	People   People              `toml:"people"`
}

// Bridge configures the ZeroMQ endpoint that serves our tools to front ends.
type Bridge struct {
	Listen    string `toml:"listen" trust:"remote" help:"address that front ends connect to over ZeroMQ, such as tcp://127.0.0.1:5570; empty disables it"`
	Broadcast string `toml:"broadcast" trust:"remote" help:"address that events are published on; empty means the port after listen"`

	CurveSecret  string   `toml:"curve_secret" secret:"all" trust:"needed" help:"secret key with which the tools are served, as a reference such as ${file:PATH}; clients need its public key; also used by luanette hoot"`
	CurveClients []string `toml:"curve_clients" trust:"needed" help:"public keys of the clients that are allowed; empty allows every client that knows the public key of curve_secret"`
}

// Log configures the log, which goes to standard error.
type Log struct {
	Level  string `toml:"level" words:"debug|info|warn|error" live:"yes" help:"debug, info, warn or error"`
	Format string `toml:"format" words:"text|json" help:"text for people, json for programs"`
}

// Telemetry configures OpenTelemetry, in addition to the standard OTEL_* variables.
type Telemetry struct {
	OTLPEndpoint string `toml:"otlp_endpoint" trust:"needed" help:"collector to send traces, metrics and logs to (host:port or URL); empty sends nothing"`
	Metrics      string `toml:"metrics" words:"auto|on|off" trust:"needed" help:"whether /metrics shows numbers about the server to Prometheus: auto only while it listens on loopback, on, or off; it requires the scope metrics; docs/operate.md"`
	Arguments    bool   `toml:"arguments" trust:"needed" help:"whether arguments of calls are sent to the collector, without what looks secret; the server's own page shows them either way"`
	Environment  string `toml:"environment" alias:"ENVIRONMENT" help:"deployment environment, such as production; sent to the collector with all data"`
}

// Daemon configures the server that `luanette stdio --daemon` starts in the background.
type Daemon struct {
	Idle Duration `toml:"idle" help:"how long a server that luanette stdio --daemon started runs on without clients and jobs; 0 means until it is stopped"`
}

// Registry configures where luanette registry finds servers.
type Registry struct {
	URL string `toml:"url" live:"yes" help:"base URL of the MCP registry that luanette registry asks"`
}

// HUD configures how many recent events and traces the server keeps for dashboards.
type HUD struct {
	RecentEvents int `toml:"recent_events" help:"how many events are kept in memory, for pages that are opened later"`
	RecentTraces int `toml:"recent_traces" help:"how many traces are kept in memory; 0 keeps none"`

	AddPrograms bool `toml:"add_programs" trust:"needed" help:"let administrators add servers that are started as programs from the web page, if the server listens on a loopback address only; docs/hud.md"`
}

// MCP configures the MCP server and its upstreams.
type MCP struct {
	Import         []string `toml:"import" live:"yes" help:"files of other clients whose servers are used, such as .mcp.json or ~/.cursor/mcp.json; docs/clients.md"`
	AllowedOrigins []string `toml:"allowed_origins" trust:"needed" help:"web origins that may use the server, in addition to its own"`
	AllowedHosts   []string `toml:"allowed_hosts" trust:"needed" help:"hosts that mcp_connect may reach, in addition to loopback; * allows every public host; a server that other machines can reach allows loopback only with localhost"`
	SessionIdle    Duration `toml:"session_idle" help:"how long an idle client session is kept"`
	Menu           string   `toml:"menu" words:"menus" live:"yes" help:"which of our own tools clients see: code lists five that find and call all others, standard also those for jobs, sessions, scripts and connections that are used most, full all; exposed and pinned tools come on top; direct lists the tools of all servers instead; a client can ask for another with /mcp?menu=NAME; docs/code_mode.md"`
	ListScripts    int      `toml:"list_scripts" live:"yes" help:"up to how many published scripts the menus code and standard list; if there are more, they are found with search_tools"`
	ListApps       int      `toml:"list_apps" live:"yes" help:"up to how many tools with a page are listed to clients that show pages (MCP Apps); docs/apps.md"`
	DecideInApps   bool     `toml:"decide_in_apps" trust:"needed" help:"true lets people decide requests for approval in the App that their client shows, unless a rule names a role or several people; docs/apps.md"`
	Pinned         []string `toml:"pinned" live:"yes" help:"tools that are listed in every menu, as namespace.tool or the name of a script"`
	ResultKB       int      `toml:"result_kb" min:"1" help:"how much of a result of call_tool or execute_code is returned, in KiB; larger results are stored and returned as a handle"`
}

// Scripts configures the permissions and limits of scripts.
type Scripts struct {
	Folder    string   `toml:"folder" trust:"needed" help:"folder whose *.lua, *.js and *.ts files are published as tools; scripts in the data folder when empty"`
	Startup   string   `toml:"startup" trust:"needed" help:"script to run at start; startup.lua in the user's configuration folder when empty"`
	Cache     string   `toml:"cache" help:"cache folder of the JavaScript engine, which several data folders of one user may share; a folder in the data folder when empty"`
	Timeout   Duration `toml:"timeout" help:"how long one run may take"`
	MemoryMB  int      `toml:"memory_mb" help:"how much memory one run may hold, in MiB"`
	TotalMB   int      `toml:"total_memory_mb" help:"how much memory all runs may hold together, in MiB; further ones wait; 0 means half of what the process may use: the least of GOMEMLIMIT, the container's limit and the machine's memory"`
	Calls     int      `toml:"calls" help:"how many tool calls and other effects one run may make"`
	CodeTime  Duration `toml:"code_timeout" alias:"CODE_EXEC_TIMEOUT_MS" help:"how long one execute_code may take; when 0, 5s, or as long as its timeout_ms says, up to timeout"`
	CodeMB    int      `toml:"code_memory_mb" help:"how much memory one execute_code may hold, in MiB"`
	CodeCalls int      `toml:"code_calls" help:"how many tools one execute_code may call"`
	ChatCalls int      `toml:"code_calls_chat" help:"how many tools one execute_code may call in a chat"`
	Read      []string `toml:"read" trust:"needed" help:"folders scripts may read"`
	Write     []string `toml:"write" trust:"needed" help:"folders scripts may read and write"`
	Env       []string `toml:"env" trust:"needed" help:"environment variables scripts may see"`
	Commands  []string `toml:"commands" trust:"needed" help:"programs scripts may start with run_command, in the first write folder; git allows git_status, * allows every program; an empty list disables it"`
	HookTime  Duration `toml:"hook_timeout" help:"how long one hook of startup.lua may take"`
	HookFails string   `toml:"hook_errors" words:"pass|refuse" help:"what happens to a call whose hook fails: pass continues it unchanged, refuse rejects it"`
	HTTPHosts []string `toml:"http_hosts" trust:"needed" help:"hosts the http module may reach; an empty list disables it"`
	HTTPGet   string   `toml:"http_get" words:"read|write" help:"how a GET request is classified: read, which previews send, or write, which previews only plan and approve = writes covers"`
}

// defaults returns the configuration without any file, variable or flag.
func defaults(env Environment) Config {
	return Config{
		Chat:   chatDefaults(),
		Listen: "127.0.0.1:8081",
		Local:  string(owner.AsGuest), LocalUsers: LocalOwn,
		Data:      dataFolder(env),
		Drain:     Duration(10 * time.Second),
		GCPercent: gcpercent.Default,
		Log:       Log{Level: "info", Format: "text"},
		Telemetry: Telemetry{Metrics: MetricsAuto},
		Daemon:    Daemon{Idle: Duration(15 * time.Minute)},
		Registry:  Registry{URL: registry.DefaultURL},
		HUD:       HUD{RecentEvents: 4096, RecentTraces: 200, AddPrograms: true},
		MCP:       MCP{SessionIdle: Duration(30 * time.Minute), Menu: builtin.MenuCode, ListScripts: builtin.DefaultScripts, ListApps: builtin.DefaultApps, ResultKB: builtin.DefaultShown >> 10},
		Scripts: Scripts{
			Timeout: Duration(30 * time.Second), MemoryMB: 128, Calls: 1000,
			CodeMB: 64, CodeCalls: 100, ChatCalls: 10,
			HookTime: Duration(100 * time.Millisecond), HookFails: "pass", HTTPGet: "read",
		},
		MaxConnections: 10_000,
		Starts:         Starts{Install: packages.Auto, Idle: Duration(10 * time.Minute), Timeout: Duration(upstream.DefaultStartTimeout)},
		Jobs:           defaultJobs(),
		Backup:         Backup{Keep: 24},
		Music:          defaultMusic(),
		Search:         defaultSearch(),
		Sessions:       defaultSessions(),
		Approve:        "never", ApproveExpire: Duration(7 * 24 * time.Hour),
		Trust: string(pin.Open), Audit: defaultAudit(), Activity: defaultActivity(),
	}
}

// Starts configures how programs are started as upstreams.
type Starts struct {
	Parallel int      `toml:"parallel" help:"how many programs may start as upstreams at the same time; 0 means two per processor; those that a call waits for come first"`
	Install  string   `toml:"install" words:"auto|off" live:"yes" help:"auto installs the packages that npx would run, and starts their programs directly; off runs npx itself; install of an upstream says otherwise"`
	Installs int      `toml:"installs" help:"how many packages may be installed at the same time; 0 means one per processor"`
	Idle     Duration `toml:"idle" help:"how long the program of an installed package that starts within 2 s is not called until it sleeps; the next call starts it; 0s: never; start and idle of an upstream say otherwise"`
	Timeout  Duration `toml:"timeout" help:"how long a program may take until it is connected, unless start_timeout of its upstream says otherwise"`
}
