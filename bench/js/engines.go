package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dop251/goja"

	"github.com/luanette/luanette/internal/scripting/js"
)

// ours runs scripts with the engine of Luanette.
type ours struct{ engine *js.Engine }

// newOurs makes an engine whose pool keeps every instance.
func newOurs() (ours, error) {
	e, err := js.NewEngine(js.Options{PoolSize: idle})
	return ours{e}, err
}

func (o ours) run(ctx context.Context, source string) (string, error) {
	outcome, err := o.engine.Run(ctx, program(source), functions(answer))
	return string(outcome.Result), err
}

// program raises the limits that the scripts would exceed.
func program(source string) js.Program {
	return js.Program{
		Source: source,
		Funcs:  []js.Func{{Name: "echo", Sync: true}, {Name: "later"}, {Name: "rows", Sync: true}},
		Limits: js.Limits{Time: time.Hour, Output: 4 << 20, Calls: 1 << 20},
	}
}

// functions are a host whose functions are all one.
type functions func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)

func (f functions) Start(name string, args json.RawMessage) func(context.Context) (json.RawMessage, error) {
	return func(ctx context.Context) (json.RawMessage, error) { return f(ctx, name, args) }
}

func (f functions) CallSync(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	return f(ctx, name, args)
}

func (functions) Next(ctx context.Context, first func(context.Context) (int, error)) (int, error) {
	return first(ctx)
}

func (functions) Now(context.Context) time.Time { return time.Now() }

func (functions) Seed(context.Context) uint64 { return 1 }

// answer implements all three functions of the host. Arguments come as an array.
func answer(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name == "rows" {
		return megabyte, nil
	}
	return args[1 : len(args)-1], nil
}

// other runs scripts with goja as its documentation recommends: promises are resolved on
// the goroutine of the script, which receives answers through a channel.
type other struct{}

func (other) run(ctx context.Context, source string) (string, error) {
	r, err := newRealm()
	if err != nil {
		return "", err
	}
	return r.run(ctx, source)
}

// realm is a goja runtime with the functions of the host.
type realm struct {
	vm               *goja.Runtime
	parse, stringify goja.Callable
	answers          chan func() error
}

func newRealm() (*realm, error) {
	r := &realm{vm: goja.New(), answers: make(chan func() error, 1)}
	converter := r.vm.Get("JSON").ToObject(r.vm)
	r.parse, _ = goja.AssertFunction(converter.Get("parse"))
	r.stringify, _ = goja.AssertFunction(converter.Get("stringify"))
	return r, errors.Join(r.vm.Set("echo", r.echo), r.vm.Set("later", r.later), r.vm.Set("rows", r.rows))
}

func (r *realm) echo(call goja.FunctionCall) goja.Value {
	return r.value(r.text(call.Argument(0)))
}

func (r *realm) later(call goja.FunctionCall) goja.Value {
	promise, resolve, _ := r.vm.NewPromise()
	text := r.text(call.Argument(0))
	go func() {
		r.answers <- func() error { return resolve(r.value(text)) }
	}()
	return r.vm.ToValue(promise)
}

func (r *realm) rows(goja.FunctionCall) goja.Value { return r.value(string(megabyte)) }

// text and value convert to JSON and back. Functions of the host throw by a panic with an
// exception.
func (r *realm) text(v goja.Value) string {
	text, err := r.stringify(goja.Undefined(), v)
	if err != nil {
		panic(err)
	}
	return text.String()
}

func (r *realm) value(text string) goja.Value {
	v, err := r.parse(goja.Undefined(), r.vm.ToValue(text))
	if err != nil {
		panic(err)
	}
	return v
}

func (r *realm) run(ctx context.Context, source string) (string, error) {
	v, err := r.vm.RunString(source)
	if err != nil {
		return "", err
	}
	if promise, ok := v.Export().(*goja.Promise); ok {
		if err := r.settle(ctx, promise); err != nil {
			return "", err
		}
		v = promise.Result()
	}
	if goja.IsUndefined(v) {
		return "", nil
	}
	return r.text(v), nil
}

// settle resolves promises until the script's own is settled.
func (r *realm) settle(ctx context.Context, promise *goja.Promise) error {
	for promise.State() == goja.PromiseStatePending {
		select {
		case keep := <-r.answers:
			if err := keep(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if promise.State() == goja.PromiseStateRejected {
		return errors.New(promise.Result().String())
	}
	return nil
}
