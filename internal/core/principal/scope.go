package principal

// Scope is something a key opens.
type Scope string

// The scopes there are.
const (
	Admin Scope = "admin"
	Org   Scope = "org"
	Chat  Scope = "chat"
	MCP   Scope = "mcp"
	Read  Scope = "read"
)

// Scopes lists them all, the strongest first.
var Scopes = []Scope{Admin, Org, Chat, MCP, Read}

// DefaultScopes is what a key opens that is made without saying: everything but the
// affairs of the house and of organisations.
var DefaultScopes = []Scope{Chat, MCP, Read}

// Description says what a scope is for.
func (s Scope) Description() string {
	return map[Scope]string{
		Admin: "everything: keys, upstreams, approvals, and what others made",
		Org:   "settings, servers, prompts and usage of one organisation, and its conversations",
		Chat:  "conversations with the agent",
		MCP:   "the MCP server: tools, scripts, jobs, sessions, resources, prompts; artifacts and contents",
		Read:  "looking on: events, traces, the configuration without its secrets, the health of upstreams",
	}[s]
}
