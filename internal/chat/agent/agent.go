// Package agent answers one message with a language model and tools: it asks the model,
// runs the tools that the answer asks for in parallel, sends their results back, and
// repeats this until the model asks for no more tools or a limit of the turn is reached.
// It does not depend on servers or a database: tools are a tool.Source, and what is
// remembered about a person comes with the Request.
package agent

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/fault"
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
