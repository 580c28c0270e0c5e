package js

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	quickjs "github.com/aperturerobotics/go-quickjs-wasi-reactor"
)

// updateEngine writes the engine that is embedded.
func updateEngine() error {
	wasm, err := rewrite(quickjs.QuickJSWASM)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(wasm); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	compressed = out.Bytes()
	return os.WriteFile("quickjs.wasm.gz", compressed, 0o600)
}

// TestEngineIsThatOfTheModule compares the embedded engine with the module's, rewritten;
// with UPDATE=1 it was written before.
func TestEngineIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	want, err := rewrite(quickjs.QuickJSWASM)
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := quickJS()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(wasm, want) || checksum() != crc32.ChecksumIEEE(wasm) {
		t.Error("it is another engine: UPDATE=1 go test ./internal/scripting/js -run TestEngineIsThatOfTheModule")
	}
}

// TestRewriteLeavesNoLoopUnpolled checks that every loop outside the interpreter
// polls and every change of the stack pointer is guarded.
func TestRewriteLeavesNoLoopUnpolled(t *testing.T) {
	t.Parallel()
	made, err := rewrite(quickjs.QuickJSWASM)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := splitSections(made)
	if err != nil {
		t.Fatal(err)
	}
	p := &patch{named: map[string]uint32{interpreter: 0, notePosition: 0, parseStatement: 0, parseFunction: 0, parseExpression: 0}}
	original, err := splitSections(quickjs.QuickJSWASM)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.survey(original); err != nil {
		t.Fatal(err)
	}
	loops, guards, bare := 0, 0, 0
	for _, s := range sections {
		if s.id != sectionCode {
			continue
		}
		r := reader{b: s.body}
		for i := range r.u32() {
			body := reader{b: r.bytes(int(r.u32()))}
			for n := body.u32(); n > 0; n-- {
				body.u32()
				body.byte()
			}
			for body.err == nil && body.at < len(body.b) {
				op := body.byte()
				start := body.at
				body.skipImmediates(op)
				after := body.b[body.at:]
				switch {
				case op == opLoop && bytes.HasPrefix(after, p.pollCode()):
					loops++
				case op == opLoop && p.imports+i != p.named[interpreter]:
					bare++
				case op == opGlobalSet && operand(body.b[start:]) == stackPointer && bytes.HasPrefix(after, p.guardCode()):
					guards++
				case op == opGlobalSet && operand(body.b[start:]) == stackPointer:
					bare++
				}
			}
			if body.err != nil {
				t.Fatal(body.err)
			}
		}
	}
	if loops < 1000 || guards < 500 || bare != 0 {
		t.Errorf("%d loops poll, %d changes of the stack are guarded, %d are bare", loops, guards, bare)
	}
}

func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	nameless := []byte("\x00asm\x01\x00\x00\x00")
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		"nothing":        {nil, "not a WebAssembly module"},
		"text":           {[]byte("(module) and more"), "not a WebAssembly module"},
		"cut":            {quickjs.QuickJSWASM[:5000], "unexpected end"},
		"another module": {nameless, "names no function"},
	} {
		if _, err := rewrite(c.module); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTemplateIsDeterministic checks that two engines build the same template, which
// snapshots rely on.
func TestTemplateIsDeterministic(t *testing.T) {
	t.Parallel()
	a, b := testMachine(t, 16<<20), testMachine(t, 64<<20)
	if a.fingerprint != b.fingerprint {
		t.Error("the fingerprints differ")
	}
	if a.handles != b.handles || !bytes.Equal(a.template.full, b.template.full) {
		t.Error("the templates differ")
	}
}

func testMachine(t *testing.T, memory int64) *machine {
	t.Helper()
	b, err := newBackend(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.close(context.Background()) })
	m, err := newMachine(t.Context(), b, Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Functions of the engine that are treated specially, by the names in its name section.
const (
	// interpreter runs bytecode. It already polls through the interrupt handler; a second
	// poll would slow it down.
	interpreter = "JS_CallInternal"
	// notePosition records the parser's position in the source. The engine calls it for calls
	// and operators only, so that "let x = a.b.c" has no position. Rewriting calls it for
	// every statement, and for an expression that is the body of an arrow function.
	notePosition    = "emit_source_loc"
	parseStatement  = "js_parse_statement_or_decl"
	parseFunction   = "js_parse_function_decl2"
	parseExpression = "js_parse_assign_expr2"
)

// stackPointer is the global that holds the C stack pointer: always the first.
const stackPointer = 0

// loopTurns is the number of iterations of native loops between two polls.
const loopTurns = 1 << 14

// rewrite changes the engine's module so that it can be stopped. The Go scheduler cannot
// preempt JIT code, so all code must return to Go regularly: each native loop counts its
// iterations, polls the host, and traps if the host says so. Each change of the C stack
// pointer is checked against a floor, because the stack lies above static data and would
// overwrite it. Three functions are added to the table for use as C callbacks.
func rewrite(module []byte) ([]byte, error) {
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	p := &patch{named: map[string]uint32{interpreter: 0, notePosition: 0, parseStatement: 0, parseFunction: 0, parseExpression: 0}}
	if err := p.survey(sections); err != nil {
		return nil, err
	}
	out := append([]byte(nil), module[:wasmHeader]...)
	for _, s := range sections {
		if s.id == sectionCustom {
			continue // names and debug information
		}
		body, err := p.section(s)
		if err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, err)
		}
		out = append(append(out, s.id), sized(body)...)
	}
	if p.tableSize != tableInterrupt {
		return nil, fmt.Errorf("the table has %d functions, tableInterrupt is %d", p.tableSize, tableInterrupt)
	}
	return out, nil
}

// patch holds what rewriting needs to know about a module, and what it appends.
type patch struct {
	types, imports, functions, globals, tableSize uint32
	call, poll, reject                            uint32            // imported functions by index
	named                                         map[string]uint32 // own functions by name
}

// Functions, types and globals that are added, counted from the end of the old ones.
const (
	addInterrupt = iota
	addCall
	addReject
	addTick
	addedFunctions
)

func (p *patch) added(n uint32) uint32 { return p.imports + p.functions + n }
func (p *patch) floor() uint32         { return p.globals }
func (p *patch) turns() uint32         { return p.globals + 1 }

// survey counts the entries of the module and finds functions by name.
func (p *patch) survey(sections []section) error {
	var err error
	for _, s := range sections {
		r := reader{b: s.body}
		switch s.id {
		case sectionType:
			p.types = r.u32()
		case sectionImport:
			err = p.surveyImports(&r)
		case sectionFunction:
			p.functions = r.u32()
		case sectionTable:
			r.bytes(3)
			p.tableSize = r.u32()
		case sectionGlobal:
			p.globals = r.u32()
		case sectionCustom:
			p.surveyNames(&r)
		}
		if err = errors.Join(err, r.err); err != nil {
			return err
		}
	}
	for name, index := range p.named {
		if index == 0 {
			return errors.New("names no function " + name)
		}
	}
	return nil
}

func (p *patch) surveyImports(r *reader) error {
	found := map[string]uint32{}
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.bytes(int(r.u32()))
		name := string(r.bytes(int(r.u32())))
		if r.byte() != 0 {
			return errors.New("imports something other than a function")
		}
		r.u32()
		found[name] = p.imports
		p.imports++
	}
	for name, at := range map[string]*uint32{importCall: &p.call, importPoll: &p.poll, importReject: &p.reject} {
		index, ok := found[name]
		if !ok {
			return errors.New("lacks the import " + name)
		}
		*at = index
	}
	return nil
}

// surveyNames finds the named functions in the custom section "name".
func (p *patch) surveyNames(r *reader) {
	if string(r.bytes(int(r.u32()))) != "name" {
		r.at = len(r.b)
		return
	}
	for r.err == nil && r.at < len(r.b) {
		kind := r.byte()
		sub := reader{b: r.bytes(int(r.u32()))}
		if kind != 1 {
			continue
		}
		for n := sub.u32(); n > 0 && sub.err == nil; n-- {
			index := sub.u32()
			name := string(sub.bytes(int(sub.u32())))
			if _, ok := p.named[name]; ok {
				p.named[name] = index
			}
		}
	}
}

// section returns the new body of one section.
func (p *patch) section(s section) ([]byte, error) {
	switch s.id {
	case sectionType:
		return extend(s.body, addedFunctions,
			wasmFunc, 2, wasmI32, wasmI32, 1, wasmI32,
			wasmFunc, 5, wasmI32, wasmI64, wasmI32, wasmI32, wasmI32, 1, wasmI64,
			wasmFunc, 5, wasmI32, wasmI64, wasmI64, wasmI32, wasmI32, 0,
			wasmFunc, 0, 0)
	case sectionFunction:
		var types []byte
		for n := range uint32(addedFunctions) {
			types = append(types, unsigned(p.types+n)...)
		}
		return extend(s.body, addedFunctions, types...)
	case sectionTable:
		size := unsigned(p.tableSize + 3)
		return append(append([]byte{1, wasmFuncref, 1}, size...), size...), nil
	case sectionGlobal:
		floor := []byte{wasmI32, 1, opI32Const, 0, opEnd}
		turns := append(append([]byte{wasmI32, 1, opI32Const}, signed(loopTurns)...), opEnd)
		return extend(s.body, 2, append(floor, turns...)...)
	case sectionExport:
		stack := append(sized([]byte(exportStack)), 3, 0)
		floor := append(append(sized([]byte(exportFloor)), 3), unsigned(p.floor())...)
		return extend(s.body, 2, append(stack, floor...)...)
	case sectionElement:
		entry := append(append([]byte{0, opI32Const}, signed(int32(p.tableSize))...), opEnd, 3)
		for n := range uint32(3) {
			entry = append(entry, unsigned(p.added(n))...)
		}
		return extend(s.body, 1, entry...)
	case sectionCode:
		return p.code(s.body)
	}
	return s.body, nil
}

// code rewrites every function body and appends the new functions.
func (p *patch) code(body []byte) ([]byte, error) {
	r := reader{b: body}
	count := r.u32()
	out := unsigned(count + addedFunctions)
	for i := range count {
		function, err := p.function(r.bytes(int(r.u32())), p.imports+i)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", p.imports+i, err)
		}
		out = append(out, sized(function)...)
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, ours := range [addedFunctions][]byte{p.interruptBody(), p.callBody(), p.rejectBody(), p.tickBody()} {
		out = append(out, sized(ours)...)
	}
	return out, nil
}

// function inserts a poll after every loop header, a guard after every change of the
// stack pointer, and calls of notePosition into the parser.
func (p *patch) function(body []byte, index uint32) ([]byte, error) {
	r := reader{b: body}
	r.skipLocals()
	out := make([]byte, 0, len(body)+len(body)/8)
	copied := 0
	insert := func(at int, code []byte) {
		out = append(append(out, body[copied:at]...), code...)
		copied = at
	}
	if index == p.named[parseStatement] {
		insert(r.at, p.noteCode())
	}
	for r.err == nil && r.at < len(body) {
		op := r.byte()
		start := r.at
		r.skipImmediates(op)
		switch {
		case op == opLoop && index != p.named[interpreter]:
			insert(r.at, p.pollCode())
		case op == opGlobalSet && operand(body[start:]) == stackPointer:
			insert(r.at, p.guardCode())
		case op == opCall && index == p.named[parseFunction] && operand(body[start:]) == p.named[parseExpression]:
			insert(start-1, p.noteCode())
		}
	}
	return append(out, body[copied:]...), r.err
}

// skipLocals skips the declarations at the beginning of a function.
func (r *reader) skipLocals() {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
		r.byte()
	}
}

// operand is the number that follows an opcode. Linkers pad it to five bytes.
func operand(b []byte) uint32 {
	r := reader{b: b}
	return r.u32()
}

// noteCode calls notePosition with the parser's state, the first parameter of all its
// functions.
func (p *patch) noteCode() []byte {
	return append([]byte{opLocalGet, 0, opCall}, unsigned(p.named[notePosition])...)
}

// pollCode counts down and calls tick at zero.
func (p *patch) pollCode() []byte {
	turns := unsigned(p.turns())
	c := append([]byte{opGlobalGet}, turns...)
	c = append(append(c, opI32Const, 0x7f, opI32Add, opGlobalSet), turns...) // turns-1
	c = append(append(c, opGlobalGet), turns...)
	c = append(c, opI32Eqz, opIf, blockVoid, opCall)
	return append(append(c, unsigned(p.added(addTick))...), opEnd)
}

// guardCode traps when the stack pointer fell below the floor.
func (p *patch) guardCode() []byte {
	c := append([]byte{opGlobalGet, 0, opGlobalGet}, unsigned(p.floor())...)
	return append(c, opI32LtU, opIf, blockVoid, opUnreachable, opEnd)
}

// interruptBody is the interrupt handler: poll(0).
func (p *patch) interruptBody() []byte {
	c := append([]byte{0, opI32Const, 0, opI32Const, 0, opI32Const, 0, opCall}, unsigned(p.poll)...)
	return append(c, opEnd)
}

// callBody passes (ctx, argc, argv, magic) to the host and loads the JSValue at the
// returned address.
func (p *patch) callBody() []byte {
	c := []byte{0, opLocalGet, 0, opLocalGet, 2, opLocalGet, 3, opLocalGet, 4, opI32Const, 0, opI32Const, 0, opCall}
	return append(append(c, unsigned(p.call)...), opI64Load, 3, 0, opEnd)
}

// rejectBody passes (handled, promise, reason) to the host.
func (p *patch) rejectBody() []byte {
	c := []byte{
		0, opLocalGet, 3, opI32Const, 0, opI32Const, 0, opI32Const, 0,
		opLocalGet, 1, opLocalGet, 2, opI32Const, 0, opCall,
	}
	return append(append(c, unsigned(p.reject)...), opDrop, opEnd)
}

// tickBody resets the count and traps if poll(1) returns nonzero.
func (p *patch) tickBody() []byte {
	c := append([]byte{0, opI32Const}, signed(loopTurns)...)
	c = append(append(c, opGlobalSet), unsigned(p.turns())...)
	c = append(c, opI32Const, 1, opI32Const, 0, opI32Const, 0, opCall)
	return append(append(c, unsigned(p.poll)...), opIf, blockVoid, opUnreachable, opEnd, opEnd)
}

// The parts of the WebAssembly binary format that rewriting needs.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionGlobal   = 6
	sectionExport   = 7
	sectionElement  = 9
	sectionCode     = 10

	wasmHeader = 8 // magic and version
)

const (
	wasmI32     = 0x7f
	wasmI64     = 0x7e
	wasmFunc    = 0x60
	wasmFuncref = 0x70
)

// section is one section of a module: its kind and its bytes, without the length.
type section struct {
	id   byte
	body []byte
}

// splitSections splits a module into its sections, in order.
func splitSections(module []byte) ([]section, error) {
	if len(module) < wasmHeader || string(module[:4]) != "\x00asm" {
		return nil, errors.New("not a WebAssembly module")
	}
	r := reader{b: module, at: wasmHeader}
	var list []section
	for r.err == nil && r.at < len(r.b) {
		id := r.byte()
		list = append(list, section{id, r.bytes(int(r.u32()))})
	}
	return list, r.err
}

// reader reads module bytes. After the first overrun it stops and records the error, so
// that callers check once at the end.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) byte() byte {
	if r.err != nil || r.at >= len(r.b) {
		r.fail("unexpected end of module")
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b)-r.at {
		r.fail("unexpected end of module")
		return nil
	}
	b := r.b[r.at : r.at+n]
	r.at += n
	return b
}

// u32 reads an unsigned LEB128 number.
func (r *reader) u32() uint32 {
	var v uint32
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail("number too long")
	return 0
}

// skipNumber skips a LEB128 number of any width.
func (r *reader) skipNumber() {
	for r.err == nil && r.byte() >= 0x80 {
	}
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: "+format, append([]any{r.at}, args...)...)
	}
}

// unsigned encodes v as unsigned LEB128.
func unsigned(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// signed encodes v as signed LEB128.
func signed(v int32) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// sized prepends the length of b to it.
func sized(b []byte) []byte { return append(unsigned(uint32(len(b))), b...) }

// extend adds n entries, given as bytes, to a section that is a counted list.
func extend(body []byte, n uint32, entries ...byte) ([]byte, error) {
	r := reader{b: body}
	count := r.u32()
	if r.err != nil {
		return nil, r.err
	}
	out := append(unsigned(count+n), body[r.at:]...)
	return append(out, entries...), nil
}

// Opcodes that have immediates, or that rewriting emits.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableSet     = 0x26
	opI64Load      = 0x29
	opFirstMemory  = 0x28
	opLastMemory   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtU       = 0x49
	opI32Add       = 0x6a
	opDrop         = 0x1a
	opSelect       = 0x1b
	opFirstPlain   = 0x45
	opLastPlain    = 0xc4
	opPrefixed     = 0xfc

	blockVoid = 0x40
)

// skipImmediates skips the immediates of the instruction op, which was just read.
func (r *reader) skipImmediates(op byte) {
	switch {
	case op >= opFirstPlain && op <= opLastPlain,
		op == opUnreachable, op == 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBlock, op == opLoop, op == opIf, op == opBr, op == opBrIf, op == opCall,
		op >= opLocalGet && op <= opTableSet, op == opMemorySize, op == opMemoryGrow, op == opI32Const, op == opI64Const:
		r.skipNumber()
	case op == opCallIndirect, op >= opFirstMemory && op <= opLastMemory:
		r.skipNumber()
		r.skipNumber()
	case op == opBrTable:
		for n := r.u32(); r.err == nil; n-- {
			r.skipNumber()
			if n == 0 {
				break
			}
		}
	case op == opSelectTyped:
		r.bytes(int(r.u32()))
	case op == opF32Const:
		r.bytes(4)
	case op == opF64Const:
		r.bytes(8)
	case op == opPrefixed:
		r.skipPrefixed()
	default:
		r.fail("unknown opcode %#x", op)
	}
}

// skipPrefixed skips a bulk-memory, table or saturating-conversion instruction.
func (r *reader) skipPrefixed() {
	switch sub := r.u32(); sub {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8, 10, 12, 14:
		r.skipNumber()
		r.skipNumber()
	case 9, 11, 13, 15, 16, 17:
		r.skipNumber()
	default:
		r.fail("unknown prefixed opcode %d", sub)
	}
}
