package principal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

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

// Level is what a share permits with a thing of somebody else.
type Level string

// The levels, each with what the one before permits.
const (
	Nothing Level = ""
	See     Level = "see"  // look at it and its results
	Use     Level = "use"  // run it, call it, go on in it, as oneself
	Edit    Level = "edit" // change, cancel or remove it
)

// Kind is the kind of a thing that can be shared.
type Kind string

// The kinds.
const (
	Job          Kind = "job"
	Schedule     Kind = "schedule"
	Session      Kind = "session"
	Artifact     Kind = "artifact"
	Script       Kind = "script"
	Conversation Kind = "conversation"
)

// Shares tells what owners share with others of their organisation.
type Shares interface {
	// Level returns what p may do with a thing that somebody else owns.
	Level(ctx context.Context, p Principal, kind Kind, id string) (Level, error)
	// IDs returns the things of a kind that others share with p.
	IDs(ctx context.Context, p Principal, kind Kind) ([]string, error)
}

// Thing is something that its owner can share.
type Thing struct {
	ID    string // as shares name it
	Owner Owner
	Title string // for people; may be empty
}

// Permits reports whether a level includes another.
func (l Level) Permits(wanted Level) bool { return wanted != Nothing && rank[l] >= rank[wanted] }

var rank = map[Level]int{Nothing: 0, See: 1, Use: 2, Edit: 3}

// Exceeded describes a limit that was reached, and when to try again.
type Exceeded struct {
	What  string        // what is limited: requests, tool calls
	Of    string        // whose limit it is: the key web, the user ada, the upstream fs
	Most  int           // the limit
	Per   string        // the period: minute, day; empty: at the same time
	After time.Duration // when to try again
}

// Fault returns the error for the caller.
func (x Exceeded) Fault() *fault.Error {
	after := x.After.Round(time.Second)
	if x.After < time.Second {
		after = max(x.After.Round(time.Millisecond), time.Millisecond)
	}
	per := "at a time"
	if x.Per != "" {
		per = "a " + x.Per
	}
	return fault.New(fault.Limit, "%s may have %d %s %s", x.Of, x.Most, x.What, per).
		WithHint("try again in %v", after).
		WithDetails(details{Limit: x.Most, What: x.What, Of: x.Of, Per: x.Per, RetryAfterMS: after.Milliseconds()})
}

type details struct {
	Limit        int    `json:"limit"`
	What         string `json:"what"`
	Of           string `json:"of"`
	Per          string `json:"per,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// RetryAfter returns the delay after which a refused request may be retried, or one that
// could not be served.
func RetryAfter(err error) (time.Duration, bool) {
	for f := (*fault.Error)(nil); errors.As(err, &f); err = errors.Unwrap(f) {
		var d struct { // only this: other limits than those of Exceeded are not whole numbers
			RetryAfterMS float64 `json:"retry_after_ms"`
		}
		if (f.Code == fault.Limit || f.Code == fault.Unavailable) && json.Unmarshal(f.Details, &d) == nil && d.RetryAfterMS > 0 {
			return time.Duration(d.RetryAfterMS * float64(time.Millisecond)), true
		}
	}
	return 0, false
}

// RetryHeader returns the value of the Retry-After header: whole seconds, at least
// one.
func RetryHeader(after time.Duration) string {
	return fmt.Sprint(max(1, int64((after+time.Second-1)/time.Second)))
}
