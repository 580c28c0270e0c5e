package js

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// birth is the clock while the template is built, in nanoseconds. It is fixed, so that every
// process builds the same template.
const birth = 1_763_164_799_123_456_000

// Magic numbers of the host functions given to the prelude, in the order of its parameters.
const (
	magicCall = iota // (id, name, args) starts an asynchronous call
	magicSync        // (name, args) → answer
	magicLog         // (level, text)
	magicSeed        // () seeds Math.random
	magicCount
)

const (
	wasiSuccess = 0
	wasiBadFile = 8
)

// serveWASI provides the imports of the engine. A script has no files, no environment and
// no exit; the clock is the host's; three imports carry our own calls.
func serveWASI(ctx context.Context, wasm wazero.Runtime) error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	b := wasm.NewHostModuleBuilder("wasi_snapshot_preview1")
	serve := func(name string, fn api.GoModuleFunc, params ...api.ValueType) {
		results := []api.ValueType{i32}
		if name == "proc_exit" {
			results = nil
		}
		b.NewFunctionBuilder().WithGoModuleFunction(fn, params, results).Export(name)
	}
	serve(importCall, hostCall, i32, i32, i32, i32, i32, i32)
	serve(importPoll, hostPoll, i32, i32, i32)
	serve(importReject, hostReject, i32, i32, i32, i32, i64, i64, i32)
	serve("clock_time_get", hostClock, i32, i64, i32)
	serve("environ_sizes_get", noEnvironment, i32, i32)
	serve("environ_get", succeed, i32, i32)
	serve("proc_exit", exit, i32)
	for name, params := range map[string][]api.ValueType{
		"fd_close":              {i32},
		"fd_fdstat_get":         {i32, i32},
		"fd_fdstat_set_flags":   {i32, i32},
		"fd_prestat_get":        {i32, i32},
		"fd_prestat_dir_name":   {i32, i32, i32},
		"fd_read":               {i32, i32, i32, i32},
		"fd_readdir":            {i32, i32, i32, i64, i32},
		"fd_seek":               {i32, i64, i32, i32},
		"fd_write":              {i32, i32, i32, i32},
		"path_create_directory": {i32, i32, i32},
		"path_filestat_get":     {i32, i32, i32, i32, i32},
		"path_open":             {i32, i32, i32, i32, i32, i64, i64, i32, i32},
		"path_remove_directory": {i32, i32, i32},
		"poll_oneoff":           {i32, i32, i32, i32},
	} {
		serve(name, refuse, params...)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func refuse(_ context.Context, _ api.Module, stack []uint64)  { stack[0] = wasiBadFile }
func succeed(_ context.Context, _ api.Module, stack []uint64) { stack[0] = wasiSuccess }

// exit replaces abort() of the engine: it becomes a trap.
func exit(context.Context, api.Module, []uint64) { panic("the engine aborted") }

func noEnvironment(_ context.Context, m api.Module, stack []uint64) {
	m.Memory().WriteUint32Le(uint32(stack[0]), 0)
	m.Memory().WriteUint32Le(uint32(stack[1]), 0)
	stack[0] = wasiSuccess
}

func instanceOf(ctx context.Context) *instance { return ctx.Value(instanceKey{}).(*instance) }

// hostClock serves Date.now, new Date and performance.now.
func hostClock(ctx context.Context, m api.Module, stack []uint64) {
	now := uint64(birth)
	if r := instanceOf(ctx).run; r != nil {
		now = uint64(r.host.Now(ctx).UnixNano())
	}
	m.Memory().WriteUint64Le(uint32(stack[2]), now)
	stack[0] = wasiSuccess
}

// hostPoll returns whether the guest must stop. The guest calls it every ten thousand
// branches of a script and every 16,384 iterations of native loops.
func hostPoll(ctx context.Context, _ api.Module, stack []uint64) {
	native := uint32(stack[0]) == 1
	stack[0] = 0
	if r := instanceOf(ctx).run; r != nil && r.watch.poll(ctx, native) {
		stack[0] = 1
	}
}

// hostReject tracks promises that are rejected without a handler.
func hostReject(ctx context.Context, _ api.Module, stack []uint64) {
	in, handled, promise, reason := instanceOf(ctx), uint32(stack[0]), value(stack[4]), value(stack[5])
	stack[0] = 0
	if in.run != nil {
		in.run.trackRejection(ctx, promise, reason, handled != 0)
	}
}

// hostCall serves the functions given to the prelude. The guest's arguments are JSValues
// at argv; the answer is written to scratch.
func hostCall(ctx context.Context, _ api.Module, stack []uint64) {
	in := instanceOf(ctx)
	argc, argv, magic := uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	args := make([]value, 3)
	raw := in.view(argv, 8*uint64(argc))
	for i := range min(int(argc), len(args)) {
		args[i] = value(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	answer := undefined
	if in.run != nil {
		answer = in.run.serve(ctx, magic, args)
	}
	const slot = 32 // of scratch; the first bytes serve text
	in.writeValue(in.scratch+slot, answer)
	stack[0] = uint64(in.scratch + slot)
}

// integer reads a value that the prelude passes as a small integer.
func (v value) integer() int { return int(int32(v)) }
