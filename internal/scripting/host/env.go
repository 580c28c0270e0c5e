package host

import (
	"context"
	"sync"
)

// Env is the world of one run as an engine sees it: the modules there are, and
// the door to everything outside. An engine holds no other reference to the
// world, so that what it binds cannot go round the door.
type Env struct {
	Modules  []Module
	handler  Handler
	services *Services
	numbers  numbering
	line     int // of the script just now, told by the engine in its own goroutine

	pretended func() *Services // the world of what is only rehearsed, made when it is needed
}

// NewEnv makes the environment of a run.
func NewEnv(modules []Module, handler Handler, services *Services) *Env {
	return &Env{Modules: modules, handler: handler, services: services, pretended: sync.OnceValue(services.pretend)}
}

// SetParent makes the environment that of a run which another one asked for, so that
// its effects are numbered within the other's.
func (e *Env) SetParent(parent *Parent) {
	e.numbers.parent, e.numbers.run = parent.seq, parent.runs.Add(1)
}

// WantsLines tells whether somebody wants to know the lines.
func (e *Env) WantsLines() bool {
	_, ok := e.handler.(flowHandler)
	return ok
}

// SetLine tells which line of the script asks next.
func (e *Env) SetLine(line int) { e.line = line }

// Call runs a host function for a script: a pure one directly, an effect through
// the door. module is the global it was reached by, for messages.
func (e *Env) Call(ctx context.Context, module string, f *Func, values []Value) ([]Value, error) {
	return e.Start(module, f, values)(ctx)
}

// Start is the first half of Call: it gives the effect its number, in the
// goroutine that runs the script. The function it returns does the rest and may
// run in another one, beside others.
func (e *Env) Start(module string, f *Func, values []Value) func(context.Context) ([]Value, error) {
	args := Args{Func: qualified(module, f.Name), Values: values}
	if f.Pure != nil {
		return func(context.Context) ([]Value, error) { return f.Pure(args) }
	}
	effect := e.effect(args.Func, e.kind(f, args), values)
	effect.Line = e.line
	effect.overlay = f.Path > 0 || f.Overlay
	if path, ok := args.At(f.Path).(string); ok && e.services.Files != nil {
		effect.TempOnly = e.services.Files.InTemp(path)
	}
	return func(ctx context.Context) ([]Value, error) { return e.pass(ctx, f, effect, args) }
}

func (e *Env) kind(f *Func, args Args) Kind {
	if f.Classify != nil {
		return f.Classify(e.services, args)
	}
	return f.Kind
}

func (e *Env) pass(ctx context.Context, f *Func, effect Effect, args Args) ([]Value, error) {
	return e.handler.Handle(ctx, effect, func(ctx context.Context) ([]Value, error) {
		services := e.services
		if pretending(ctx) {
			services = e.pretended()
		}
		return f.Effect(withParent(ctx, e.handler, effect), services, args)
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

// Seed starts the script's random numbers. It passes the door like every other
// moment, so that a replay draws the same.
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
