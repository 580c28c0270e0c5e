package js

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// value is a JSValue as the engine passes it: 64 bits, NaN-boxed, the tag in the upper
// half. Objects and strings are counted references that must be freed.
type value uint64

const (
	tagException = 6
	undefined    = value(3) << 32
)

func (v value) tag() int32        { return int32(v >> 32) }
func (v value) isException() bool { return v.tag() == tagException }

// function is an exported function of the engine.
type function int

// The exported functions that are used.
const (
	fnMalloc function = iota
	fnFree
	fnCalloc
	fnInitialize
	fnNewRuntime
	fnNewContext
	fnSetCanBlock
	fnSetMaxStackSize
	fnSetInterruptHandler
	fnSetRejectionTracker
	fnNewCFunction
	fnGlobalObject
	fnEval
	fnEvalFunction
	fnCall
	fnExecutePendingJob
	fnGetException
	fnGetPropertyStr
	fnDeleteProperty
	fnNewAtomLen
	fnFreeAtom
	fnNewStringLen
	fnToCString
	fnFreeCString
	fnDupValue
	fnFreeValue
	fnIsPromise
	fnPromiseState
	fnPromiseResult
	functionCount
)

// exports holds the name of each function, and whether it returns a JSValue. The others
// return 32 bits or nothing.
var exports = [functionCount]struct {
	name  string
	value bool
}{
	fnMalloc:              {"malloc", false},
	fnFree:                {"free", false},
	fnCalloc:              {"calloc", false},
	fnInitialize:          {"_initialize", false},
	fnNewRuntime:          {"JS_NewRuntime", false},
	fnNewContext:          {"JS_NewContext", false},
	fnSetCanBlock:         {"JS_SetCanBlock", false},
	fnSetMaxStackSize:     {"JS_SetMaxStackSize", false},
	fnSetInterruptHandler: {"JS_SetInterruptHandler", false},
	fnSetRejectionTracker: {"JS_SetHostPromiseRejectionTracker", false},
	fnNewCFunction:        {"JS_NewCFunction2", true},
	fnGlobalObject:        {"JS_GetGlobalObject", true},
	fnEval:                {"JS_Eval", true},
	fnEvalFunction:        {"JS_EvalFunction", true},
	fnCall:                {"JS_Call", true},
	fnExecutePendingJob:   {"JS_ExecutePendingJob", false},
	fnGetException:        {"JS_GetException", true},
	fnGetPropertyStr:      {"JS_GetPropertyStr", true},
	fnDeleteProperty:      {"JS_DeleteProperty", false},
	fnNewAtomLen:          {"JS_NewAtomLen", false},
	fnFreeAtom:            {"JS_FreeAtom", false},
	fnNewStringLen:        {"JS_NewStringLen", true},
	fnToCString:           {"JS_ToCStringLen2", false},
	fnFreeCString:         {"JS_FreeCString", false},
	fnDupValue:            {"JS_DupValue", true},
	fnFreeValue:           {"JS_FreeValue", false},
	fnIsPromise:           {"JS_IsPromise", false},
	fnPromiseState:        {"JS_PromiseState", false},
	fnPromiseResult:       {"JS_PromiseResult", true},
}

// instance is one engine with its own linear memory. It is used by one goroutine at a
// time. After a trap it is dead: its memory is undefined and it must be closed.
type instance struct {
	handles
	module    api.Module
	memory    *region
	functions [functionCount]api.Function
	dead      bool
	run       *run // receives host calls and polls; nil while the template is built
}

// handles are addresses and values inside the template. All images derive from one
// template and share them.
type handles struct {
	runtime, context uint64
	scratch          uint32 // 64 bytes for results passed by address
	stackTop         uint32
	stackFloor       uint32
	seed             uint32 // address of the state of Math.random
	lexicals         value  // the object that holds top-level let, const and class
	begin            value  // functions of the prelude
	settle           value
	encode           value
	describe         value
	finish           value
	enter            value
}

// errNoGuestMemory means that the script's memory is too full for the engine's own
// allocations.
var errNoGuestMemory = errors.New("out of memory")

// newInstance makes an instance with empty memory; boot or restore fills it.
func newInstance(ctx context.Context, b *backend, limit uint64) (*instance, error) {
	memory, err := newRegion(limit)
	if err != nil {
		return nil, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := b.wasm.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), b.compiled, config)
	if err != nil {
		memory.Free()
		return nil, fmt.Errorf("instantiate the engine: %w", err)
	}
	return &instance{module: module, memory: memory}, nil
}

// close releases the instance and its memory.
func (in *instance) close(ctx context.Context) error {
	in.dead = true
	return in.module.Close(ctx)
}

type instanceKey struct{}

// bind returns a ctx with which host functions find this instance. Every call needs it.
func (in *instance) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, instanceKey{}, in)
}

// call runs an exported function. An error means a trap; the instance is dead then.
func (in *instance) call(ctx context.Context, fn function, args ...uint64) (uint64, error) {
	if in.dead {
		return 0, errors.New("the engine instance is closed")
	}
	if in.functions[fn] == nil {
		in.functions[fn] = in.module.ExportedFunction(exports[fn].name)
	}
	var stack [8]uint64
	n := max(1, copy(stack[:], args))
	if err := in.functions[fn].CallWithStack(ctx, stack[:n]); err != nil {
		in.dead = true
		return 0, err
	}
	if !exports[fn].value {
		return uint64(uint32(stack[0])), nil // the upper half is undefined
	}
	return stack[0], nil
}

// setStack points the C stack at its top and arms the guard below it.
func (in *instance) setStack() {
	in.global(exportFloor).Set(uint64(in.stackFloor))
	in.global(exportStack).Set(uint64(in.stackTop))
}

func (in *instance) global(name string) api.MutableGlobal {
	return in.module.ExportedGlobal(name).(api.MutableGlobal)
}

// overflowed reports whether the guard of the C stack caused a trap.
func (in *instance) overflowed() bool {
	return uint32(in.global(exportStack).Get()) < in.stackFloor
}

// view returns n bytes of guest memory at an address, or nil if they are out of range.
// The slice is valid until the guest runs again.
func (in *instance) view(at uint32, n uint64) []byte {
	b := in.memory.bytes()
	if uint64(at)+n > uint64(len(b)) {
		return nil
	}
	return b[at : uint64(at)+n]
}

func (in *instance) writeValue(at uint32, v value) {
	binary.LittleEndian.PutUint64(in.view(at, 8), uint64(v))
}

// place copies s and a terminating zero byte into guest memory. The caller frees it
// with fnFree.
func (in *instance) place(ctx context.Context, s string) (uint64, error) {
	at, err := in.call(ctx, fnMalloc, uint64(len(s))+1)
	if err != nil {
		return 0, err
	}
	b := in.view(uint32(at), uint64(len(s))+1)
	if at == 0 || b == nil {
		return 0, errNoGuestMemory
	}
	copy(b, s)
	b[len(s)] = 0
	return at, nil
}

// newString makes a JavaScript string; the caller frees it.
func (in *instance) newString(ctx context.Context, s string) (value, error) {
	at, err := in.place(ctx, s)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, fnNewStringLen, in.context, at, uint64(len(s)))
	if err != nil {
		return 0, err
	}
	if value(v).isException() {
		return 0, errNoGuestMemory
	}
	_, err = in.call(ctx, fnFree, at)
	return value(v), err
}

// text reads a value as a string of at most limit bytes. A longer one is an *overLimit error.
func (in *instance) text(ctx context.Context, v value, limit int) (string, error) {
	at, err := in.call(ctx, fnToCString, in.context, uint64(in.scratch), uint64(v), 0)
	if err != nil {
		return "", err
	}
	if at == 0 {
		return "", errNoGuestMemory
	}
	n := binary.LittleEndian.Uint32(in.view(in.scratch, 4))
	var s string
	var tooLong error
	if int64(n) > int64(limit) {
		tooLong = &overLimit{bytes: int(n), limit: limit}
	} else {
		s = string(in.view(uint32(at), uint64(n)))
	}
	if _, err := in.call(ctx, fnFreeCString, in.context, at); err != nil {
		return "", err
	}
	return s, tooLong
}

// property reads a property by name; the caller frees it.
func (in *instance) property(ctx context.Context, object value, name string) (value, error) {
	at, err := in.place(ctx, name)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, fnGetPropertyStr, in.context, uint64(object), at)
	if err != nil {
		return 0, err
	}
	_, err = in.call(ctx, fnFree, at)
	return value(v), err
}

// invoke calls a JavaScript function. The caller still owns the arguments. The result may
// be an exception.
func (in *instance) invoke(ctx context.Context, fn value, args ...value) (value, error) {
	size := uint64(8 * max(1, len(args)))
	at, err := in.call(ctx, fnMalloc, size)
	if err != nil {
		return 0, err
	}
	if at == 0 {
		return 0, errNoGuestMemory
	}
	for i, v := range args {
		in.writeValue(uint32(at)+uint32(8*i), v)
	}
	v, err := in.call(ctx, fnCall, in.context, uint64(fn), uint64(undefined), uint64(len(args)), at)
	if err != nil {
		return 0, err
	}
	_, err = in.call(ctx, fnFree, at)
	return value(v), err
}

func (in *instance) freeValue(ctx context.Context, values ...value) error {
	for _, v := range values {
		if _, err := in.call(ctx, fnFreeValue, in.context, uint64(v)); err != nil {
			return err
		}
	}
	return nil
}

// exception takes the pending exception. The caller frees it.
func (in *instance) exception(ctx context.Context) (value, error) {
	v, err := in.call(ctx, fnGetException, in.context)
	return value(v), err
}

// overLimit means that a text was too long.
type overLimit struct{ bytes, limit int }

func (e *overLimit) Error() string {
	return fmt.Sprintf("%d bytes, at most %d are allowed", e.bytes, e.limit)
}
