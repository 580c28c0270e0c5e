// Package agent answers one message of one person with the help of every tool at
// hand: it asks a model, runs the tools the model asks for, side by side, hands
// back what they said, and goes on until the model has nothing more to ask or the
// turn's bounds are reached. It knows no server and no database: tools are a
// tool.Source, what is remembered about a person comes with the Request.
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

// Options are an agent's choices.
type Options struct {
	// Model answers. Required.
	Model llm.Model
	// Tools is every tool there is; Request.Servers narrows it for one turn.
	Tools tool.Source
	// Own tells which tools without a namespace may be used beside Core: published
	// scripts, say. nil allows none.
	Own func(name string) bool
	// Core are the tools that are always offered, as far as Tools has them; nil means
	// DefaultCore.
	Core []string
	// Servers tells which namespaces a request that names none may use; nil allows
	// all.
	Servers func(space string) bool
	// Offer is how servers' tools are offered to the model; empty means Auto.
	Offer Offer
	// Prompts replace the defaults of slots for everybody.
	Prompts Prompts
	// Limits bound every turn; zero fields mean the defaults.
	Limits Limits
	// Version stands for {{version}} in prompts.
	Version string
	// Content lets message text and tool arguments into logs and spans.
	Content bool
	// Bus is told of turns and of what they cost; nil tells nobody.
	Bus *event.Bus
	// Log gets one record per event of a turn; nil discards them.
	Log *slog.Logger
	// Tracer starts the spans of a turn; nil starts none.
	Tracer trace.Tracer
	// Meter counts tokens, cost and time; nil counts nothing.
	Meter metric.Meter
}

// DefaultCore are the tools by which all others are found and used.
var DefaultCore = []string{"execute_code", "get_tool_definitions", "lua_eval", "search_tools"}

// Offer is how the tools of servers are offered to the model.
type Offer string

// The ways to offer them.
const (
	Auto   Offer = "auto"   // Direct for servers with few tools, Code for the others
	Direct Offer = "direct" // each as a tool of its own
	Code   Offer = "code"   // found by search, called from code
)

// Limits bound one turn.
type Limits struct {
	Iterations  int           // how often the model is asked (10)
	Calls       int           // how many tools are called, those that scripts call included (100)
	ResultBytes int           // of one tool's answer, shown to the model (32 KiB)
	PromptBytes int           // of the whole conversation sent to the model (200 KB)
	ToolTime    time.Duration // how long one tool may take (2 min)
	DirectTools int           // how many tools Auto offers directly: server after server, as far as they fit (20)
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

// Agent answers messages. It keeps nothing between turns and is safe for
// concurrent use; whoever calls it sees to it that a person's turns come one
// after another.
type Agent struct {
	options Options
	log     *slog.Logger
	tracer  trace.Tracer
	meters  meters
}

// New makes an agent.
func New(o Options) (*Agent, error) {
	if o.Model == nil {
		return nil, fault.New(fault.Config, "no model to chat with").
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
		return nil, fault.New(fault.Config, "chat.offer: %q is no way to offer tools", o.Offer).WithHint("use auto, direct or code")
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

// Turn answers one message. What happens on the way is told to emit, which may be
// nil; it is called by one goroutine at a time and holds up the turn as long as it
// takes. Tools and servers that fail do not fail the turn: the model is told. An
// error, a *fault.Error, means that there is no answer; the Reply then says what
// was used up all the same. Cancelling ctx ends the turn with cancelled.
func (a *Agent) Turn(ctx context.Context, r Request, emit func(Event)) (Reply, error) {
	t := a.begin(r, emit)
	ctx, finish := t.observe(ctx)
	err := t.run(ctx)
	t.reply.ToolCalls = int(t.calls.Load())
	finish(err)
	return t.reply, err
}

// with is l with the fields of o that are not zero.
func (l Limits) with(o Limits) Limits {
	return Limits{
		Iterations: cmp.Or(o.Iterations, l.Iterations), Calls: cmp.Or(o.Calls, l.Calls),
		ResultBytes: cmp.Or(o.ResultBytes, l.ResultBytes), PromptBytes: cmp.Or(o.PromptBytes, l.PromptBytes), ToolTime: cmp.Or(o.ToolTime, l.ToolTime),
		DirectTools: cmp.Or(o.DirectTools, l.DirectTools),
	}
}
