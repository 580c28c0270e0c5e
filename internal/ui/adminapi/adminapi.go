// Package adminapi is the HTTP API for administrators: definitions of tools to review,
// policy checks, the audit log, upstreams with their tools, and nodes. Tools and scripts cannot call it.
package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Options are what the API gives access to.
type Options struct {
	Pins      Pins
	Policy    PolicyChecker
	Audit     func() (Audit, error)
	Upstreams UpstreamSet
	// OrgUpstreams are those that organisations add for themselves.
	OrgUpstreams *OrgUpstreams

	Tools   Tools
	Nodes   func(ctx context.Context) (Nodes, error)
	Learned Learned
	Egress  Egress
	Sandbox Sandbox
}

// Server answers /api/v1/pins, /api/v1/policy, /api/v1/audit, /api/v1/activity, /api/v1/upstreams,
// /api/v1/tools, /api/v1/nodes and /api/v1/search/learned.
type Server struct{ options Options }

// New returns a server.
func New(o Options) *Server { return &Server{o} }

// Routes are the server's paths and the scope that each requires.
func (s *Server) Routes() []principal.Route {
	of := func(scope principal.Scope) func(string, serve) principal.Route {
		return func(pattern string, handle serve) principal.Route {
			return principal.Route{Pattern: pattern, Scope: scope, Serve: handle}
		}
	}
	admin, org, read, upstreams := of(principal.Admin), of(principal.Org), of(principal.Read), s.options.Upstreams
	return append([]principal.Route{
		admin("GET /api/v1/policy/check", s.checkPolicy),
		read("GET /api/v1/audit", s.listAudit), // own entries; the store decides
		read("GET /api/v1/activity", s.listActivity),
		read("GET /api/v1/activity/{session}", s.showActivity),
		org("GET /api/v1/audit/chains", s.listChains),
		org("GET /api/v1/audit/verify", s.verifyAudit), // it counts their own
		admin("GET /api/v1/pins", s.listPins),
		admin("POST /api/v1/pins/approve", s.approvePins),
		admin("GET /api/v1/pins/{id}", s.showPin),
		admin("POST /api/v1/pins/{id}/decide", s.decidePin),
		read("GET /api/v1/upstreams", func(r *http.Request) (any, error) { return upstreams.List(r.Context()), nil }),
		read("GET /api/v1/upstreams/{name}", named(upstreams.Get)),
		admin("POST /api/v1/upstreams", s.addUpstream),
		admin("PATCH /api/v1/upstreams/{name}", s.editUpstream),
		admin("DELETE /api/v1/upstreams/{name}", named(upstreams.Remove)),
		admin("POST /api/v1/upstreams/{name}/restore", named(upstreams.Restore)).Reads(principal.NoBody),
		admin("POST /api/v1/upstreams/{name}/retry", named(upstreams.Retry)).Reads(principal.NoBody),
		read("GET /api/v1/upstreams/{name}/connections", named(s.connections)),
		read("GET /api/v1/upstreams/{name}/refusals", named(s.refusals)),
		admin("POST /api/v1/upstreams/{name}/disable", named(upstreams.Disable)).Reads(principal.NoBody),
		admin("POST /api/v1/upstreams/{name}/restart", named(upstreams.Restart)).Reads(principal.NoBody),
		read("GET /api/v1/tools", s.listTools),
		admin("PATCH /api/v1/tools/{name}", s.changeTool),
		read("GET /api/v1/nodes", func(r *http.Request) (any, error) { return s.options.Nodes(r.Context()) }),
		of(principal.MCP)("DELETE /api/v1/search/learned", s.forgetOwn),
		admin("DELETE /api/v1/search/learned/all", s.forgetAll),
	}, s.orgRoutes(of(principal.Org))...)
}

// serve answers a request with a value that is sent as JSON.
type serve = func(*http.Request) (any, error)

// named serves what is done with the thing whose name is in the path.
func named[T any](do func(ctx context.Context, name string) (T, error)) serve {
	return func(r *http.Request) (any, error) { return do(r.Context(), r.PathValue("name")) }
}

// Sandbox knows what the programs of upstreams were refused.
type Sandbox interface {
	Refusals(name string) ([]profile.Refusal, error)
}

// UpstreamRefusals is the response with what the program of one upstream was refused in
// its last run, the oldest first.
type UpstreamRefusals struct {
	Refusals []profile.Refusal `json:"refusals"`
}

func (s *Server) refusals(ctx context.Context, name string) (list UpstreamRefusals, err error) {
	upstream, _, _ := strings.Cut(name, ".") // commands.NAME is a program of the upstream commands
	if _, err := s.options.Upstreams.Get(ctx, upstream); err != nil {
		return list, err
	}
	list = UpstreamRefusals{Refusals: []profile.Refusal{}}
	if s.options.Sandbox == nil {
		return list, nil
	}
	refused, err := s.options.Sandbox.Refusals(name)
	list.Refusals = append(list.Refusals, refused...)
	return list, err
}

// Nodes are the servers that share a database.
type Nodes struct {
	Node  string      `json:"node"` // id of the node that answers
	Nodes []node.Info `json:"nodes"`
}

// Egress knows the network connections of sandboxed upstreams.
type Egress interface {
	Connections(name string) []egress.Connection
	Hosts(name string) []egress.Host
}

// UpstreamConnections is the response with the connections of one upstream.
type UpstreamConnections struct {
	Connections []egress.Connection `json:"connections"` // open and recent ones, the newest first
	Hosts       []egress.Host       `json:"hosts"`       // all destinations since the server's start
}

func (s *Server) connections(ctx context.Context, name string) (list UpstreamConnections, err error) {
	if _, err := s.options.Upstreams.Get(ctx, name); err != nil {
		return list, err
	}
	list = UpstreamConnections{Connections: []egress.Connection{}, Hosts: []egress.Host{}}
	if known := s.options.Egress; known != nil {
		list.Connections, list.Hosts = append(list.Connections, known.Connections(name)...), append(list.Hosts, known.Hosts(name)...)
	}
	return list, nil
}

// Learned is what searches have learned from calls.
type Learned interface {
	// Forget erases what was learned from the caller, and returns how much that was.
	Forget(ctx context.Context) (int64, error)
	// Erase erases what was learned from all.
	Erase(ctx context.Context) (int64, error)
}

// forgotten is the response: how many words of tools were erased.
type forgotten struct {
	Forgotten int64 `json:"forgotten"`
}

func (s *Server) forgetOwn(r *http.Request) (any, error) {
	count, err := s.options.Learned.Forget(r.Context())
	return forgotten{count}, err
}

func (s *Server) forgetAll(r *http.Request) (any, error) {
	count, err := s.options.Learned.Erase(r.Context())
	return forgotten{count}, err
}

// PolicyCheck is the policy's verdict on a tool and a key, and the reason.
type PolicyCheck struct {
	Tool         string   `json:"tool"`
	Key          string   `json:"key"`
	Org          string   `json:"org,omitempty"` // the key's organisation, whose rules apply too
	Known        bool     `json:"known"`         // the tool exists now
	Verdict      string   `json:"verdict"`
	Rule         string   `json:"rule,omitempty"` // the rule that decided; empty if no rule matches
	Reason       string   `json:"reason,omitempty"`
	ReadOnlyHint bool     `json:"read_only_hint"`
	Labels       []string `json:"labels,omitempty"`  // labels of data read from its namespace
	Accepts      []string `json:"accepts,omitempty"` // labels of data that may be sent there
}

// PolicyChecker tells what the policy decides about a tool and a key.
type PolicyChecker interface {
	// Check returns fault.ToolNotFound if nothing has the name.
	Check(ctx context.Context, name, key, org string) (PolicyCheck, error)
}

// CatalogPolicy checks the tools of a catalog.
type CatalogPolicy struct {
	Policy  *policy.Policy
	Catalog interface {
		Resolve(ctx context.Context, name string) (tool.Info, error)
		Real(ctx context.Context, ref tool.Ref) tool.Ref
	}
	IsFunction func(name string) bool // of scripts
}

// Check also answers for functions of scripts, and for resources and prompts. The name is the
// one that members of the organisation use.
func (c CatalogPolicy) Check(ctx context.Context, name, key, org string) (PolicyCheck, error) {
	who := principal.Principal{ID: "key:" + key, Name: key, Org: org}
	info, err := c.Catalog.Resolve(ctx, name)
	if err != nil || org != "" {
		space, rest, dotted := strings.Cut(name, ".")
		if info.Ref = (tool.Ref{Space: space, Name: rest}); !dotted {
			info.Ref = tool.Ref{Name: name}
		}
	}
	if org != "" {
		info, err = c.inOrg(ctx, who, info.Ref)
	}
	if err != nil && !c.IsFunction(name) && !info.Ref.IsContent() {
		return PolicyCheck{}, err
	}
	s := c.Policy.Settings()
	d := c.Policy.Decide(who, &info)
	return PolicyCheck{
		Tool: info.Ref.String(), Key: key, Org: org, Known: err == nil, Verdict: string(d.Verdict), Rule: d.Rule, Reason: d.Reason,
		ReadOnlyHint: info.Hints.ReadOnly, Labels: s.Labels[info.Space], Accepts: s.Accepts[info.Space],
	}, nil
}

// inOrg finds the tool that members of an organisation call so.
func (c CatalogPolicy) inOrg(ctx context.Context, member principal.Principal, ref tool.Ref) (tool.Info, error) {
	ref = c.Catalog.Real(principal.With(ctx, member), ref)
	info, err := c.Catalog.Resolve(ctx, ref.String())
	if err != nil {
		info.Ref = ref
	}
	return info, err
}

func (s *Server) checkPolicy(r *http.Request) (any, error) {
	name := r.URL.Query().Get("tool")
	if name == "" {
		return nil, fault.New(fault.InvalidParams, "tool is missing").WithHint("use ?tool=namespace.tool&key=NAME&org=NAME")
	}
	key := r.URL.Query().Get("key")
	if key == "" {
		key = "local"
	}
	return s.options.Policy.Check(r.Context(), name, key, r.URL.Query().Get("org"))
}

// Audit is the audit log.
type Audit interface {
	Find(ctx context.Context, f audit.Filter) ([]audit.Entry, error)
	Sessions(ctx context.Context, f audit.SessionFilter) ([]audit.Session, error)
	Steps(ctx context.Context, id string, before time.Time, own bool) (audit.Session, []audit.Step, error)
	Chains(ctx context.Context) ([]audit.Chain, error)
	Verify(ctx context.Context) ([]audit.Verified, error)
}

// AuditList is the response with entries.
type AuditList struct {
	Entries []audit.Entry `json:"entries"`
}

// AuditChains is the response with the chains of all nodes.
type AuditChains struct {
	Chains []audit.Chain `json:"chains"`
}

// AuditVerified is the result of verifying all chains.
type AuditVerified struct {
	Sound  bool             `json:"sound"`
	Chains []audit.Verified `json:"chains"`
}

func (s *Server) listAudit(r *http.Request) (any, error) {
	f, err := filter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	entries, err := store.Find(r.Context(), f)
	if entries == nil {
		entries = []audit.Entry{}
	}
	return AuditList{entries}, err
}

// filter reads the filter from a query.
func filter(q url.Values) (f audit.Filter, err error) {
	f = audit.Filter{
		Org: q.Get("org"), Who: q.Get("who"), Tool: q.Get("tool"), Decision: q.Get("decision"), Node: q.Get("node"), NotOwn: q.Get("own") == "false", Links: q.Get("links") == "true",
	}
	if f.Since, err = timeIn(q, "since"); err != nil {
		return f, err
	}
	if f.Until, err = timeIn(q, "until"); err != nil {
		return f, err
	}
	if f.After, err = wholeIn(q, "after", 0); err != nil {
		return f, err
	}
	const maxEntries = 10_000
	limit, err := wholeIn(q, "limit", 100)
	f.Limit = int(min(limit, maxEntries))
	return f, err
}

// wholeIn reads a number of at least 0 from a query, or returns what it is without one.
func wholeIn(q url.Values, name string, without int64) (n int64, err error) {
	text := q.Get(name)
	if text == "" {
		return without, nil
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
		return n, fault.New(fault.InvalidParams, "%s: %q is not a number", name, text).WithHint("use a whole number of at least 0")
	}
	return n, nil
}

func (s *Server) listChains(r *http.Request) (any, error) {
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	chains, err := store.Chains(r.Context())
	if chains == nil {
		chains = []audit.Chain{}
	}
	return AuditChains{chains}, err
}

func (s *Server) verifyAudit(r *http.Request) (any, error) {
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	found, err := store.Verify(r.Context())
	if err != nil {
		return nil, err
	}
	return VerifiedOf(found), nil
}

// VerifiedOf sums up what was found about all chains.
func VerifiedOf(found []audit.Verified) AuditVerified {
	v := AuditVerified{Sound: true, Chains: found}
	for _, c := range found {
		v.Sound = v.Sound && len(c.Problems) == 0
	}
	return v
}
