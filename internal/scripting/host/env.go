package host

import (
	"context"
	"sync"
)

// Env is the world of one run as an engine sees it: the modules there are, and
// the door to everything outside. An engine holds no other reference to the
// world, so that what it binds cannot go round the door.
type Env struct {
	Modules []Module
	door    Door
	world   *World
	numbers numbering
	line    int // of the script just now, told by the engine in its own goroutine

	pretended func() *World // the world of what is only rehearsed, made when it is needed
}

// NewEnv makes the environment of a run.
func NewEnv(modules []Module, door Door, world *World) *Env {
	return &Env{Modules: modules, door: door, world: world, pretended: sync.OnceValue(world.pretend)}
}

// Inside makes the environment that of a run which another one asked for, so that
// its effects are numbered within the other's.
func (e *Env) Inside(outer *Outer) {
	e.numbers.parent, e.numbers.run = outer.seq, outer.runs.Add(1)
}

// Follows tells whether somebody wants to know the lines.
func (e *Env) Follows() bool {
	_, ok := e.door.(followed)
	return ok
}

// At tells which line of the script asks next.
func (e *Env) At(line int) { e.line = line }

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
	effect.aside = f.Path > 0 || f.Aside
	if path, ok := args.At(f.Path).(string); ok && e.world.Files != nil {
		effect.Own = e.world.Files.InTemp(path)
	}
	return func(ctx context.Context) ([]Value, error) { return e.pass(ctx, f, effect, args) }
}

func (e *Env) kind(f *Func, args Args) Kind {
	if f.Classify != nil {
		return f.Classify(e.world, args)
	}
	return f.Kind
}

func (e *Env) pass(ctx context.Context, f *Func, effect Effect, args Args) ([]Value, error) {
	return e.door.Pass(ctx, effect, func(ctx context.Context) ([]Value, error) {
		world := e.world
		if pretending(ctx) {
			world = e.pretended()
		}
		return f.Effect(withOuter(ctx, e.door, effect), world, args)
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
	values, err := e.door.Pass(ctx, e.effect(seedEffect, Moment, nil), func(context.Context) ([]Value, error) {
		return []Value{int64(e.world.random())}, nil //nolint:gosec // bits, not a quantity
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
