package upstream

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Transports, for Spec.Transport. Other values name a Dialer of Options.
const (
	Auto  = "auto"  // a command is stdio; a URL is http, or else sse
	HTTP  = "http"  // Streamable HTTP, either era
	SSE   = "sse"   // the HTTP+SSE of revision 2024-11-05
	Stdio = "stdio" // a child process

	ZMQ    = "zmq+tcp" // a backend as in docs/backends.md; also the scheme of its URL
	ZMQIPC = "zmq+ipc" // the same over a Unix socket

	Mock = "mock" // a recording, in place of the server; of specs with Spec.Mock

	OpenAPI = api.OpenAPI // no MCP servers: APIs, of specs with Spec.API
	GraphQL = api.GraphQL
	GRPC    = api.GRPC
)

// Protocol eras, for Spec.Protocol; Auto detects the era.
const (
	ProtocolLegacy = "legacy"
	ProtocolModern = "modern"
)

// When a server is started, for Spec.Start.
const (
	Eager = "eager"
	Lazy  = "lazy" // on first use; its tools come from the cache, or it is started once to list them
)

// Defaults of the fields of Spec.
const (
	DefaultTimeout = 60 * time.Second
	DefaultMaxTime = 30 * time.Minute
	DefaultWait    = 2 * time.Second

	DefaultStartTimeout = 2 * time.Minute // of a command
)

// Spec is one connection to make: the settings of its server, with their variables replaced,
// and who it is for. It is not changed once a Manager has it.
type Spec struct {
	// Name is the namespace of its tools: a letter, then letters, digits, _ or -.
	Name string
	Settings

	// Credentials are secrets for which the process gets placeholders.
	Credentials []profile.Credential
	// Profile is what the process may reach.
	Profile profile.Profile

	// Owner is the ID of the principal whose connection it is; empty for the connection
	// that all share, which lists the tools. Person is who that is. Both are never
	// configured.
	Owner    string
	Person   Person
	personal *personalValues // of the person, during an attempt to connect

	installed *installed // starts in place of the command; during an attempt to connect

	// Trusted says that the spec comes from the configuration, so that
	// Options.DialControl does not apply. Specs of a model or a script are
	// not trusted.
	Trusted bool
	// Guarded says that an organisation has added it, so that Options.GuardedControl
	// applies instead of DialControl.
	Guarded bool
}

// Validate reports what is wrong with the spec, as a fault with a hint.
func (s Spec) Validate() error {
	name, org := principal.SplitNamespace(s.Name)
	if !validName().MatchString(name) || strings.Contains(s.Name, "@") && principal.CheckOrg(org) != nil {
		return fault.New(fault.InvalidParams, "upstream name %q", s.Name).
			WithHint("use a letter, then up to 63 letters, digits, _ or -, for example \"github\"")
	}
	if slices.Contains(tool.ScriptFunctions, name) {
		return fault.New(fault.InvalidParams, "upstream name %q: in scripts, mcp.%s is a function", s.Name, s.Name).WithHint("choose another name")
	}
	for _, header := range slices.Sorted(maps.Keys(s.Headers)) {
		if !s.Trusted && secret.IsReference(s.Headers[header]) {
			return fault.New(fault.InvalidParams, "upstream %s: the header %s refers to a secret, and only the configuration may", s.Name, header).
				WithHint("add the upstream to luanette.toml, or give the value itself")
		}
	}
	if err := s.problem(); err != nil {
		return fault.Wrap(fault.InvalidParams, err, "upstream %s", s.Name).
			WithHint("give either a url (http, https, zmq+tcp) or a command; transport is auto, http, sse, stdio or zmq+tcp; protocol is auto, legacy or modern")
	}
	return nil
}

func (s Spec) problem() error {
	if err := cmp.Or(s.Faults.Validate(), s.loginProblem()); err != nil {
		return err
	}
	switch {
	case s.Mock != "":
		return s.mockProblem()
	case !s.API.IsZero():
		return s.apiProblem()
	case s.URL == "" && s.Command == "":
		return fmt.Errorf("neither url nor command")
	case s.URL != "" && s.Command != "":
		return fmt.Errorf("both url and command")
	case s.Command != "" && s.transport() != Stdio:
		return fmt.Errorf("a command cannot be reached by transport %q", s.Transport)
	case s.URL != "" && s.transport() == Stdio:
		return fmt.Errorf("a url cannot be reached by transport stdio")
	case api.IsKind(s.Transport) && !api.IsURL(s.URL):
		return fmt.Errorf("the url of an API is not http or https")
	case !slices.Contains([]string{"", Auto, ProtocolLegacy, ProtocolModern}, s.Protocol):
		return fmt.Errorf("protocol %q", s.Protocol)
	case packages.CheckInstall(s.Install) != nil:
		return fmt.Errorf("install %q is neither auto nor off", s.Install)
	case !slices.Contains([]string{"", Eager, Lazy}, s.Start):
		return fmt.Errorf("start %q", s.Start)
	case s.Transport == SSE && s.Protocol == ProtocolModern:
		return fmt.Errorf("transport sse exists only in the legacy protocol")
	case slices.ContainsFunc(s.Roots, func(root string) bool {
		return root == "" || strings.Contains(root, "://") && !strings.HasPrefix(root, "file://")
	}):
		return fmt.Errorf("roots must be folders or file:// URIs: %q", s.Roots)
	}
	if err := s.zmqProblem(); err != nil {
		return err
	}
	if s.URL == "" {
		return patternProblem(s.InheritEnv)
	}
	return urlProblem(s.URL)
}

func (s Spec) mockProblem() error {
	switch {
	case s.URL != "" || s.Command != "":
		return fmt.Errorf("mock besides url or command")
	case s.Record != "":
		return fmt.Errorf("both mock and record: what a recording answers is recorded already")
	}
	return nil
}

func (s Spec) apiProblem() error {
	if s.URL != "" || s.Command != "" || s.Transport != "" {
		return fmt.Errorf("%s besides url, command or transport", s.API.Kind)
	}
	return s.API.Validate()
}

func patternProblem(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" || strings.Contains(p, "=") {
			return fmt.Errorf("inherit_env: %q is not the name of a variable, in which * stands for any text", p)
		}
	}
	return nil
}

// zmqProblem reports settings that only ZeroMQ backends have, or do not have.
func (s Spec) zmqProblem() error {
	zmq := isZMQ(s.transport())
	switch {
	case zmq && len(s.Headers)+len(s.BearerEnv) > 0:
		return fmt.Errorf("headers and bearer tokens cannot be sent over %s", s.transport())
	case !zmq && s.Curve != Curve{}:
		return fmt.Errorf("CURVE keys are for backends with a url zmq+tcp or zmq+ipc")
	case s.Curve.Secret != "" && s.Curve.Server == "":
		return fmt.Errorf("the CURVE public key of the backend is missing")
	}
	return nil
}

func urlProblem(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("url is not valid") // the parse error would quote secrets in it
	case u.User != nil:
		return fmt.Errorf("url carries a user or password: use headers or bearer_env")
	case u.Scheme == "":
		return fmt.Errorf("url %q has no scheme, such as https://", u.Redacted())
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host == "":
		return fmt.Errorf("url %q names no host", u.Redacted())
	case u.Scheme == ZMQ && (u.Hostname() == "" || u.Port() == "" || u.Path+u.RawQuery+u.Fragment != ""):
		return fmt.Errorf("url %q is not zmq+tcp://HOST:PORT", u.Redacted())
	}
	return nil
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// transport resolves Auto as far as possible from the spec alone.
func (s Spec) transport() string {
	switch {
	case s.Mock != "":
		return Mock
	case !s.API.IsZero():
		return s.API.Kind
	case s.Transport != "" && s.Transport != Auto:
		return s.Transport
	case s.Command != "":
		return Stdio
	}
	if scheme, _, ok := strings.Cut(s.URL, ":"); ok && scheme != "http" && scheme != "https" {
		return scheme
	}
	return Auto
}

func (s Spec) lazy() bool { return s.Start == Lazy || s.Personal() }

func (s Spec) timeout() time.Duration { return positive(time.Duration(s.Timeout), DefaultTimeout) }

func (s Spec) maxTime() time.Duration {
	return max(positive(time.Duration(s.MaxTime), DefaultMaxTime), s.timeout())
}

func (s Spec) wait() time.Duration {
	if s.Wait == 0 {
		return DefaultWait
	}
	return max(time.Duration(s.Wait), 0)
}

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// Target is the address of the server for display: the URL without its query,
// which may contain secrets, or the command with its arguments except those that
// look secret.
func (s Spec) Target() string {
	switch {
	case s.Command != "":
		return redact.Command(s.Command, s.Args)
	case s.Mock != "":
		return "recording " + s.Mock
	case !s.API.IsZero():
		return s.API.Kind + " " + s.API.Target()
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return "?"
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.Fragment = ""
	return u.Redacted()
}

// String is the name and the target, without secrets.
func (s Spec) String() string { return s.Name + " (" + s.Target() + ")" }

// LogValue is String, for logs.
func (s Spec) LogValue() slog.Value { return slog.StringValue(s.String()) }

// sameConnection reports whether other can use the same connection: only settings
// that matter between calls differ.
func (s Spec) sameConnection(other Spec) bool {
	return s.same(other) && s.lazy() == other.lazy() && tagged.Same(s.explicit(), other.explicit(), "live")
}

// sameServer reports whether both specs are about the same server, whatever their
// credentials are.
func (s Spec) sameServer(other Spec) bool {
	return identity(s) == identity(other) && tagged.Same(s.API, other.API, "")
}

// same reports whether both specs are alike, whatever their settings are.
func (s Spec) same(other Spec) bool {
	return s.Name == other.Name && s.Owner == other.Owner && s.Person == other.Person && s.Trusted == other.Trusted && s.Guarded == other.Guarded &&
		s.Profile.Equal(other.Profile) && slices.EqualFunc(s.Credentials, other.Credentials, profile.Credential.Equal)
}

// explicit returns the settings with their defaults written out.
func (s Spec) explicit() Settings {
	all := s.Settings
	all.Transport, all.Protocol = s.transport(), cmp.Or(s.Protocol, Auto)
	if s.Command == "" { // without a word for it, a program may sleep
		all.Start = cmp.Or(s.Start, Eager)
	}
	all.Timeout, all.MaxTime, all.Wait = duration.Duration(s.timeout()), duration.Duration(s.maxTime()), duration.Duration(s.wait())
	return all
}

// Equal reports whether nothing differs.
func (s Spec) Equal(other Spec) bool {
	return s.same(other) && tagged.Same(s.explicit(), other.explicit(), "")
}

// simulated says what is not real about the server of the spec, or is kept of it.
func (s Spec) simulated() (notes []string) {
	if s.Mock != "" {
		notes = append(notes, "it is a recording, not the real server")
	}
	if s.Faults.Any() {
		notes = append(notes, "faults are injected: "+s.Faults.String())
	}
	if s.Record != "" {
		notes = append(notes, "its answers are recorded in "+s.Record)
	}
	return notes
}

// restricts reports whether the spec hides any tools.
func (s Spec) restricts() bool {
	return len(s.AllowedTools)+len(s.DisabledTools) > 0 || s.ReadOnly
}

// permits reports whether the spec allows a tool of that name.
func (s Spec) permits(name string) bool {
	if slices.Contains(s.DisabledTools, name) {
		return false
	}
	return len(s.AllowedTools) == 0 || slices.Contains(s.AllowedTools, name)
}

// allows reports whether the spec allows a tool.
func (s *Spec) allows(name string, hints tool.Hints) bool {
	return s.permits(name) && (!s.ReadOnly || hints.ReadOnly)
}

// allowed is a list without the tools that the spec forbids.
func (s *Spec) allowed(tools []tool.Info) []tool.Info {
	if !s.restricts() {
		return tools
	}
	var allowed []tool.Info
	for _, info := range tools {
		if s.allows(info.Name, info.Hints) {
			allowed = append(allowed, info)
		}
	}
	return allowed
}

// unknownNames finds names in the spec that none of the server's tools has.
func (s *Spec) unknownNames(tools []tool.Info) []string {
	if len(s.AllowedTools)+len(s.DisabledTools) == 0 || len(tools) == 0 {
		return nil
	}
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	var found []string
	for _, setting := range []struct {
		name string
		list []string
	}{{"allowed_tools", s.AllowedTools}, {"disabled_tools", s.DisabledTools}} {
		for _, name := range setting.list {
			if slices.Contains(names, name) {
				continue
			}
			problem := fmt.Sprintf("%s: it has no tool %q", setting.name, name)
			if near := suggest.Names(name, names, 1); len(near) > 0 {
				problem += fmt.Sprintf("; did you mean %s?", near[0])
			}
			found = append(found, problem)
		}
	}
	return found
}
