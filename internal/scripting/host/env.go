package host

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Env is what an engine sees of one run: its modules and the Handler for effects. An
// engine has no other access to the Services, so a bound function cannot bypass the
// Handler.
type Env struct {
	Modules  []Module
	handler  Handler
	services *Services
	numbers  numbering
	line     int // current line of the script, set by the engine in the script's goroutine

	job string // the job that the run is part of; "" if it is none

	meter Meter // may be nil

	rehearsed func() *Services // the Services of effects that are only rehearsed, made on first use
}

// NewEnv makes the environment of a run.
func NewEnv(modules []Module, handler Handler, services *Services) *Env {
	return &Env{Modules: modules, handler: handler, services: services, job: services.Job, rehearsed: sync.OnceValue(services.rehearse)}
}

// SetParent makes this the environment of a nested run. The numbers of its effects are
// derived from those of the parent.
func (e *Env) SetParent(parent *Parent) {
	e.numbers.parent, e.numbers.run = parent.seq, parent.runs.Add(1)
	e.job = parent.job
}

// Meter measures the script of a run while it computes. Pause is called when it begins to
// wait for an effect, and Resume afterwards, on the goroutine that runs it.
type Meter interface {
	Pause()
	Resume()
}

// SetMeter makes calls pause a meter while their effects are carried out.
func (e *Env) SetMeter(m Meter) { e.meter = m }

// WantsLines reports whether the engine should call SetLine before each effect.
func (e *Env) WantsLines() bool {
	a, ok := e.handler.(around)
	return ok && a.lines
}

// SetLine sets the script line of the next effect.
func (e *Env) SetLine(line int) { e.line = line }

// Call runs a host function for a script: a pure one directly, an effect through the
// Handler. module is the global it was called on, for messages.
func (e *Env) Call(ctx context.Context, module string, f *Func, values []Value) ([]Value, error) {
	run := e.Start(module, f, values)
	if e.meter != nil && f.leaves() {
		e.meter.Pause()
		defer e.meter.Resume()
	}
	return run(ctx)
}

// leaves reports whether a call may wait for something: functions that compute, report or
// read a clock do not.
func (f *Func) leaves() bool {
	return f.Pure == nil && (f.Waits || f.Classify != nil || f.Kind != Observe && f.Kind != Nondeterministic)
}

// Start is the first half of Call: it numbers the effect in the goroutine that runs the
// script. The returned function does the rest and may run in another goroutine, in
// parallel with others.
func (e *Env) Start(module string, f *Func, values []Value) func(context.Context) ([]Value, error) {
	args := Args{Func: qualified(module, f.Name), Values: values}
	if f.Pure != nil {
		return func(context.Context) ([]Value, error) { return f.Pure(args) }
	}
	kind := f.Kind
	if f.Classify != nil {
		kind = Write // until the call is classified
	}
	effect := e.effect(args.Func, kind, values)
	effect.Line = e.line
	effect.f = f
	if path, ok := args.At(f.Path).(string); ok && e.services.Files != nil {
		effect.TempOnly = e.services.Files.InTemp(path)
		effect.file = func() fileState { return e.rehearsed().Files.state(path) }
		effect.onFile = &fileEffect{e, f, args, path}
	}
	switch {
	case f.Check != nil:
		effect.check = func(ctx context.Context) error {
			return f.Check(e.withParent(ctx, effect), e.rehearsed(), args)
		}
	case f.inOverlay():
		effect.check = func(ctx context.Context) error {
			_, err := f.Effect(ctx, e.services.rehearse(), args) // in an overlay that nothing else uses
			return err
		}
	}
	return func(ctx context.Context) ([]Value, error) {
		if f.Classify != nil {
			effect.Kind = f.Classify(ctx, e.services, args)
		}
		return e.handle(ctx, f, effect, args)
	}
}

func (e *Env) handle(ctx context.Context, f *Func, effect Effect, args Args) ([]Value, error) {
	return e.handler.Handle(ctx, effect, func(ctx context.Context) ([]Value, error) {
		services := e.services
		if inRehearsal(ctx) {
			services = e.rehearsed()
		}
		return f.Effect(e.withParent(ctx, effect), services, args)
	})
}

func (e *Env) effect(name string, kind Kind, values []Value) Effect {
	effect := Effect{Name: name, Kind: kind, Args: values}
	if kind != Observe {
		effect.Seq = e.numbers.next()
	}
	return effect
}

const seedEffect = "random.seed"

// Seed returns the seed of the script's random numbers. It passes the Handler like every
// other nondeterministic effect, so that a replay draws the same numbers.
func (e *Env) Seed(ctx context.Context) (uint64, error) {
	values, err := e.handler.Handle(ctx, e.effect(seedEffect, Nondeterministic, nil), func(context.Context) ([]Value, error) {
		return []Value{int64(e.services.random())}, nil // bits, not a quantity
	})
	if err != nil || len(values) != 1 {
		return 0, err
	}
	seed, _ := values[0].(int64)
	return uint64(seed), nil // the same bits back
}

func qualified(module, name string) string {
	if module == "" {
		return name
	}
	return module + "." + name
}

// Parent is the run that called the one about to start: a script that calls another
// script as a tool. The effects of the nested run pass the parent's Handler.
type Parent struct {
	Handler Handler
	seq     int64 // of the effect that called
	tool    tool.Ref
	line    int
	job     string // the job that the run is part of; "" if it is none
	runs    atomic.Int64
}

type parentKey struct{}

func (e *Env) withParent(ctx context.Context, effect Effect) context.Context {
	ref, _ := effect.Tool()
	return context.WithValue(ctx, parentKey{}, &Parent{Handler: e.handler, seq: effect.Seq, tool: ref, line: effect.Line, job: e.job})
}

// Tool returns the tool that the parent's script called, which may be one of ours that
// calls others.
func (o *Parent) Tool() tool.Ref { return o.tool }

// Line returns the line of that call; 0 if unknown.
func (o *Parent) Line() int { return o.line }

// ParentOf returns the run that ctx belongs to, or nil if no script made the call.
func ParentOf(ctx context.Context) *Parent {
	parent, _ := ctx.Value(parentKey{}).(*Parent)
	return parent
}

// nestedFlag marks the numbers of effects of nested runs. They stay below 2^53, so that
// every JSON reader can hold them.
const nestedFlag = 1 << 52

// numbering numbers the effects of a run: 1, 2, 3 … For a nested run, the numbers are
// derived from the parent's effect, so that they are unique and stay the same when the
// parent runs again.
type numbering struct {
	parent, run int64
	count       atomic.Int64
}

func (n *numbering) next() int64 {
	number := n.count.Add(1)
	if n.run == 0 {
		return number
	}
	var key [24]byte
	binary.BigEndian.PutUint64(key[:], uint64(n.parent)) // bits, not a quantity
	binary.BigEndian.PutUint64(key[8:], uint64(n.run))   // likewise
	binary.BigEndian.PutUint64(key[16:], uint64(number)) // likewise
	sum := fnv.New64a()
	_, _ = sum.Write(key[:])
	return nestedFlag | int64(sum.Sum64()&(nestedFlag-1)) // 52 bits
}

// Nested reports whether the step was made by a nested run.
func (s Step) Nested() bool { return s.Seq&nestedFlag != 0 }

// Effect is one read or change outside the script that the script asks for.
type Effect struct {
	Seq  int64  // 1, 2, 3 … in the order the script asked, also for effects that then run in parallel; 0 for observations
	Name string // "mcp.call", "fs.write"
	Kind Kind
	Args []Value

	Line     int                         // of the script; 0 if unknown
	TempOnly bool                        // changes only the run's temp folder, which is removed with the run
	file     func() fileState            // in a rehearsal: the file it changes, as it is now; may be nil
	onFile   *fileEffect                 // if it changes one file; otherwise nil
	check    func(context.Context) error // returns why it would be refused, without carrying it out; may be nil
	f        *Func                       // nil if it is not a call of a function
}

// function returns the function that was called; one without properties if there is none.
func (e Effect) function() *Func {
	if e.f == nil {
		return &Func{}
	}
	return e.f
}

// subject names the effect in error messages. Tools are called through functions of the
// mcp module whose names the script's author never wrote.
func (e Effect) subject() string {
	if strings.HasPrefix(e.Name, "mcp.") {
		return "calling tools (mcp)"
	}
	return e.Name
}

// Handler decides how effects are carried out. It is called by the goroutine that runs
// the script, or by several at once when the script runs effects in parallel.
type Handler interface {
	// Handle answers the effect, by calling live, which carries it out, or in another
	// way.
	Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error)
}

// Live carries out every effect.
func Live() Handler { return liveHandler{} }

type liveHandler struct{}

func (liveHandler) Handle(ctx context.Context, _ Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	return live(ctx)
}

// DenyEffects refuses everything but observations and the random seed. It is for
// inspecting a script, as when describe() is called.
func DenyEffects(doing string) Handler { return denyHandler{doing} }

type denyHandler struct{ doing string }

func (d denyHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe || e.Name == seedEffect {
		return live(ctx)
	}
	return nil, fault.New(fault.Denied, "%s is not allowed while %s", e.subject(), d.doing).
		WithHint("move it into main(params): the script's top level and describe() must have no effects")
}

// around is a Handler that does something before or after another.
type around struct {
	inner  Handler
	lines  bool // it wants to know the lines of effects
	handle func(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error)
}

func (a around) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	return a.handle(ctx, e, live)
}

// Rehearsing implements the check of the function Rehearsing.
func (a around) Rehearsing() bool { return Rehearsing(a.inner) }

// LimitEffects refuses effects after limit of them; observations and nondeterministic
// effects do not count.
func LimitEffects(inner Handler, limit int64) Handler {
	var used atomic.Int64
	return around{inner: inner, handle: func(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
		if e.Kind != Observe && e.Kind != Nondeterministic && used.Add(1) > limit {
			return nil, fault.New(fault.Limit, "%s: the run's budget of %d calls is used up", e.Name, limit).
				WithHint("do more per call, or split the work over several runs")
		}
		return inner.Handle(ctx, e, live)
	}}
}

// Flow tracks what a run has read and decides where that data may go. It is safe for
// concurrent use.
type Flow interface {
	// Begin gives ctx a record of what is read from now on, unless it has one: a nested
	// run shares the record of its parent.
	Begin(ctx context.Context) context.Context
	// Detach returns ctx without such a record, for the run of somebody else.
	Detach(ctx context.Context) context.Context
	// Recall adds what Remember stored under name, such as "job:…", to the record.
	Recall(ctx context.Context, name string) error
	// Remember stores the record under name.
	Remember(ctx context.Context, name string) error
	// Check is called before an effect; an error refuses it.
	Check(ctx context.Context, e Effect) error
	// Answered is called after an effect was answered, also from a journal.
	Answered(ctx context.Context, e Effect)
}

// TrackFlow asks flow about every effect before it is passed to inner.
func TrackFlow(inner Handler, flow Flow) Handler {
	if flow == nil {
		return inner
	}
	return around{inner: inner, lines: true, handle: func(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
		if err := flow.Check(ctx, e); err != nil {
			return nil, err
		}
		defer flow.Answered(ctx, e)
		return inner.Handle(ctx, e, live)
	}}
}

// ToolCounter counts the tools a run calls and refuses calls after Limit of them; 0
// means no limit. It is safe for concurrent use.
type ToolCounter struct {
	Limit int64
	made  atomic.Int64

	mu   sync.Mutex
	open map[int64]string // calls that have not ended, or that the end of the run cut off, by number
}

// Open names the tools of calls that had not ended when the run did, in the order of the
// calls, each once.
func (c *ToolCounter) Open() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(c.open)) {
		if name := c.open[number]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// begin notes that a call has begun; the returned function, that it has ended.
func (c *ToolCounter) begin(number int64, name string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[int64]string{}
	}
	c.open[number] = name
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, number)
	}
}

// Count returns how many calls were allowed.
func (c *ToolCounter) Count() int64 {
	if made := c.made.Load(); c.Limit == 0 || made <= c.Limit {
		return made
	}
	return c.Limit
}

// Wrap counts the tool calls that are passed to inner.
func (c *ToolCounter) Wrap(inner Handler) Handler {
	return around{inner: inner, handle: func(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
		if e.Name != callEffect {
			return inner.Handle(ctx, e, live)
		}
		made := c.made.Add(1)
		if c.Limit > 0 && made > c.Limit {
			return nil, fault.New(fault.Limit, "%s: the run's limit of %d tool calls is used up", title(e.Name, e.Args), c.Limit).
				WithHint("use tools that do more per call, or split the work over several runs").
				WithDetails(map[string]int64{"calls_made": c.Limit, "limit": c.Limit})
		}
		end := c.begin(made, title(e.Name, e.Args))
		values, err := inner.Handle(ctx, e, live)
		if ctx.Err() == nil {
			end()
		}
		return values, err
	}}
}
