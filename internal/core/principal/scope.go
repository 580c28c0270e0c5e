package principal

import "slices"

// Scope is a permission of a key or token.
type Scope string

// The scopes.
const (
	Admin   Scope = "admin"
	Org     Scope = "org"
	Chat    Scope = "chat"
	MCP     Scope = "mcp"
	Read    Scope = "read"
	Observe Scope = "observe"
	Metrics Scope = "metrics"
)

// Open is in place of the scope of a route that anybody may use. No key has it.
const Open Scope = "open"

// Scopes lists all scopes, the strongest first.
var Scopes = []Scope{Admin, Org, Chat, MCP, Read, Observe, Metrics}

// DefaultScopes are the scopes of a key that is created without any: all but those for
// administration and monitoring.
var DefaultScopes = []Scope{Chat, MCP, Read}

// Description returns what a scope allows.
func (s Scope) Description() string {
	return map[Scope]string{
		Admin:   "everything: keys, upstreams, approvals, and what others made",
		Org:     "settings, servers, prompts and usage of one organisation, and its conversations",
		Chat:    "conversations with the agent",
		MCP:     "the MCP server: tools, scripts, jobs, sessions, resources, prompts; artifacts and contents",
		Read:    "read only: own events and traces, the configuration without its secrets, the health of upstreams",
		Observe: "with read: events, traces and the audit log of everybody in the organisation, or in all of them",
		Metrics: "/metrics: numbers about the whole server, for Prometheus",
	}[s]
}

// KeyScopes returns the scopes that p can use, and that a key of p can have. An administrator of
// an organisation has all but those about the whole server.
func (p Principal) KeyScopes() []Scope {
	scopes := p.Scopes
	if p.Org != "" && slices.Contains(scopes, Admin) {
		scopes = Scopes
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return !p.May(s, p.Org) })
}

// exceeds reports whether a scope is about more than the organisation of its holder.
func (s Scope) exceeds(org string) bool { return s == Admin || s == Metrics && org != "" }
