package js

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	_ "embed"
)

//go:embed prelude.js
var prelude string

// preludeName marks frames of the prelude in stacks, so that they can be hidden.
const preludeName = "<luanette>"

// moduleName marks frames of a module's source in stacks.
func moduleName(m *Module) string { return "<luanette:" + m.Name + ">" }

// ours reports whether a file in a stack does not belong to the script.
func ours(file string) bool {
	return file == preludeName || strings.HasPrefix(file, "<luanette:")
}

const (
	stackSize    = 512 << 10 // of the C stack, in guest memory
	stackReserve = 48 << 10  // left for native code after a script gets a RangeError
	headroom     = 512 << 10 // free heap in the template: most scripts never grow memory
)

// machine is the engine and the image from which all instances start.
type machine struct {
	backend     *backend
	limit       uint64 // most memory any instance may have
	template    *image
	handles     handles
	fingerprint [sha256.Size]byte // of everything an image depends on
}

// newMachine builds the template. After an error the backend is closed.
func newMachine(ctx context.Context, b *backend, options Options) (*machine, error) {
	m := &machine{backend: b, limit: uint64(options.Memory)}
	if err := m.build(ctx, options.Modules); err != nil {
		return nil, errors.Join(fmt.Errorf("start the JavaScript engine: %w", err), b.close(ctx))
	}
	return m, nil
}

// build boots a first instance and stores its memory as the template.
func (m *machine) build(ctx context.Context, modules []Module) error {
	in, err := newInstance(ctx, m.backend, m.limit)
	if err != nil {
		return err
	}
	defer func() { _ = in.close(ctx) }() // the template is a copy
	ctx = in.bind(ctx)
	if err := in.boot(ctx, modules); err != nil {
		return err
	}
	m.handles = in.handles
	m.template = captureTemplate(in)
	h := sha256.New()
	for _, part := range [][]byte{compressed, []byte(prelude), in.memory.bytes()} {
		h.Write(part)
	}
	h.Sum(m.fingerprint[:0])
	return nil
}

// boot builds a realm: the C stack, the runtime, the prelude, modules. It is
// deterministic, so that images fit every process that runs the same module.
func (in *instance) boot(ctx context.Context, modules []Module) error {
	b := &booter{in: in}
	b.call(ctx, fnInitialize)
	stack := uint32(b.call(ctx, fnMalloc, stackSize))
	in.stackFloor, in.stackTop = stack, (stack+stackSize)&^15
	in.setStack()
	in.scratch = uint32(b.call(ctx, fnCalloc, 1, 64))
	in.runtime = b.call(ctx, fnNewRuntime)
	b.armStackCheck(ctx)
	b.call(ctx, fnSetCanBlock, in.runtime, 0)
	in.context = b.call(ctx, fnNewContext, in.runtime)
	b.call(ctx, fnSetInterruptHandler, in.runtime, tableInterrupt, 0)
	b.call(ctx, fnSetRejectionTracker, in.runtime, tableReject, 0)
	b.locate(ctx)
	b.prelude(ctx, modules)
	b.call(ctx, fnFree, b.call(ctx, fnMalloc, headroom))
	return b.err
}

// booter records the first error of a boot.
type booter struct {
	in  *instance
	err error
}

func (b *booter) call(ctx context.Context, fn function, args ...uint64) uint64 {
	if b.err != nil {
		return 0
	}
	var v uint64
	v, b.err = b.in.call(ctx, fn, args...)
	return v
}

// armStackCheck sets the stack limit, which this build of QuickJS leaves at zero. With it,
// deep recursion is a RangeError instead of a trap. A marker value locates the field.
func (b *booter) armStackCheck(ctx context.Context) {
	const mark = 0x5a171e57
	b.call(ctx, fnSetMaxStackSize, b.in.runtime, mark)
	if b.err != nil {
		return
	}
	fields := b.in.view(uint32(b.in.runtime), 4096)
	for i := 0; i+12 <= len(fields); i += 4 { // stack_size, stack_top, stack_limit
		if binary.LittleEndian.Uint32(fields[i:]) == mark {
			binary.LittleEndian.PutUint32(fields[i:], stackSize-stackReserve)
			binary.LittleEndian.PutUint32(fields[i+8:], b.in.stackFloor+stackReserve)
			return
		}
	}
	b.err = errors.New("the stack limit was not found")
}

// locate finds two fields of the context that no exported function returns: the object that
// holds top-level lexical variables, which follows the global object, and the state of
// Math.random, whose initial value is the clock while the template is built.
func (b *booter) locate(ctx context.Context) {
	global := b.call(ctx, fnGlobalObject, b.in.context)
	b.call(ctx, fnFreeValue, b.in.context, global)
	if b.err != nil {
		return
	}
	fields := b.in.view(uint32(b.in.context), 1024)
	for i := 0; i+16 <= len(fields); i += 8 {
		switch v := binary.LittleEndian.Uint64(fields[i:]); {
		case v == global:
			b.in.lexicals = value(binary.LittleEndian.Uint64(fields[i+8:]))
		case v == birth/1000:
			b.in.seed = uint32(b.in.context) + uint32(i)
		}
	}
	if b.in.lexicals == 0 || b.in.seed == 0 {
		b.err = errors.New("fields of the context were not found")
	}
}

// prelude evaluates prelude.js, passes it the host functions, and stores the
// functions it returns.
func (b *booter) prelude(ctx context.Context, modules []Module) {
	if b.err != nil {
		return
	}
	var install value
	if install, b.err = b.in.compileAndRun(ctx, prelude, preludeName); b.err != nil {
		return
	}
	natives := make([]value, magicCount)
	for magic := range natives {
		natives[magic] = value(b.call(ctx, fnNewCFunction, b.in.context, tableCall,
			uint64(b.in.scratch), 0, 1, uint64(magic))) // the name is the empty string in scratch
	}
	if b.err != nil {
		return
	}
	var made value
	made, b.err = b.in.invoke(ctx, install, natives...)
	if b.err == nil && made.isException() {
		b.err = b.in.plainException(ctx)
	}
	for name, at := range map[string]*value{
		"begin": &b.in.begin, "settle": &b.in.settle, "encode": &b.in.encode,
		"describe": &b.in.describe, "finish": &b.in.finish, "enter": &b.in.enter,
	} {
		if b.err == nil {
			*at, b.err = b.in.property(ctx, made, name)
		}
	}
	b.modules(ctx, made, modules)
	if b.err == nil {
		b.err = b.in.freeValue(ctx, append(natives, made, install)...)
	}
}

// modules adds the modules to the realm, one after the other.
func (b *booter) modules(ctx context.Context, made value, modules []Module) {
	if b.err != nil {
		return
	}
	var install value
	install, b.err = b.in.property(ctx, made, "install")
	for i := range modules {
		if b.err == nil {
			if b.err = b.module(ctx, install, &modules[i]); b.err != nil {
				b.err = fmt.Errorf("module %s: %w", modules[i].Name, b.err)
			}
		}
	}
	if b.err == nil {
		b.err = b.in.freeValue(ctx, install)
	}
}

func (b *booter) module(ctx context.Context, install value, m *Module) error {
	text, err := m.settings()
	if err != nil {
		return err
	}
	settings, err := b.in.newString(ctx, text)
	if err != nil {
		return err
	}
	source := undefined
	if m.Source != "" {
		if source, err = b.in.compileAndRun(ctx, "'use strict'; ("+m.Source+"\n)", moduleName(m)); err != nil {
			return err
		}
	}
	if source.isException() {
		return b.in.plainException(ctx)
	}
	done, err := b.in.invoke(ctx, install, settings, source)
	if err != nil {
		return err
	}
	if done.isException() {
		return b.in.plainException(ctx)
	}
	return b.in.freeValue(ctx, settings, source, done)
}

// compileAndRun evaluates a script of the engine itself.
func (in *instance) compileAndRun(ctx context.Context, source, name string) (value, error) {
	code, err := in.compile(ctx, source, name, 0)
	if err != nil {
		return 0, err
	}
	if code.isException() {
		return 0, in.plainException(ctx)
	}
	return in.evaluate(ctx, code)
}

// plainException returns the pending exception as an error, without stack or hints.
func (in *instance) plainException(ctx context.Context) error {
	v, err := in.exception(ctx)
	if err != nil {
		return err
	}
	s, err := in.text(ctx, v, 64<<10)
	if err != nil {
		return err
	}
	stack, err := in.property(ctx, v, "stack")
	if err != nil {
		return err
	}
	at, err := in.text(ctx, stack, 64<<10)
	return errors.Join(errors.New(s+"\n"+at), err, in.freeValue(ctx, v, stack))
}

// Flags of JS_Eval.
const (
	evalCompileOnly = 1 << 5
	evalAsync       = 1 << 7
)

// compile converts source to a function that evaluate runs. The result may be an
// exception: a syntax error. flags may be evalAsync, for top-level await.
func (in *instance) compile(ctx context.Context, source, name string, flags uint64) (value, error) {
	text, err := in.place(ctx, source)
	if err != nil {
		return 0, err
	}
	file, err := in.place(ctx, name)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, fnEval, in.context, text, uint64(len(source)), file, flags|evalCompileOnly)
	if err != nil {
		return 0, err
	}
	for _, at := range []uint64{text, file} {
		if _, err := in.call(ctx, fnFree, at); err != nil {
			return 0, err
		}
	}
	return value(v), nil
}

// evaluate runs compiled code and frees it.
func (in *instance) evaluate(ctx context.Context, code value) (value, error) {
	v, err := in.call(ctx, fnEvalFunction, in.context, uint64(code))
	return value(v), err
}
