// Package tool holds the words for tools: how one is named, what it says of
// itself, how it is called and what it answers. Upstream servers, backends, our
// own tools and published scripts produce a Source; the MCP hub, the chat agent,
// scripts, the CLI and the HUD consume one. JSON that came from elsewhere stays
// as it came: key order, unknown fields and big integers survive the house.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
)

// Ref names one tool: the namespace it lives in and its own name there.
// Our own tools have no namespace.
type Ref struct {
	Space string
	Name  string
}

// String is how people and scripts write it: "space.name", or "name".
func (r Ref) String() string {
	if r.Space == "" {
		return r.Name
	}
	return r.Space + "." + r.Name
}

// Info is what a tool says of itself.
type Info struct {
	Ref
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; always an object schema
	Output      json.RawMessage // JSON Schema of the structured result, or nil
	Hints       Hints
	Raw         json.RawMessage // the definition as its owner wrote it; nil for our own
	Stale       bool            // from a cache: its owner is away just now
	RunsScript  bool            // one of ours that runs a script here, in the name of the script that calls it

	Original string // its owner's name for it, where it shows under another; "" otherwise
	Priority int    // which of several to prefer: higher ones are listed and found first

	Flags []string // what a scanner found in its definition that does not belong there
}

// Same tells whether two definitions say the same, wherever their owner is.
func (i *Info) Same(other *Info) bool {
	return i.Ref == other.Ref && i.Original == other.Original && i.Priority == other.Priority &&
		i.Title == other.Title && i.Description == other.Description && i.Hints == other.Hints &&
		slices.Equal(i.Flags, other.Flags) && bytes.Equal(i.Input, other.Input) && bytes.Equal(i.Output, other.Output) && bytes.Equal(i.Raw, other.Raw)
}

// Hints are the tool's own claims about its behaviour. They come from strangers:
// good for deciding what to repeat or rehearse, never for granting anything.
// The zero value is MCP's default: it may write, destroy, and reach anywhere.
type Hints struct {
	ReadOnly       bool
	Idempotent     bool
	NonDestructive bool
	ClosedWorld    bool
}

// Repeatable tells whether a call whose outcome is unknown may be made again.
func (h Hints) Repeatable() bool { return h.ReadOnly || h.Idempotent }

// Annotations are Hints in MCP's words.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Annotations says h in MCP's words.
func (h Hints) Annotations() Annotations {
	return Annotations{
		ReadOnly: h.ReadOnly, Destructive: !h.ReadOnly && !h.NonDestructive,
		Idempotent: h.Idempotent || h.ReadOnly, OpenWorld: !h.ClosedWorld,
	}
}

// Call is one request to run a tool.
type Call struct {
	Ref    Ref
	Args   json.RawMessage // a JSON object; nil means {}
	Meta   json.RawMessage // the caller's _meta, protocol keys removed; may be nil
	Caller *Caller         // who waits for the answer; nil when nobody can be told or asked anything
}

// Caller is the one who made the call, as far as it can be talked to while the
// call runs. Any function may be nil: then that way of talking does not exist.
type Caller struct {
	ID           string          // who: stable per user or connection, for pooling and fairness
	User         string          // whose things it may use, after authentication; "" where all are the same user
	Capabilities json.RawMessage // MCP client capabilities as declared, or nil
	Progress     func(Progress)
	Log          func(Log)
	// Ask relays the questions a tool has before it can go on, all at once, and
	// returns the raw answers in the same order. It may wait for a person.
	Ask func(ctx context.Context, questions []Question) ([]json.RawMessage, error)
}

// Progress is how far a call has come. Total is 0 when unknown.
type Progress struct {
	Progress float64
	Total    float64
	Message  string
}

// MethodElicit asks the person in front of the client.
const MethodElicit = "elicitation/create"

// Question is something a tool wants of its caller while it runs, in MCP's words:
// "elicitation/create", "sampling/createMessage" or "roots/list".
type Question struct {
	Key    string // the asker's name for it; may be empty
	Method string
	Params json.RawMessage
}

// Log is one log message a tool sends to its caller while it runs.
type Log struct {
	Level  string // MCP's: debug, info, notice, warning, error, critical, alert, emergency
	Logger string
	Data   json.RawMessage
}

// Lister lists tools.
type Lister interface {
	// Tools lists them in a stable order, those of one namespace together and
	// sorted by name. The slice and what it points to are shared: read, never
	// write.
	Tools(ctx context.Context) ([]Info, error)
}

// Source is anything that has tools.
type Source interface {
	Lister

	// Call runs one. A tool that ran and failed is a Result with IsError, not an
	// error; an error means the call could not be made or its outcome is unknown,
	// and is a *fault.Error. Cancelling ctx cancels the call at its owner.
	Call(ctx context.Context, call Call) (Result, error)
}
