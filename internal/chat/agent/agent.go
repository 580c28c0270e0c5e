// Package agent answers one message with a language model and tools: it asks the model,
// runs the tools that the answer asks for in parallel, sends their results back, and
// repeats this until the model asks for no more tools or a limit of the turn is reached.
// It does not depend on servers or a database: tools are a tool.Source, and what is
// remembered about a person comes with the Request.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
)

// Options are the options of an agent.
type Options struct {
	// Model answers. Required.
	Model llm.Model
	// Models are others that a request can choose; may be nil.
	Models []llm.Model
	// Tools is the source of all tools; Request.Servers restricts it for one turn.
	Tools tool.Source
	// Own reports which tools without a namespace may be used beside Core, such as
	// published scripts. nil allows none.
	Own func(name string) bool
	// Callable reports which tools without a namespace may also be called, although they
	// are not listed: the model finds them by search. nil allows none.
	Callable func(name string) bool
	// Core are the tools that are always offered if Tools has them; nil means
	// DefaultCore.
	Core []string
	// Servers reports which namespaces a request without servers may use; nil allows
	// all.
	Servers func(space string) bool
	// Asleep reports that a namespace has a server that starts with the next call.
	Asleep func(space string) bool

	// Unreachable returns, for the log, the address of a namespace that has no tools now, and
	// why; nil knows neither.
	Unreachable func(space string) (address, why string)
	// Offer is how servers' tools are offered to the model; empty means Auto.
	Offer Offer
	// Prompts replace the default texts of slots.
	Prompts Prompts
	// Limits bound every turn; zero fields mean the defaults.
	Limits Limits
	// Approved waits for the decision about a call that waits for approval, and returns
	// the result of the call; nil: the model gets the request in place of the result.
	Approved func(ctx context.Context, approval string) (tool.Result, error)
	// Budget counts what turns use and refuses what is too much; may be nil.
	Budget Budget
	// Version replaces {{version}} in prompts.
	Version string
	// Content includes message text and tool arguments in logs and spans.
	Content bool
	// Bus receives the events of turns; may be nil.
	Bus *event.Bus
	// Log gets one record per event of a turn; nil discards them.
	Log *slog.Logger
	// Tracer starts the spans of a turn; nil starts none.
	Tracer trace.Tracer
	// Meter counts tokens, cost and time; nil counts nothing.
	Meter metric.Meter
}

// DefaultCore are the tools that find and call all others.
var DefaultCore = []string{"execute_code", "get_tool_definitions", "lua_eval", "search_tools"}

// Offer is how the tools of servers are offered to the model.
type Offer string

// The ways to offer tools.
const (
	Auto   Offer = "auto"   // Direct for servers with few tools, Code for the others
	Direct Offer = "direct" // each as a tool of its own
	Code   Offer = "code"   // found by search, called from code
)

// Limits bound one turn.
type Limits struct {
	Iterations  int           // calls of the model (10)
	Calls       int           // tool calls, including those of scripts (100)
	ResultBytes int           // of one tool's result, as sent to the model (32 KiB)
	PromptBytes int           // of the whole conversation sent to the model (200 KB)
	ToolTime    time.Duration // duration of one tool call (2 min)
	DirectTools int           // number of tools that Auto offers directly, server by server (20)
}

func (l Limits) filled() Limits {
	if l.Iterations <= 0 {
		l.Iterations = 10
	}
	if l.Calls <= 0 {
		l.Calls = 100
	}
	if l.ResultBytes <= 0 {
		l.ResultBytes = 32 << 10
	}
	if l.PromptBytes <= 0 {
		l.PromptBytes = 200_000
	}
	if l.ToolTime <= 0 {
		l.ToolTime = 2 * time.Minute
	}
	if l.DirectTools <= 0 {
		l.DirectTools = 20
	}
	return l
}

// Agent answers messages. It has no state between turns and is safe for concurrent use;
// the caller makes sure that the turns of a person do not overlap.
type Agent struct {
	options Options
	log     *slog.Logger
	tracer  trace.Tracer
	meters  meters
}

// New makes an agent.
func New(o Options) (*Agent, error) {
	if o.Model == nil {
		return nil, fault.New(fault.Config, "no model is configured for the chat").
			WithHint("set ANTHROPIC_API_KEY, or [chat] provider and base_url in luanette.toml")
	}
	if err := o.Prompts.Check(); err != nil {
		return nil, err
	}
	switch o.Offer {
	case "":
		o.Offer = Auto
	case Auto, Direct, Code:
	default:
		return nil, fault.New(fault.Config, "chat.offer: %q is not a way to offer tools", o.Offer).WithHint("use auto, direct or code")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.Tracer{}
	}
	if o.Core == nil {
		o.Core = DefaultCore
	}
	o.Limits = o.Limits.filled()
	return &Agent{options: o, log: o.Log, tracer: o.Tracer, meters: newMeters(o.Meter)}, nil
}

// About identifies the model.
func (a *Agent) About() llm.About { return a.options.Model.About() }

// Models identifies the models that a request can choose, the usual one first.
func (a *Agent) Models() []llm.About {
	list := []llm.About{a.About()}
	for _, m := range a.options.Models {
		list = append(list, m.About())
	}
	return list
}

// model returns the model of a name; the usual one if it is empty or unknown.
func (a *Agent) model(name string) llm.Model {
	for _, m := range a.options.Models {
		if m.About().Model == name {
			return m
		}
	}
	return a.options.Model
}

// Turn answers one message. It passes its events to emit, which may be nil; emit is
// called by one goroutine at a time and delays the turn while it runs. Failures of tools
// and servers do not fail the turn: they are reported to the model. An error, a
// *fault.Error, means that there is no whole answer; the Reply then has the usage and the text so far.
// Cancelling ctx ends the turn with the code cancelled.
func (a *Agent) Turn(ctx context.Context, r Request, emit func(Event)) (Reply, error) {
	t := a.begin(r, emit)
	ctx, finish := t.observe(ctx)
	err := t.run(ctx)
	if err != nil && t.partial.Len() > 0 { // what was said before it ended
		t.reply.Responses = append(t.reply.Responses, t.partial.String())
	}
	t.reply.ToolCalls = int(t.calls.Load())
	finish(err)
	return t.reply, err
}

// with returns l with the fields of o that are not zero.
func (l Limits) with(o Limits) Limits {
	return Limits{
		Iterations: cmp.Or(o.Iterations, l.Iterations), Calls: cmp.Or(o.Calls, l.Calls),
		ResultBytes: cmp.Or(o.ResultBytes, l.ResultBytes), PromptBytes: cmp.Or(o.PromptBytes, l.PromptBytes), ToolTime: cmp.Or(o.ToolTime, l.ToolTime),
		DirectTools: cmp.Or(o.DirectTools, l.DirectTools),
	}
}

// Request is one message and what is known about its sender.
type Request struct {
	ID           string // request_id of every log record and span; generated if empty
	Client       string // the program that sent it (client_id); may be empty
	Org          string // may be empty
	User         string // within Org
	Conversation string // each conversation of a person has its own Lua session; may be empty
	Model        string // one of Agent.Models; empty means the usual one
	Message      string
	Attachments  []llm.Media // images, sounds and files of the message
	History      []Exchange  // sent to the model, the oldest first
	Language     string      // language of the answer, such as "de"; empty or "en" gives no instruction
	First        bool        // the person's first message: the model may greet them
	Prompts      []Prompts   // later ones take precedence: the organisation's, a mode's, the person's
	Servers      []Server    // that may be used, in the order they are shown; nil allows all
	Memory       Memory      // may be nil
	Journal      Journal     // makes the turn continue after an interruption; may be nil
	Limits       Limits      // fields that are not zero replace those of Options

	// Messages is the whole conversation of a client that keeps it itself. It replaces
	// Message and History.
	Messages     []llm.Message
	Instructions string      // of that client, in addition to the prompts
	ClientTools  ClientTools // tools that the client runs itself
	MaxTokens    int         // of one answer of the model; zero means the model's limit
}

// ClientTools are tools that the client runs itself. A call of one ends the turn: it is
// in Reply.Calls, and the client continues the conversation with its result.
type ClientTools struct {
	Tools  []llm.Tool
	Choice llm.Choice // applies until the model calls one of them
}

// Exchange is an earlier message and its answer.
type Exchange struct {
	User      string
	Assistant string
	At        time.Time // may be zero
	Away      []string  // the Reply's
}

// Away are the servers that could not be used at the last answer, which said so or knew that an
// earlier one had said so.
func (r *Request) Away() []string {
	if len(r.History) == 0 {
		return nil
	}
	return r.History[len(r.History)-1].Away
}

// Server is a server whose tools may be used.
type Server struct {
	Space string   // its namespace in Options.Tools
	ID    string   // what the model and people call the namespace; the namespace itself if empty
	Name  string   // display name; the ID if empty
	Tools []string // only these; nil allows all

	Problem string // why it cannot be connected; empty if it can
	URL     string // of one with a Problem, for the log, without secrets
}

// id returns what the server's namespace is called in this turn.
func (s Server) id() string { return cmp.Or(s.ID, s.Space) }

// Memory stores one person's notes between conversations. The agent decides what to
// store and what to remove. It is used by one goroutine at a time.
type Memory interface {
	// Load reads all sections, in any order.
	Load(ctx context.Context) ([]Section, error)
	// Save replaces them all.
	Save(ctx context.Context, sections []Section) error
}

// Section is one note.
type Section struct {
	Name    string    `json:"name"`
	Text    string    `json:"text"`
	Pinned  bool      `json:"pinned"` // never removed to make space
	Updated time.Time `json:"updated"`
}

// luaEval runs Lua, in the session of the conversation.
var luaEval = tool.Ref{Name: "lua_eval"}

const sessionKey = "session_id"

// luaSession is the session of a conversation, looked up on first use.
type luaSession struct {
	once sync.Once
	id   string
	err  error
}

// arguments returns the arguments of a tool call: the model's, with the session added
// for lua_eval.
func (t *turn) arguments(ctx context.Context, ref tool.Ref, input json.RawMessage) (json.RawMessage, error) {
	if ref != luaEval || !rawjson.IsObject(input) {
		return input, nil
	}
	t.session.once.Do(func() { t.session.id, t.session.err = t.findSession(ctx) })
	if t.session.err != nil {
		return nil, t.session.err
	}
	if t.session.id == "" {
		return input, nil
	}
	return rawjson.SetText(input, sessionKey, t.session.id), nil
}

// sessionName returns the name of the conversation's session.
func (t *turn) sessionName() string {
	if t.request.Conversation == "" {
		return "chat"
	}
	return "chat:" + t.request.Conversation
}

// findSession finds or creates the conversation's session. If sessions are not
// available, code runs without one.
func (t *turn) findSession(ctx context.Context) (string, error) {
	sessions, err := t.sessions(ctx, func(name string) bool { return name == t.sessionName() })
	if err != nil {
		return "", err
	}
	if len(sessions) > 0 {
		return sessions[0], nil
	}
	made, err := t.ownTool(ctx, "session_create", map[string]string{"name": t.sessionName()})
	if err != nil {
		return "", err
	}
	var session struct {
		ID string `json:"session_id"`
	}
	_ = json.Unmarshal(made, &session) // if creation failed, code runs without one
	return session.ID, nil
}

// sessions returns the person's sessions with that name.
func (t *turn) sessions(ctx context.Context, wanted func(name string) bool) (ids []string, err error) {
	listed, err := t.ownTool(ctx, "session_list", struct{}{})
	if err != nil {
		return nil, err
	}
	var list struct {
		Sessions []struct {
			ID   string `json:"session_id"`
			Name string
		}
	}
	if json.Unmarshal(listed, &list) != nil {
		return nil, nil //nolint:nilerr // who lists no sessions has none of ours
	}
	for _, s := range list.Sessions {
		if wanted(s.Name) {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// ownTool calls a built-in tool on behalf of the person. A missing tool returns nothing.
func (t *turn) ownTool(ctx context.Context, name string, args any) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	result, err := t.agent.options.Tools.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: raw, Caller: t.caller()})
	if err != nil {
		return nil, nil //nolint:nilerr // without sessions, code runs without them
	}
	view, err := result.View()
	if err != nil || view.IsError {
		return nil, err
	}
	return view.Structured, nil
}

// Reset closes the Lua session of a conversation.
func (a *Agent) Reset(ctx context.Context, org, user, conversation string) error {
	t := a.begin(Request{Org: org, User: user, Conversation: conversation}, nil)
	return t.reset(ctx, func(name string) bool { return name == t.sessionName() })
}

// Forget closes the Lua sessions of all conversations of a person.
func (a *Agent) Forget(ctx context.Context, org, user string) error {
	t := a.begin(Request{Org: org, User: user}, nil)
	return t.reset(ctx, func(name string) bool { return name == t.sessionName() || strings.HasPrefix(name, t.sessionName()+":") })
}

func (t *turn) reset(ctx context.Context, wanted func(name string) bool) error {
	if t.agent.options.Tools == nil {
		return nil
	}
	ids, err := t.sessions(ctx, wanted)
	for _, id := range ids {
		_, failed := t.ownTool(ctx, "session_reset", map[string]string{sessionKey: id})
		err = errors.Join(err, failed)
	}
	return err
}

// Budget counts what turns use, and refuses requests to the model beyond a limit.
type Budget interface {
	// Check is called before each request to the model; an error ends the turn.
	Check(ctx context.Context, who Spender) error
	// Spend is called after each request to the model, also if it failed.
	Spend(ctx context.Context, who Spender, model string, u llm.Usage) error
}

// Spender is who uses something, and for what.
type Spender struct {
	Turn      string // Request.ID
	Org, User string
}

// refusedError is a request to the model that the budget refused.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

func (t *turn) spender() Spender {
	return Spender{Turn: t.request.ID, Org: t.request.Org, User: t.request.User}
}

func (t *turn) checkBudget(ctx context.Context) error {
	if t.agent.options.Budget == nil {
		return nil
	}
	err := t.agent.options.Budget.Check(ctx, t.spender())
	if fault.CodeOf(err) == fault.Limit {
		return refusedError{err}
	}
	return err
}

// spend counts an answer. The answer is there, so it is passed on even if that fails.
func (t *turn) spend(ctx context.Context, a *llm.Answer) {
	if t.agent.options.Budget == nil {
		return
	}
	if err := t.agent.options.Budget.Spend(ctx, t.spender(), cmp.Or(a.Model, t.reply.Model), a.Usage); err != nil {
		t.note(ctx, slog.LevelError, "usage_error", slog.String("error", loggable(err)))
	}
}

// stopAtBudget ends a turn that has already called tools with an answer that says why,
// so that what was done is not lost. Other errors are returned.
func (t *turn) stopAtBudget(err error) (done bool, _ error) {
	var refused refusedError
	if !errors.As(err, &refused) || t.reply.Iterations == 1 {
		return false, err
	}
	t.add("I stopped here: %v. What is above may be incomplete.", err)
	t.notice("budget", "%v", err)
	t.reply.Stop = StopBudget
	return true, nil
}
