package js

import (
	"errors"
	"fmt"
)

// Imports that the sandbox never serves carry our own calls, so that nothing in the module
// has to be renumbered. Only their signatures matter.
const (
	importCall   = "path_rename"             // (ctx, argc, argv, magic, 0, 0) i32s → address of a JSValue
	importPoll   = "path_unlink_file"        // (native, 0, 0) i32s → 1 to stop
	importReject = "path_filestat_set_times" // (handled, 0, 0, 0 i32s, promise, reason i64s, 0) → ignored
)

// Exports that rewriting adds.
const (
	exportStack = "__sp"    // the C stack pointer
	exportFloor = "__floor" // the lowest address the C stack may reach
)

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

// rewritten is the engine's module after rewriting.
type rewritten struct {
	bytes     []byte
	interrupt uint32 // table index of a JSInterruptHandler that polls the host
	call      uint32 // table index of a JSCFunctionMagic that calls the host
	reject    uint32 // table index of a JSHostPromiseRejectionTracker that notifies the host
}

// rewrite changes the engine's module so that it can be stopped. The Go scheduler cannot
// preempt JIT code, so all code must return to Go regularly: each native loop counts its
// iterations, polls the host, and traps if the host says so. Each change of the C stack
// pointer is checked against a floor, because the stack lies above static data and would
// overwrite it. Three functions are added to the table for use as C callbacks.
func rewrite(module []byte) (rewritten, error) {
	sections, err := splitSections(module)
	if err != nil {
		return rewritten{}, err
	}
	p := &patch{named: map[string]uint32{interpreter: 0, notePosition: 0, parseStatement: 0, parseFunction: 0, parseExpression: 0}}
	if err := p.survey(sections); err != nil {
		return rewritten{}, err
	}
	out := append([]byte(nil), module[:wasmHeader]...)
	for _, s := range sections {
		if s.id == sectionCustom {
			continue // names and debug information
		}
		body, err := p.section(s)
		if err != nil {
			return rewritten{}, fmt.Errorf("section %d: %w", s.id, err)
		}
		out = append(append(out, s.id), sized(body)...)
	}
	return rewritten{out, p.tableSize, p.tableSize + 1, p.tableSize + 2}, nil
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
