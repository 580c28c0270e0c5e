package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/faultinject"
)

// Settings are what an owner says about one tool server: a URL, a command to run, or an
// API. They are a table of the configuration, what is stored of a server that was added
// while the program runs, and what the page and the API show and change. The tags of a field
// say everything that is done with it:
//
//	toml    its key, in files, stored JSON and requests
//	help    its line in docs/configuration.md and on the page
//	secret  how it is hidden where settings are shown: all of it, the values of a table, the
//	        query of a URL, or a URL's password besides (address)
//	vars    that ${NAME} in it is replaced; secret: it may also refer to secrets, which are
//	        found when they are used, and to values of the person for whom a call is made
//	file    that a relative path is looked up beside the configuration file
//	live    that a change needs no new connection
//	added   that a server that was added while the program runs has it
//	trust   that it is part of what somebody trusts who trusts the upstream of a file
type Settings struct {
	URL           string            `toml:"url,omitempty" secret:"address" vars:"plain" trust:"content" added:"yes" help:"URL of a running server; without a path it is tried as given, then with /mcp; or zmq+tcp://HOST:PORT of a backend"`
	Command       string            `toml:"command,omitempty" vars:"plain" trust:"content" help:"program to start; it is used over its standard input and output"`
	OpenAPI       string            `toml:"openapi,omitempty" secret:"query" file:"yes" help:"file or URL of the OpenAPI or Swagger document of an API, whose operations become tools; docs/apis.md"`
	GraphQL       string            `toml:"graphql,omitempty" secret:"query" help:"URL of a GraphQL service, whose queries and mutations become tools; docs/graphql.md"`
	GRPC          string            `toml:"grpc,omitempty" help:"HOST:PORT of a gRPC service, whose methods become tools; https:// or http:// in front chooses TLS or none; docs/grpc.md"`
	Mock          string            `toml:"mock,omitempty" file:"yes" help:"file of luanette record that answers in place of the server, which is not connected; relative to this file; docs/testing.md"`
	Record        string            `toml:"record,omitempty" file:"yes" help:"file to which the server's answers are added, without secrets, for mock"`
	Args          []string          `toml:"args,omitempty" vars:"plain" trust:"content" help:"the program's arguments"`
	Env           map[string]string `toml:"env,omitempty" secret:"values" vars:"secret" trust:"content" help:"environment variables for the program, in addition to those it inherits; docs/upstreams.md lists them"`
	EnvFile       string            `toml:"env_file,omitempty" vars:"plain" trust:"content" help:"file of NAME=value lines with more variables, read at every start"`
	InheritEnv    []string          `toml:"inherit_env,omitempty" help:"further variables of the server's environment that the program inherits; * stands for any text, as in GIT_*"`
	CleanEnv      bool              `toml:"clean_env,omitempty" help:"true lets the program inherit only what inherit_env names"`
	Cwd           string            `toml:"cwd,omitempty" vars:"plain" trust:"content" help:"folder the program runs in"`
	Transport     string            `toml:"transport,omitempty" added:"yes" help:"auto, http, sse, stdio or zmq+tcp"`
	Protocol      string            `toml:"protocol,omitempty" added:"yes" help:"auto, legacy (with initialize) or modern (2026-07-28)"`
	Roots         []string          `toml:"roots,omitempty" live:"yes" vars:"plain" help:"folders or file:// URIs that the server gets as roots where no client gives its own"`
	Headers       map[string]string `toml:"headers,omitempty" secret:"values" vars:"secret" trust:"content" added:"yes" help:"HTTP headers sent with every request"`
	BearerEnv     string            `toml:"bearer_env,omitempty" trust:"content" help:"variable that holds a bearer token"`
	CAFile        string            `toml:"ca_file,omitempty" vars:"plain" help:"PEM file with the certificate authority of the server and of its logins, besides the system's"`
	Timeout       duration.Duration `toml:"timeout,omitempty" live:"yes" added:"yes" help:"how long one call may take without progress (60s)"`
	MaxTime       duration.Duration `toml:"max_time,omitempty" live:"yes" help:"how long one call may take in total (30m)"`
	Wait          duration.Duration `toml:"wait,omitempty" live:"yes" help:"how long a call waits for a lost connection to be restored (2s); it waits longer for one that is starting"`
	StartTimeout  duration.Duration `toml:"start_timeout,omitempty" live:"yes" help:"how long it may take until it is connected (2m for a program, 30s for a URL)"`
	Start         string            `toml:"start,omitempty" help:"eager: always running, or lazy: started on first use; without it the programs of installed packages that start quickly sleep when they are not used, and everything else is eager"`
	Idle          duration.Duration `toml:"idle,omitempty" live:"yes" help:"stop a program that sleeps after this long without a call"`
	Expose        Expose            `toml:"expose,omitempty" live:"yes" added:"yes" help:"which of its tools our clients see directly: none, all, or a list of names"`
	Prefixes      []string          `toml:"prefixes,omitempty" live:"yes" help:"prefixes of tool names; tools with such a prefix are listed under their own names, without the namespace"`
	AllowedTools  []string          `toml:"allowed_tools,omitempty" live:"yes" added:"yes" help:"only these tools exist"`
	DisabledTools []string          `toml:"disabled_tools,omitempty" live:"yes" added:"yes" help:"these tools do not exist"`
	ReadOnly      bool              `toml:"read_only,omitempty" live:"yes" added:"yes" help:"only tools with readOnlyHint exist"`
	Prompts       Offer             `toml:"prompts,omitempty" live:"yes" added:"yes" help:"which of its prompts exist: all, none, or a list of their names, in which * stands for any text"`
	Resources     Offer             `toml:"resources,omitempty" live:"yes" added:"yes" help:"which of its resources exist: all, none, or a list of URIs, in which * stands for any text"`
	DynamicSkills bool              `toml:"dynamic_skills,omitempty" live:"yes" help:"true also offers those of its skills whose files it makes anew each time, which cannot be checked; docs/skills.md"`
	Aliases       map[string]string `toml:"aliases,omitempty" live:"yes" added:"yes" help:"additional names of its tools: alias = the tool's own name"`
	Priority      int               `toml:"priority,omitempty" live:"yes" help:"priority of its tools: higher ones are listed and found first"`
	Ranks         map[string]int    `toml:"priorities,omitempty" live:"yes" help:"priority of single tools, added to that of the server"`
	OAuth         OAuth             `toml:"oauth,omitempty" trust:"content" help:"how to log in to it; docs/oauth.md"`
	Login         string            `toml:"login,omitempty" help:"whose account calls use: shared (one connection for everybody), each (everybody logs in, and has a connection or program of their own), exchange or id-jag (the same without a login, by the company's provider); docs/upstreams.md"`
	People        int               `toml:"people,omitempty" live:"yes" help:"how many people may be connected at a time if login is not shared (50)"`
	Approve       string            `toml:"approve,omitempty" live:"yes" help:"which of its tools need approval when scripts call them: never, writes or all"`
	Trust         string            `toml:"trust,omitempty" live:"yes" help:"open uses its tools as they are, pin withholds each definition until it is approved"`
	Labels        []string          `toml:"labels,omitempty" live:"yes" help:"labels of the data read from it; such data may only flow where they are accepted; docs/policy.md"`
	Accepts       []string          `toml:"accepts,omitempty" live:"yes" help:"labels that may be sent to it"`
	Enabled       *bool             `toml:"enabled,omitempty" live:"yes" help:"false disables it"`
	Org           Names             `toml:"org,omitempty" live:"yes" help:"the organisation, or a list of organisations, whose members alone see it; each has a connection of its own; docs/organisations.md"`

	// Revert is by the tool's own name.
	Revert map[string]Revert `toml:"revert,omitempty" live:"yes" help:"how calls of its tools are undone: tool = { tool = \"other\", arguments = { id = \"$result/id\" } }; docs/jobs.md"`

	API    api.Settings       `toml:"api,omitempty" help:"how an API is called; docs/apis.md"`
	Curve  Curve              `toml:"curve,omitempty,inline" help:"keys of a ZeroMQ backend that uses CURVE; docs/backends.md"`
	Faults faultinject.Faults `toml:"faults,omitempty,inline" help:"faults that are injected into calls, for tests; docs/testing.md"`

	Install        string   `toml:"install,omitempty" help:"auto installs the package that npx would run, and starts its program directly; off runs npx itself; the default is starts.install; docs/upstreams.md"`
	InstallScripts []string `toml:"install_scripts,omitempty" trust:"scripts" help:"packages whose install scripts may run, in a sandbox, such as sqlite3"`

	Concurrent int `toml:"concurrent,omitempty" live:"yes" help:"how many calls of each node may run at a time (64); further calls wait, callers in turn"`
	Rate       int `toml:"rate,omitempty" live:"yes" help:"how many calls a minute each node sends; further calls are refused"`

	Hub       bool              `toml:"hub,omitempty" live:"yes" help:"true lets its program use this server while no key exists, with rights of its own; others are refused"`
	Sandbox   string            `toml:"sandbox,omitempty" trust:"sandbox" help:"what the program may reach: off, open (reads all but credentials, writes its own folders), strict (sees its own files only), docker:IMAGE or podman:IMAGE; docs/sandbox.md"`
	Read      []string          `toml:"read,omitempty" trust:"sandbox" help:"folders and files that the sandboxed program may read"`
	Write     []string          `toml:"write,omitempty" trust:"sandbox" help:"folders that the sandboxed program may write to"`
	Network   []string          `toml:"network,omitempty" trust:"sandbox" help:"hosts that a program in a strict sandbox may connect to, such as api.github.com:443 or *.example.org:443"`
	Require   *bool             `toml:"require,omitempty" help:"true refuses the start where the kernel cannot do all of the sandbox"`
	Exec      bool              `toml:"exec,omitempty" trust:"sandbox" help:"true lets a program in a strict sandbox execute files that it wrote, as npx and uvx need it"`
	Sockets   bool              `toml:"sockets,omitempty" trust:"sandbox" help:"true lets a program in a strict sandbox use Unix sockets, as browsers need it"`
	MemoryMB  int               `toml:"memory_mb,omitempty" help:"most memory of all processes of the sandboxed program, in MiB (8192, or half of the computer's)"`
	DiskMB    int               `toml:"disk_mb,omitempty" help:"most size of the private folders of the sandboxed program, in MiB (10240)"`
	CPUs      float64           `toml:"cpus,omitempty" help:"how many processors the sandboxed program may use, such as 0.5; needs a delegated cgroup"`
	Processes int               `toml:"processes,omitempty" help:"how many processes and threads the sandboxed program may have (512)"`
	OpenFiles int               `toml:"open_files,omitempty" help:"how many files each process of the sandboxed program may have open (4096)"`
	CPUTime   duration.Duration `toml:"cpu_time,omitempty" help:"most processor time of each process of the sandboxed program"`
}

// WithAPI returns the settings with the API that they name.
func (s Settings) WithAPI() Settings {
	for _, named := range []struct{ kind, source string }{{api.OpenAPI, s.OpenAPI}, {api.GraphQL, s.GraphQL}, {api.GRPC, s.GRPC}} {
		if named.source != "" && s.API.IsZero() {
			s.API.Kind, s.API.Source = named.kind, named.source
		}
	}
	return s
}

// OAuth configures the login to one upstream. All fields may be empty.
type OAuth struct {
	ClientID     string   `toml:"client_id,omitempty" help:"client id at the authorization server, if it does not register clients automatically"`
	ClientSecret string   `toml:"client_secret,omitempty" secret:"all" help:"client secret, as a reference such as ${env:NAME}"`
	ClientKey    string   `toml:"client_key,omitempty" secret:"all" help:"private key that signs client assertions, instead of a secret (PEM, PKCS #8), as a reference"`
	Scopes       []string `toml:"scopes,omitempty" help:"scopes to request, instead of those that the upstream asks for"`
	Issuer       string   `toml:"issuer,omitempty" help:"the only authorization server that may be used"`
	Grant        string   `toml:"grant,omitempty" help:"code (a person consents in a browser), device, or credentials (no person is needed: client_id and its secret or key suffice); on-behalf-of for login = \"exchange\" at Microsoft Entra"`
	Audience     string   `toml:"audience,omitempty" help:"for login = \"exchange\": the audience of the token, instead of the upstream's address as resource"`
	Subject      string   `toml:"subject,omitempty" help:"for login = \"exchange\" and \"id-jag\": which token of the person's sign-in is exchanged: access_token, id_token or refresh_token"`
	RedirectPort int      `toml:"redirect_port,omitempty" help:"port that luanette upstream login listens on for the browser; 0 means any"`

	TokenURL string `toml:"-" json:"-"` // where tokens are, if the description of an API says it; never configured
}

// Curve has the keys of a ZeroMQ backend that uses CURVE, in Z85. An empty public key means
// no security, an empty secret key a new one for each connection.
type Curve struct {
	Server string `toml:"server,omitempty" help:"the backend's public key"`
	Secret string `toml:"secret,omitempty" secret:"all" help:"this server's secret key, as a reference such as ${file:PATH}; needed if the backend allows only known clients"`
}

// Revert says how calls of a tool are undone, by another tool of the same upstream.
type Revert struct {
	Tool      string         `toml:"tool" help:"the tool that undoes a call"`
	Arguments map[string]any `toml:"arguments,omitempty" help:"its arguments; $arguments/… and $result/… stand for parts of the call"`
}

// Names is a list of names, or one name.
type Names []string

// UnmarshalText reads one name; a list is read item by item.
func (n *Names) UnmarshalText(text []byte) error {
	*n = Names{string(text)}
	return nil
}

// ExposeAll in Settings.Expose exposes all tools.
const ExposeAll = "*"

// Expose says which tools of an upstream MCP clients see: the list of their names, or
// ExposeAll. It is written as "all", "none" or the list.
type Expose []string

// UnmarshalText reads "all" and "none"; a list is read item by item.
func (e *Expose) UnmarshalText(text []byte) error {
	switch string(text) {
	case "all":
		*e = Expose{ExposeAll}
	case "none", "":
		*e = nil
	default:
		return fmt.Errorf("expose: %q is neither none nor all", text)
	}
	return nil
}

// MarshalTOML writes what MarshalJSON does, with a space between names: a quote within a name
// is escaped.
func (e Expose) MarshalTOML() ([]byte, error) {
	text, err := e.MarshalJSON()
	return bytes.ReplaceAll(text, []byte(`","`), []byte(`", "`)), err
}

// MarshalJSON writes "all", "none" or a list of names.
func (e Expose) MarshalJSON() ([]byte, error) {
	switch {
	case slices.Contains(e, ExposeAll):
		return []byte(`"all"`), nil
	case len(e) == 0:
		return []byte(`"none"`), nil
	}
	return json.Marshal([]string(e))
}

// UnmarshalJSON reads "all", "none" or a list of names.
func (e *Expose) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) > 1 && text[0] == '"' && e.UnmarshalText(text[1:len(text)-1]) == nil {
		return nil
	}
	var names []string
	if json.Unmarshal(text, &names) != nil {
		return fault.New(fault.InvalidParams, "expose: %s is not valid", text).WithHint("use \"none\", \"all\" or a list of tool names")
	}
	*e = names
	return nil
}
