// Package tool defines tools: their names, definitions, calls, results and sources.
// Upstream servers, backends, our own tools and published scripts are a Source; the MCP
// hub, the chat agent, scripts, the CLI and the web page use one. JSON from outside is
// passed on unchanged, with key order, unknown fields and big integers.
package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Ref names one tool: its namespace and its name there. Our own tools have no
// namespace.
type Ref struct {
	Space string
	Name  string
}

// String returns "space.name", or "name" for our own tools.
func (r Ref) String() string {
	if r.Space == "" {
		return r.Name
	}
	return r.Space + "." + r.Name
}

// Our own tools that call the tool whose name is in their arguments. CallToolRead calls only
// those that read.
const (
	CallTool     = "call_tool"
	CallToolRead = "call_tool_read"
)

// IsRelay reports whether r is one of them.
func (r Ref) IsRelay() bool { return r.Space == "" && (r.Name == CallTool || r.Name == CallToolRead) }

// ScriptPath is how scripts in Lua and JavaScript write the tool: mcp.files.read, or
// mcp.files["read-all"] where a name is no identifier, or a reserved word of Lua.
func (r Ref) ScriptPath() string {
	path := "mcp"
	for _, name := range []string{r.Space, r.Name} {
		switch {
		case name == "":
		case isIdentifier(name):
			path += "." + name
		default:
			path += `["` + quotedForScripts(name) + `"]`
		}
	}
	return path
}

// Identifier returns a tool's name as an identifier of Lua and JavaScript: get_sum for
// get-sum.
func Identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

func isIdentifier(name string) bool {
	for i, c := range name {
		if c > unicode.MaxASCII || c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return len(name) <= 200 && !slices.Contains(luaWords, name)
}

var luaWords = []string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not", "or",
	"repeat", "return", "then", "true", "until", "while",
}

// quotedForScripts escapes what may not be in a literal of both languages.
func quotedForScripts(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Info is a tool's definition.
type Info struct {
	Ref
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; always an object schema
	Output      json.RawMessage // JSON Schema of the structured result, or nil
	Hints       Hints
	Raw         json.RawMessage // the definition as the upstream sent it; nil: none
	Stale       bool            // from a cache: the upstream is disconnected
	RunsScript  bool            // runs a script here; called by a script, its effects count as those of the caller

	Original string // the upstream's name, if Name is another; else ""
	Priority int    // tools with higher priority are listed and found first

	App App // what it is in MCP Apps

	Flags []string // codes of what the scanner found in the definition
	Tags  []string // of a published script
}

// App is what a tool is in MCP Apps, where clients show the pages of servers.
type App struct {
	Page   string // the URI of the page that shows its results; "" if there is none
	Hidden bool   // only pages call it: models are not shown it
	Closed bool   // pages do not call it
}

// Same reports whether two definitions are equal, except for Stale.
func (i *Info) Same(other *Info) bool {
	return i.Ref == other.Ref && i.Original == other.Original && i.Priority == other.Priority &&
		i.Title == other.Title && i.Description == other.Description && i.Hints == other.Hints &&
		slices.Equal(i.Flags, other.Flags) && slices.Equal(i.Tags, other.Tags) && i.sameJSON(other)
}

func (i *Info) sameJSON(other *Info) bool {
	return bytes.Equal(i.Input, other.Input) && bytes.Equal(i.Output, other.Output) && bytes.Equal(i.Raw, other.Raw)
}

// Deprecated reports whether the definition says that the tool should no longer be used:
// its description begins with that word, or has it in capitals, or its title has it.
// MCP has no field for it.
func (i *Info) Deprecated() bool {
	const word = "deprecated"
	text := strings.TrimLeftFunc(i.Description, func(r rune) bool { return !unicode.IsLetter(r) })
	return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) ||
		strings.Contains(i.Description, strings.ToUpper(word)) || strings.Contains(strings.ToLower(i.Title), "("+word)
}

// Fingerprint is a hash of what the tool does and takes, for what was learned about it: with
// another one it is another tool of the same name.
func (i *Info) Fingerprint() string {
	sum := sha256.New()
	sum.Write([]byte(i.Description))
	sum.Write([]byte{0})
	sum.Write(i.Input)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Hints are the tool's own claims about its behaviour. They are not trusted: use them
// to decide what to repeat or rehearse, never to grant anything. The zero value is
// MCP's default: the tool may write, destroy, and reach anything.
type Hints struct {
	ReadOnly       bool
	Idempotent     bool
	NonDestructive bool
	ClosedWorld    bool
}

// Repeatable reports whether a call with an unknown outcome may be repeated.
func (h Hints) Repeatable() bool { return h.ReadOnly || h.Idempotent }

// Annotations are Hints in the form of MCP.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Annotations returns h in the form of MCP.
func (h Hints) Annotations() Annotations {
	return Annotations{
		ReadOnly: h.ReadOnly, Destructive: !h.ReadOnly && !h.NonDestructive,
		Idempotent: h.Idempotent || h.ReadOnly, OpenWorld: !h.ClosedWorld,
	}
}

// Call is one request to run a tool, or to use something else of an upstream.
type Call struct {
	Kind   Kind // what it is; "" is the call of a tool
	Ref    Ref
	Args   json.RawMessage // a JSON object; nil means {}
	Meta   json.RawMessage // the caller's _meta, protocol keys removed; may be nil
	Caller *Caller         // the caller while the call runs; nil: it cannot be notified or asked
	Task   *TaskRequest    // the caller takes a task in place of the result; nil: it waits for the result
}

// HookedCall is a call as hooks see it: they know a tool by its upstream's name, so that what
// they refuse stays refused under an alias.
type HookedCall struct {
	Call
	Original string // the upstream's name of the tool
}

// Kind is what a call uses of its upstream. It is the method of MCP for that.
type Kind string

// Kinds of calls other than those of tools. They pass the same steps, under the names
// "resource:URI" and "prompt:NAME" of their namespace, except for what is about definitions of
// tools.
const (
	ReadsResource Kind = "resources/read"
	GetsPrompt    Kind = "prompts/get"
)

// Ref names what a call of this kind uses: a resource by its URI, or a prompt by its name.
func (k Kind) Ref(space, name string) Ref {
	if k == GetsPrompt {
		return Ref{space, "prompt:" + name}
	}
	return Ref{space, "resource:" + name}
}

// IsContent reports whether a resource or a prompt has the name, not a tool.
func (r Ref) IsContent() bool {
	return strings.HasPrefix(r.Name, "resource:") || strings.HasPrefix(r.Name, "prompt:")
}

// Observed is the name under which a call is counted: single resources are too many.
func (c *Call) Observed() string {
	if c.Kind != "" {
		return string(c.Kind)
	}
	return c.Ref.Name
}

// Owner is the user that what the call makes belongs to.
func (c Call) Owner() string {
	if c.Caller == nil {
		return ""
	}
	return c.Caller.User
}

// Caller is the caller of a tool, for notifications and questions while the call runs.
// A function that is nil is not supported.
type Caller struct {
	ID           string          // stable per user or connection, for pooling and fairness
	User         string          // the authenticated user; "" if there is only one
	Agent        string          // the program, as it calls itself, with its version; may be ""
	Capabilities json.RawMessage // MCP client capabilities as declared, or nil
	Progress     func(Progress)
	Log          func(Log)
	// Ask asks the questions of a tool that waits for them, all at once, and returns
	// the raw answers in the same order. It may wait for a person.
	Ask func(ctx context.Context, questions []Question) ([]json.RawMessage, error)
	// Stateless says that the caller is an MCP client without a session. Others are
	// asked while the call runs, as MCP's sessions era does.
	Stateless bool
	// Client is the client beyond this call; nil if it has no session.
	Client Client
}

// Report sends progress, from 0 to 1, if the caller wants it.
func (c *Caller) Report(progress float64, message string) {
	if c != nil && c.Progress != nil {
		c.Progress(Progress{Progress: progress, Total: 1, Message: message})
	}
}

// Client is an MCP client as long as its session lasts.
type Client interface {
	// Roots asks it for its roots and returns the raw result of roots/list.
	Roots(ctx context.Context) (json.RawMessage, error)
	// Connected reports whether it can be asked now. Many clients leave without ending
	// their sessions.
	Connected() bool
	// Ended is closed when the session has ended.
	Ended() <-chan struct{}
}

// Progress is the progress of a call. Total is 0 when unknown.
type Progress struct {
	Progress float64
	Total    float64
	Message  string
}

// MethodElicit asks the user of the client.
const MethodElicit = "elicitation/create"

// Question is a request of a running tool to its caller, by its MCP method:
// "elicitation/create", "sampling/createMessage" or "roots/list".
type Question struct {
	Key    string // the tool's name for it; may be empty
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
	// Tools lists them in a stable order, those of one namespace together and sorted by
	// name. The slice and what it points to are shared: read, never write.
	Tools(ctx context.Context) ([]Info, error)
}

// Source is anything that has tools.
type Source interface {
	Lister

	// Call runs a tool. A tool that ran and failed is a Result with IsError, not an
	// error; an error means that the call could not be made or that its outcome is
	// unknown, and is a *fault.Error. Cancelling ctx cancels the call at the upstream.
	Call(ctx context.Context, call Call) (Result, error)
}

// ScriptFunctions are the functions of mcp in scripts. A namespace or a tool without a
// namespace cannot have these names: mcp.tools would be both.
var ScriptFunctions = []string{"call", "has", "namespaces", "tools"}

type menuKey struct{}

// WithMenu returns a context for requests of a client that asked for a list of tools by
// its name. Which lists there are is up to the source.
func WithMenu(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, menuKey{}, name)
}

// MenuOf returns the name of the list that the client asked for, "" if it did not.
func MenuOf(ctx context.Context) string {
	name, _ := ctx.Value(menuKey{}).(string)
	return name
}

type appsKey struct{}

// WithApps returns a context for requests of a client that shows the pages of tools.
func WithApps(ctx context.Context) context.Context { return context.WithValue(ctx, appsKey{}, true) }

// WithoutApps returns a context for what clients are listed that do not.
func WithoutApps(ctx context.Context) context.Context {
	return context.WithValue(ctx, appsKey{}, false)
}

// ShowsApps reports whether the client does.
func ShowsApps(ctx context.Context) bool {
	shows, _ := ctx.Value(appsKey{}).(bool)
	return shows
}

type readingKey struct{}

// OnlyReading returns a context for calls that may only lead to what is read-only.
func OnlyReading(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, true)
}

// IsOnlyReading reports whether ctx is within OnlyReading.
func IsOnlyReading(ctx context.Context) bool { return ctx.Value(readingKey{}) != nil }

// Scope limits what a call may lead to. It is part of the context, so that a script or
// a tool that calls tools cannot reach further than its caller. It must be safe for
// concurrent use.
type Scope struct {
	// Allows reports whether a tool exists for this caller. A Ref without a name
	// stands for a namespace: whether any tool in it may exist.
	Allows func(Ref) bool
	// Admit is called before every call of a tool that exists; its error refuses the
	// call. nil admits all.
	Admit func(Ref) error
	// Names are the names that the caller has for namespaces: the namespace of each. The
	// other functions of a scope get namespaces, not these.
	Names map[string]string
	// HideArgs excludes arguments from traces: they are private.
	HideArgs bool
}

type scopeKey struct{}

// WithScope returns ctx with a scope. Inside another scope, only what both allow is
// allowed.
func WithScope(ctx context.Context, s *Scope) context.Context {
	if outer := ScopeOf(ctx); outer != nil {
		s = outer.and(s)
	}
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of ctx, or nil: everything is allowed.
func ScopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// and returns a scope that allows what both allow.
func (s *Scope) and(inner *Scope) *Scope {
	names := s.Names
	if len(inner.Names) > 0 {
		names = maps.Clone(names)
		if names == nil {
			names = map[string]string{}
		}
		maps.Copy(names, inner.Names)
	}
	return &Scope{
		Allows: func(r Ref) bool { return s.Allows(r) && inner.Allows(r) },
		Admit: func(r Ref) error {
			for _, one := range []*Scope{inner, s} {
				if one.Admit == nil {
					continue
				}
				if err := one.Admit(r); err != nil {
					return err
				}
			}
			return nil
		},
		Names:    names,
		HideArgs: s.HideArgs || inner.HideArgs,
	}
}
