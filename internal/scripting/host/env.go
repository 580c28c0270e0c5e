package host

import (
	"context"
	"sync"
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
	_, ok := e.handler.(flowHandler)
	return ok
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
	effect.overlay = f.Path > 0 || f.Overlay
	effect.starts = f.Starts
	if path, ok := args.At(f.Path).(string); ok && e.services.Files != nil {
		effect.TempOnly = e.services.Files.InTemp(path)
		effect.file = func() (string, []byte) { return path, e.rehearsed().Files.peek(path) }
	}
	if f.Check != nil {
		effect.check = func(ctx context.Context) error {
			return f.Check(e.withParent(ctx, effect), e.rehearsed(), args)
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
		return []Value{int64(e.services.random())}, nil //nolint:gosec // bits, not a quantity
	})
	if err != nil || len(values) != 1 {
		return 0, err
	}
	seed, _ := values[0].(int64)
	return uint64(seed), nil //nolint:gosec // the same bits back
}

func qualified(module, name string) string {
	if module == "" {
		return name
	}
	return module + "." + name
}
