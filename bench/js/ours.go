package main

import (
	"context"
	"encoding/json"
	"time"

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
	outcome, err := o.engine.Run(ctx, program(source), js.HostFuncs{OnSync: answer, OnCall: answer})
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

// answer implements all three functions of the host. Arguments come as an array.
func answer(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name == "rows" {
		return megabyte, nil
	}
	return args[1 : len(args)-1], nil
}
