// Package servertools are the tools and resources about the connected servers.
package servertools

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// Upstreams manages the connected tool servers.
type Upstreams interface {
	// Add adds an upstream and returns at once; the connection is made in the background. Adding
	// the same again changes nothing; another URL under the same name reconnects.
	Add(ctx context.Context, namespace string, s upstream.Settings) error
	// Remove reports whether there was one.
	Remove(ctx context.Context, namespace string) (removed bool, err error)
	// List is sorted by name.
	List() []upstreamset.Status
	Status(namespace string) (status upstreamset.Status, ok bool)
	// Await returns when namespace is connected, is removed or needs a login, or when
	// ctx is done.
	Await(ctx context.Context, namespace string)
	// Refresh fetches the list of tools again and returns it.
	Refresh(ctx context.Context, namespace string) ([]tool.Info, error)
	// Problems are about no single one, such as a file that cannot be imported.
	Problems() []string
}

// Counts returns the call statistics of a namespace.
type Counts interface {
	Stats(ctx context.Context, namespace string) (catalog.Stats, bool)
}

// Tools makes the tools that manage upstreams. The policy decides which URLs may be
// connected to; nil allows loopback only. Those who manage an organisation connect and
// disconnect what orgs allows.
func Tools(u Upstreams, counts Counts, policy Policy, orgs *upstreamset.Orgs) []toolset.Tool {
	if policy == nil {
		policy = AllowHosts(nil)
	}
	m := mcpTools{u, counts, policy, orgs}
	return []toolset.Tool{
		toolset.Checked(toolset.Define(texts, "mcp_connect", tool.Hints{NonDestructive: true, Idempotent: true}, m.connect), m.refusesConnection),
		toolset.Define(texts, "mcp_disconnect", tool.Hints{Idempotent: true, ClosedWorld: true}, m.disconnect),
		toolset.Define(texts, "mcp_list_upstreams", tool.Hints{ReadOnly: true, ClosedWorld: true}, m.list),
		toolset.Define(texts, "mcp_status", tool.Hints{ReadOnly: true, ClosedWorld: true}, m.status),
		toolset.Define(texts, "tools_refresh", tool.Hints{NonDestructive: true, Idempotent: true}, m.refresh),
	}
}

type mcpTools struct {
	upstreams Upstreams
	counts    Counts
	policy    Policy
	orgs      *upstreamset.Orgs
}

// defaultWait is how long mcp_connect waits for the connection by default.
const defaultWait = 2 * time.Second

type connectIn struct {
	Namespace string            `json:"namespace" jsonschema:"name for the server: a letter, then letters, digits, _ or -"`
	URL       string            `json:"url" jsonschema:"http or https URL of the MCP server, or zmq+tcp://HOST:PORT of a backend" min:"1" max:"2048"`
	Transport string            `json:"transport,omitempty" jsonschema:"how to reach it; auto tries http, then sse; openapi: the url is that of an API's OpenAPI document; graphql: of a GraphQL service; grpc: of a gRPC service, https with TLS, http without" enum:"auto,http,sse,openapi,graphql,grpc"`
	Protocol  string            `json:"protocol,omitempty" jsonschema:"protocol era; auto detects it" enum:"auto,legacy,modern"`
	Headers   map[string]string `json:"headers,omitempty" jsonschema:"HTTP headers to send unchanged with every request"`
	WaitMS    *int              `json:"wait_ms,omitempty" jsonschema:"how long to wait for the connection in milliseconds (default 2000); connecting continues in the background" min:"0" max:"30000"`
}

var namespacePattern = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

func checkNamespace(namespace string) error {
	name, org := principal.SplitNamespace(namespace)
	if !namespacePattern().MatchString(name) || strings.Contains(namespace, "@") && principal.CheckOrg(org) != nil {
		return fault.New(fault.InvalidParams, "namespace %q is not a valid name", namespace).
			WithHint("use a letter, then at most 63 letters, digits, _ or -")
	}
	return nil
}

func (m mcpTools) refusesConnection(ctx context.Context, _ tool.Call, in connectIn) error {
	err := checkNamespace(in.Namespace)
	if policy := m.policy; err == nil {
		if !principal.Of(ctx).ConnectsForAll() {
			policy = m.orgs.CheckURL
			_, _, err = m.managedOrg(ctx, in.Namespace)
		}
		if err == nil {
			_, err = Target(ctx, policy, in.URL)
		}
	}
	return err
}

func (m mcpTools) connect(ctx context.Context, _ tool.Call, in connectIn) (UpstreamView, error) {
	if err := checkNamespace(in.Namespace); err != nil {
		return UpstreamView{}, err
	}
	s := upstream.Settings{URL: in.URL, Headers: in.Headers}
	if in.Transport != "auto" {
		s.Transport = in.Transport
	}
	if in.Protocol != "auto" {
		s.Protocol = in.Protocol
	}
	space, err := m.add(ctx, in.Namespace, s)
	if err != nil {
		return UpstreamView{}, err
	}
	wait := defaultWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	waiting, stop := context.WithTimeout(ctx, wait)
	defer stop()
	m.upstreams.Await(waiting, space)
	return m.view(ctx, space)
}

// add adds an upstream and returns its namespace: for an administrator the one that was
// asked for, for those who manage an organisation one of that.
func (m mcpTools) add(ctx context.Context, namespace string, s upstream.Settings) (space string, err error) {
	if !principal.Of(ctx).ConnectsForAll() {
		return m.addInOrg(ctx, namespace, s)
	}
	if s.URL, err = Target(ctx, m.policy, s.URL); err != nil {
		return "", err
	}
	if known, ok := m.upstreams.Status(namespace); ok && known.Fixed && known.Endpoint != s.URL {
		return "", fault.New(fault.Conflict, "namespace %s is defined in the configuration", namespace).
			WithHint("choose another namespace for %s", s.URL)
	}
	return namespace, m.upstreams.Add(ctx, namespace, s)
}

// Target checks the URL of a server to connect to and returns it in normal form.
func Target(ctx context.Context, policy Policy, raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return "", fault.New(fault.InvalidParams, "url %q is not a URL", raw)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "zmq+tcp" || u.Hostname() == "":
		return "", fault.New(fault.InvalidParams, "url %q does not begin with http://, https:// or zmq+tcp:// and a host", raw).
			WithHint("servers that are started by a command are added in luanette.toml or on the command line, not here")
	case u.User != nil:
		return "", fault.New(fault.InvalidParams, "url contains a user name or password").
			WithHint("send credentials in headers")
	}
	u.Fragment = ""
	if err := policy(ctx, u); err != nil {
		return "", err
	}
	return u.String(), nil
}

type namespaceIn struct {
	Namespace string `json:"namespace" jsonschema:"name of the server, as mcp_list_upstreams shows it" min:"1"`
}

// Disconnected is the result of mcp_disconnect.
type Disconnected struct {
	Namespace string `json:"namespace"`
	Removed   bool   `json:"removed" jsonschema:"false if there was no such server"`
}

// Text returns one line.
func (d Disconnected) Text() string {
	if !d.Removed {
		return fmt.Sprintf("There was no upstream %s.", d.Namespace)
	}
	return fmt.Sprintf("Disconnected %s.", d.Namespace)
}

func (m mcpTools) disconnect(ctx context.Context, _ tool.Call, in namespaceIn) (Disconnected, error) {
	space := in.Namespace
	if !principal.Of(ctx).ConnectsForAll() {
		own, err := m.ownOfOrg(ctx, in.Namespace)
		if err != nil || own == "" {
			return Disconnected{Namespace: in.Namespace}, err
		}
		space = own
	}
	removed, err := m.upstreams.Remove(ctx, space)
	return Disconnected{in.Namespace, removed}, err
}

// UpstreamList is the result of mcp_list_upstreams.
type UpstreamList struct {
	Upstreams []UpstreamView `json:"upstreams"`
	Total     int            `json:"total"`
	Warnings  []string       `json:"warnings,omitempty" jsonschema:"what is wrong with the configuration of upstreams"`
}

// Text lists them for people.
func (l UpstreamList) Text() string {
	var parts []string
	for _, u := range l.Upstreams {
		parts = append(parts, u.Text())
	}
	if l.Total == 0 {
		parts = append(parts, "No upstreams. mcp_connect adds one.")
	}
	for _, warning := range l.Warnings {
		parts = append(parts, "Warning: "+warning)
	}
	return strings.Join(parts, "\n")
}

func (m mcpTools) list(ctx context.Context, _ tool.Call, _ struct{}) (UpstreamList, error) {
	all := m.seen(ctx)
	l := UpstreamList{Upstreams: make([]UpstreamView, len(all)), Total: len(all)}
	for i, s := range all {
		l.Upstreams[i] = View(ctx, s, m.counts)
	}
	if !principal.Of(ctx).Restricted() {
		l.Warnings = m.upstreams.Problems()
	}
	return l, nil
}

func (m mcpTools) status(ctx context.Context, _ tool.Call, in namespaceIn) (UpstreamView, error) {
	return m.view(ctx, in.Namespace)
}

func (m mcpTools) view(ctx context.Context, namespace string) (UpstreamView, error) {
	s, ok := m.find(ctx, namespace)
	if !ok {
		return UpstreamView{}, m.unknown(ctx, namespace)
	}
	return View(ctx, s, m.counts), nil
}

// find returns an upstream, if the caller can see it.
func (m mcpTools) find(ctx context.Context, namespace string) (upstreamset.Status, bool) {
	s, ok := m.upstreams.Status(ownUpstream(ctx, m.upstreams, namespace))
	return s, ok && principal.Of(ctx).CanSee(s.Namespace, "")
}

// ownUpstream returns the namespace that the caller's name of an upstream stands for.
func ownUpstream(ctx context.Context, all Upstreams, name string) string {
	return principal.Of(ctx).Namespace(name, func(space string) bool {
		_, ok := all.Status(space)
		return ok
	})
}

// SeenUpstreams lists the upstreams that the caller can see.
func SeenUpstreams(ctx context.Context, all interface{ List() []upstreamset.Status }) []upstreamset.Status {
	list := all.List()
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Namespace
	}
	names = principal.Of(ctx).Visible(names)
	return slices.DeleteFunc(list, func(s upstreamset.Status) bool { return !slices.Contains(names, s.Namespace) })
}

// Refreshed is the result of tools_refresh.
type Refreshed struct {
	Namespace string   `json:"namespace"`
	ToolCount int      `json:"tool_count"`
	Tools     []string `json:"tools"`
}

// Text returns their number and names.
func (r Refreshed) Text() string {
	return fmt.Sprintf("%s has %s: %s", r.Namespace, plural.Count(r.ToolCount, "tool"), strings.Join(r.Tools, ", "))
}

func (m mcpTools) refresh(ctx context.Context, _ tool.Call, in namespaceIn) (Refreshed, error) {
	who, space := principal.Of(ctx), ownUpstream(ctx, m.upstreams, in.Namespace)
	if _, ok := m.upstreams.Status(space); !ok || !who.CanSee(space, "") {
		return Refreshed{}, m.unknown(ctx, in.Namespace)
	}
	tools, err := m.upstreams.Refresh(ctx, space)
	if err != nil {
		return Refreshed{}, err
	}
	r := Refreshed{Namespace: in.Namespace, Tools: []string{}}
	for i := range tools {
		if who.CanSee(space, tools[i].Name) {
			r.Tools = append(r.Tools, tools[i].Name)
		}
	}
	r.ToolCount = len(r.Tools)
	return r, nil
}

// seen returns the upstreams that the caller may see.
func (m mcpTools) seen(ctx context.Context) []upstreamset.Status {
	return SeenUpstreams(ctx, m.upstreams)
}

// unknown is the error for an unknown upstream.
func (m mcpTools) unknown(ctx context.Context, namespace string) error {
	all := m.seen(ctx)
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = principal.Of(ctx).NameOf(s.Namespace)
	}
	err := fault.New(fault.InvalidParams, "no upstream %q", namespace).WithDetails(map[string]any{"available": names})
	switch close := suggest.Names(namespace, names, 3); {
	case len(names) == 0:
		return err.WithHint("there are no upstreams; mcp_connect adds one")
	case len(close) > 0:
		return err.WithHint("did you mean %s? available: %s", strings.Join(close, " or "), strings.Join(names, ", "))
	default:
		return err.WithHint("available: %s", strings.Join(names, ", "))
	}
}

// managedOrg returns the name of an upstream in the caller's organisation, which the caller
// must manage.
func (m mcpTools) managedOrg(ctx context.Context, namespace string) (name, org string, err error) {
	who := principal.Of(ctx)
	if m.orgs == nil || !who.ManagesOrg() {
		return "", "", fault.New(fault.Denied, "%s may not add or remove servers", who.Title()).
			WithHint("it takes the scope %s, or %s of an organisation", principal.Admin, principal.Org)
	}
	name, org = principal.SplitNamespace(namespace)
	org = cmp.Or(org, who.Org)
	return name, org, who.CheckManages(org)
}

// addInOrg adds an upstream for the caller's organisation and returns its namespace.
func (m mcpTools) addInOrg(ctx context.Context, namespace string, s upstream.Settings) (space string, err error) {
	name, org, err := m.managedOrg(ctx, namespace)
	if err != nil {
		return "", err
	}
	if s.URL, err = Target(ctx, m.orgs.CheckURL, s.URL); err != nil {
		return "", err
	}
	return principal.InOrg(name, org), m.orgs.Connect(ctx, org, name, s)
}

// ownOfOrg returns the namespace of an upstream that was added for the caller's organisation;
// empty if there is none of that name.
func (m mcpTools) ownOfOrg(ctx context.Context, namespace string) (space string, err error) {
	name, org, err := m.managedOrg(ctx, namespace)
	if err != nil {
		return "", err
	}
	space, err = m.orgs.Find(org, name) //nolint:contextcheck // it only looks at memory
	if _, known := m.find(ctx, namespace); !known {
		return space, nil
	}
	return space, err
}

// UpstreamView is the status of an upstream with its calls.
type UpstreamView struct {
	upstreamset.Status
	CallCount  int     `json:"call_count"`
	ErrorCount int     `json:"error_count"`
	InFlight   int     `json:"in_flight"`
	LastTool   string  `json:"last_tool,omitempty"`
	P50MS      float64 `json:"p50_ms,omitempty" jsonschema:"median duration of calls"`
	P99MS      float64 `json:"p99_ms,omitempty" jsonschema:"99th percentile of the duration of calls"`
	RefusingMS int64   `json:"refusing_ms,omitempty" jsonschema:"how long calls are still refused after too many failures"`
}

// View adds the call statistics to an upstream's status, as the caller sees it.
func View(ctx context.Context, s upstreamset.Status, counts Counts) UpstreamView {
	v := UpstreamView{Status: s.For(ctx)}
	v.Namespace = principal.Of(ctx).NameOf(s.Namespace)
	c, ok := counts.Stats(ctx, s.Namespace)
	if !ok {
		return v
	}
	v.CallCount, v.ErrorCount, v.InFlight, v.LastTool = int(c.Calls), int(c.Errors), c.InFlight, c.LastTool
	v.P50MS, v.P99MS = ms(c.P50), ms(c.P99)
	if c.Open {
		v.RefusingMS = msUntil(c.RetryAt)
	}
	return v
}

// Text returns two to four lines.
func (v UpstreamView) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Namespace, v.State)
	switch {
	case v.Starting > 0:
		fmt.Fprintf(&b, " (for %d s)", v.Starting)
	case v.Attempt > 0:
		fmt.Fprintf(&b, " (attempt %d)", v.Attempt)
	case v.State == "connected":
		fmt.Fprintf(&b, " (%s)", plural.Count(v.Tools, "tool"))
	}
	fmt.Fprintf(&b, "\n  %s", v.Endpoint)
	if v.Stale {
		fmt.Fprintf(&b, "\n  %s last known", plural.Count(v.Tools, "tool"))
	}
	if v.CallCount > 0 {
		fmt.Fprintf(&b, "\n  %s, %s, last: %s, p50 %g ms, p99 %g ms", plural.Count(v.CallCount, "call"), plural.Count(v.ErrorCount, "error"), v.LastTool, v.P50MS, v.P99MS)
	}
	if v.LastLine != "" {
		fmt.Fprintf(&b, "\n  Last line: %s", v.LastLine)
	}
	if v.Error != "" {
		fmt.Fprintf(&b, "\n  Error: %s", v.Error)
	}
	if v.Hint != "" {
		fmt.Fprintf(&b, "\n  Hint: %s", v.Hint)
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(&b, "\n  Warning: %s", warning)
	}
	if v.NextTryMS > 0 {
		fmt.Fprintf(&b, "\n  next try in %v", time.Duration(v.NextTryMS)*time.Millisecond)
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func msUntil(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(time.Until(t).Milliseconds(), 0)
}

// Policy decides whether a model may connect to a URL. The URL is http, https or
// zmq+tcp, has a host and no credentials. It checks host names only: the addresses
// they resolve to are checked when connecting.
type Policy func(ctx context.Context, u *url.URL) error

// AllowHosts allows loopback with any scheme, and the listed hosts with https only,
// because other schemes are not encrypted. "*" stands for every public host,
// "*.example.org" for the hosts below example.org.
func AllowHosts(hosts []string) Policy {
	return func(_ context.Context, u *url.URL) error {
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		switch {
		case !slices.Contains([]string{"http", "https", "zmq+tcp"}, u.Scheme):
			return fault.New(fault.InvalidParams, "connect to %s: no transport %q", u.Redacted(), u.Scheme).WithHint("use an http, https or zmq+tcp url")
		case isLoopback(host):
			return nil
		case !slices.ContainsFunc(hosts, func(pattern string) bool { return covers(strings.ToLower(pattern), host) }):
			return fault.New(fault.Denied, "connect to %s: the host is not allowed", host).
				WithHint("the owner of this server can allow it: mcp.allowed_hosts = [%q] in luanette.toml", host)
		case u.Scheme == "zmq+tcp":
			return fault.New(fault.Denied, "connect to %s: only backends on this machine are allowed here", host).
				WithHint("the owner of this server can add it to luanette.toml: ZeroMQ connections are not encrypted")
		case u.Scheme != "https":
			return fault.New(fault.Denied, "connect to %s: only https is allowed for this host", host).
				WithHint("use https://%s", u.Host)
		}
		return nil
	}
}

// AllowOrgHosts allows public hosts with https, and those that are listed, to those who
// manage an organisation: this machine and private networks are not theirs.
func AllowOrgHosts(hosts []string) Policy {
	return func(_ context.Context, u *url.URL) error {
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		listed := slices.ContainsFunc(hosts, func(pattern string) bool { return covers(strings.ToLower(pattern), host) })
		switch {
		case u.Scheme != "https" && u.Scheme != "http":
			return fault.New(fault.Denied, "connect to %s: an organisation adds MCP servers over HTTP only", host).
				WithHint("the operators of the server can add others")
		case !listed && !isPublic(host):
			return fault.New(fault.Denied, "connect to %s: it is in a private network", host).
				WithHint("the operators of the server can allow it: mcp.allowed_hosts = [%q] in luanette.toml", host)
		case u.Scheme != "https" && !isLoopback(host):
			return fault.New(fault.Denied, "connect to %s: only https is allowed", host).WithHint("use https://%s", u.Host)
		}
		return nil
	}
}

func covers(pattern, host string) bool {
	if pattern == "*" {
		return isPublic(host)
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// isPublic reports whether a host may be on the public internet: a name with a dot
// that is not a local domain, or a public address.
func isPublic(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return netguard.Public(address)
	}
	local := []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}
	digits := strings.Trim(host, "0123456789.") == "" // an address in another notation
	return strings.Contains(host, ".") && !digits && !strings.HasPrefix(host, "0x") &&
		!slices.ContainsFunc(local, func(end string) bool { return strings.HasSuffix(host, end) })
}
