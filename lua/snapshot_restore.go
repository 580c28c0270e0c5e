package lua

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// RestoreOptions say what a saved state finds where it is brought back.
type RestoreOptions struct {
	// Options are those of the new state. Its random generator goes on where
	// the saved one stood, whatever the seed.
	Options Options
	// Libraries are those the state may refer to. It has those that were open
	// when it was saved; others can be opened later.
	Libraries []*Library
	// Functions are host functions of no library, found by their names. They
	// are called with bound values that come from the snapshot.
	Functions []*Function
	// Userdata make the Data of userdata again, by the kind their Saver gave.
	Userdata map[string]func(data []byte) (any, error)
	// Budget is that of the new state. Its memory also limits what Restore
	// may allocate.
	Budget Budget
}

// The ways in which a snapshot can be unusable.
var (
	// ErrNotSnapshot is returned for data that no Snapshot wrote.
	ErrNotSnapshot = errors.New("not a saved state")
	// ErrSnapshotVersion is returned for snapshots of other versions of the
	// engine.
	ErrSnapshotVersion = errors.New("saved by a different version of the engine")
	// ErrSnapshotCorrupt is returned for snapshots that were damaged.
	ErrSnapshotCorrupt = errors.New("the saved state is damaged")

	errTruncated = fmt.Errorf("%w: it ends too early", ErrSnapshotCorrupt)
	errReference = fmt.Errorf("%w: a number is out of range", ErrSnapshotCorrupt)
)

// Restore brings back the state that [State.Snapshot] wrote to data. Nothing
// in data is trusted: what does not form a consistent state is refused. A host
// function that is in none of the libraries and functions given is an error.
func Restore(data []byte, opts RestoreOptions) (*State, error) {
	s, err := restore(data, opts)
	if err != nil {
		return nil, fmt.Errorf("restoring a state: %w", err)
	}
	return s, nil
}

func restore(data []byte, opts RestoreOptions) (*State, error) {
	body, err := openSnapshot(data)
	if err != nil {
		return nil, err
	}
	r := newRestorer(body, opts)
	r.body()
	if r.failure == nil && len(r.data) > 0 {
		r.corrupt("it does not end where it should")
	}
	if r.failure != nil {
		return nil, r.failure
	}
	for _, l := range opts.Libraries {
		if attach := l.companions().attach; attach != nil {
			attach(r.state)
		}
	}
	r.state.SetBudget(opts.Budget)
	return r.state, nil
}

// openSnapshot checks what is around the body.
func openSnapshot(data []byte) ([]byte, error) {
	if len(data) < snapshotHead+checksumSize || string(data[:len(snapshotMagic)]) != snapshotMagic {
		return nil, ErrNotSnapshot
	}
	if data[len(snapshotMagic)] != snapshotVersion || data[len(snapshotMagic)+1] != byte(opTrap) {
		return nil, ErrSnapshotVersion
	}
	content, sum := data[:len(data)-checksumSize], data[len(data)-checksumSize:]
	if crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrSnapshotCorrupt)
	}
	return content[snapshotHead:], nil
}

// restorer builds a state out of a snapshot.
type restorer struct {
	decoder
	state *State
	opts  RestoreOptions
	// hosts are the host functions there are, by their names.
	hosts map[string]companion

	strings   []Value
	protos    []*Proto
	functions []*Function
	upvalues  []*Upvalue
	tables    []*Table
	userdata  []*Userdata
	threads   []*Thread
	// nested tells of each compiled function how deep others nest in it, and
	// inner which are inside another one.
	nested []int
	inner  []bool
	// open are the variables that wait for the thread they live on.
	open []bool
	// instances are host functions that the snapshot takes for library
	// functions and the host gave otherwise.
	instances map[string]*Function
	// slack is how many bytes tables may still have in reserve.
	slack int
	size  int // bytes restored so far
}

// slackFloor is the room tables may have in reserve in any case.
const slackFloor = 32 << 20

func newRestorer(body []byte, opts RestoreOptions) *restorer {
	r := &restorer{
		decoder: decoder{data: body}, state: New(opts.Options), opts: opts,
		hosts: map[string]companion{}, instances: map[string]*Function{}, slack: slackFloor + 16*len(body),
	}
	if f, ok := nullMetatable().handler(evToString).AsFunction(); ok {
		r.host(companion{function: f})
	}
	for _, f := range opts.Functions {
		r.host(companion{function: f})
	}
	for _, l := range opts.Libraries {
		r.library(l)
		c := l.companions()
		for _, f := range c.functions {
			r.host(f)
		}
		for _, o := range c.libraries {
			r.library(o)
		}
	}
	return r
}

func (r *restorer) host(c companion) {
	if c.function.host != nil {
		r.hosts[c.function.host.name] = c
	}
}

func (r *restorer) library(l *Library) {
	for _, v := range l.template.All() {
		if f, ok := v.AsFunction(); ok {
			r.host(companion{function: f})
		}
	}
}

func (r *restorer) corrupt(format string, args ...any) {
	r.fail(fmt.Errorf("%w: %s", ErrSnapshotCorrupt, fmt.Sprintf(format, args...)))
}

// charge accounts for memory, up to the budget.
func (r *restorer) charge(bytes int) {
	r.size += bytes
	if limit := r.opts.Budget.Memory; limit > 0 && int64(r.size) > limit {
		r.fail(&BudgetError{Limit: LimitMemory, Used: int64(r.size), Allowed: limit})
	}
}

// body reads everything. The order is that of the lists in the snapshot:
// objects are made before anything refers to them, and completed afterwards.
func (r *restorer) body() {
	r.readLibraries()
	r.readStrings()
	r.readProtos()
	r.readFunctionHeads()
	r.makeObjects()
	for i := range r.userdata {
		r.readUserdata(r.userdata[i])
	}
	for i := range r.functions {
		r.readFunction(r.functions[i])
	}
	for i := range r.upvalues {
		r.readUpvalue(i)
	}
	for i := range r.tables {
		r.readTable(r.tables[i])
	}
	for i := range r.threads {
		r.readThread(r.threads[i])
	}
	r.readState()
	if r.failure == nil {
		r.check()
	}
}

// check looks at what can only be judged once everything is there.
func (r *restorer) check() {
	for i, open := range r.open {
		if open && r.upvalues[i].thread == nil {
			r.corrupt("a variable lives on no stack")
			return
		}
	}
	for _, f := range r.functions {
		if f.host != nil {
			r.bound(f)
		}
	}
	for _, t := range r.threads {
		if err := t.check(); err != nil {
			r.corrupt("a coroutine %v", err)
			return
		}
	}
}

// bound checks the values of a host function that relies on them.
func (r *restorer) bound(f *Function) {
	if c := r.hosts[f.host.name]; c.accepts != nil && !c.accepts(f.bound) {
		r.corrupt("function %s has wrong values", f.host.name)
	}
}

// readLibraries opens the libraries by name.
func (r *restorer) readLibraries() {
	open := map[string]bool{}
	for range r.count(1) {
		open[string(r.bytes())] = true
	}
	for _, l := range r.opts.Libraries {
		if open[l.name] {
			r.state.libs = append(r.state.libs, l)
		}
	}
}

func (r *restorer) readStrings() {
	r.strings = make([]Value, r.count(1))
	for i := range r.strings {
		b := r.bytes()
		r.charge(strOverhead + len(b))
		r.strings[i] = stringOf(b)
	}
}

// text reads the position of a string.
func (r *restorer) text() string {
	if i := r.below(len(r.strings)); r.failure == nil {
		return r.strings[i].str().s
	}
	return ""
}

// makeObjects makes the objects that need nothing but their number.
func (r *restorer) makeObjects() {
	upvalues, tables, userdata, threads := r.count(2), r.count(3), r.count(4), r.count(9)
	if r.failure != nil {
		return
	}
	r.charge(upvalues*upvalueSize + tables*tableSize + userdata*userdataSize + threads*threadSize)
	if r.failure != nil {
		return
	}
	r.open = make([]bool, upvalues)
	for range upvalues {
		r.upvalues = append(r.upvalues, newUpvalue(Nil))
	}
	for range tables {
		r.tables = append(r.tables, NewTable(0, 0))
	}
	for range userdata {
		r.userdata = append(r.userdata, NewUserdata(nil, nil))
	}
	for range threads {
		r.threads = append(r.threads, newThread(r.state))
	}
}

// hostFunction returns the host function of a name.
func (r *restorer) hostFunction(name string) *Function {
	c, ok := r.hosts[name]
	if !ok {
		if r.failure == nil {
			r.fail(fmt.Errorf("the state uses the host function %q, which is in none of the libraries given", name))
		}
		return nil
	}
	return c.function
}

// libraryFunction returns the one instance of a host function that states
// share, or one for this state if the host's is not for sharing.
func (r *restorer) libraryFunction(name string) Value {
	f := r.hostFunction(name)
	if f == nil {
		return Nil
	}
	if f.bits&bitShared != 0 {
		return f.Value()
	}
	if r.instances[name] == nil {
		r.instances[name] = f.Bind()
		r.bound(r.instances[name])
	}
	return r.instances[name].Value()
}

// readThread completes a coroutine. Whether it makes sense is checked at the
// end, when its functions are there.
func (r *restorer) readThread(t *Thread) {
	t.id = r.id()
	t.status = status(r.byte())
	t.overflowed = r.bool()
	t.failure = r.value()
	h := r.readHook()
	top := r.uint()
	stack := r.list()
	frames := r.count(11)
	r.charge(frames * int(frameSize))
	if r.failure != nil {
		return
	}
	t.stack = append(stack, make([]Value, max(0, firstStack-len(stack)))...)
	t.top = int(min(top, uint64(len(t.stack))))
	t.frames = make([]frame, 0, frames+4)
	for range frames {
		t.frames = append(t.frames, r.readFrame())
	}
	for range r.count(1) {
		t.pending = append(t.pending, r.small())
	}
	t.setHook(h)
	r.readOpen(t)
}

func (r *restorer) readFrame() frame {
	f := frame{
		fn: r.small(), ret: r.small(), top: r.small(), pc: r.small(), want: r.small(), extra: r.small(), a: r.small(),
		closing: r.small(),
	}
	f.cont, f.flags, f.phase = continuation(r.byte()), frameFlags(r.byte()), r.byte()
	return f
}

// readOpen links the variables that live on the stack of t, topmost first.
func (r *restorer) readOpen(t *Thread) {
	link, last := &t.open, len(t.stack)
	for range r.count(2) {
		i, pos := r.below(len(r.upvalues)), r.below(len(t.stack))
		if r.failure != nil {
			return
		}
		u := r.upvalues[i]
		if !r.open[i] || u.thread != nil || pos >= last {
			r.corrupt("the variables on a stack contradict each other")
			return
		}
		u.v, u.thread, u.at = &t.stack[pos], t, pos
		*link, link, last = u, &u.next, pos
	}
}

func (r *restorer) readHook() *hook {
	if !r.bool() {
		return nil
	}
	h := &hook{fn: r.value(), call: r.bool(), ret: r.bool(), line: r.bool()}
	h.count = int(r.small())
	h.left, h.lastPC = int(r.small()), int(r.small())
	if h.count < 0 || h.left < 0 || h.lastPC < 0 {
		r.fail(errReference)
	}
	return h
}

// readProtos reads compiled functions and verifies them.
func (r *restorer) readProtos() {
	n := r.count(14)
	for range n {
		p := r.readProto()
		if r.failure != nil {
			return
		}
		if err := p.verifyCode(); err != nil {
			r.corrupt("%v", err)
			return
		}
		r.protos = append(r.protos, p)
	}
}

func (r *restorer) readProto() *Proto {
	p := &Proto{source: r.text()}
	p.line, p.lastLine = r.small(), r.small()
	p.params, p.vararg, p.maxStack = r.byte(), r.bool(), r.byte()
	hints := r.uint()
	n := r.count(5)
	r.charge(200 + n*16)
	if hints > uint64(n)+1 {
		r.fail(errReference)
	}
	if r.failure != nil {
		return nil
	}
	p.hints = make([]uint32, hints)
	p.code = make([]instruction, n)
	for i := range p.code {
		p.code[i] = r.readInstruction()
	}
	for range r.count(1) {
		p.constants = append(p.constants, r.literal())
	}
	for range r.count(4) {
		p.upvalues = append(p.upvalues, upvalueDesc{name: r.text(), inStack: r.bool(), index: r.byte(), kind: varKind(r.byte())})
	}
	r.readInner(p)
	line := int32(0)
	for range r.count(1) {
		line += r.small()
		p.lines = append(p.lines, line)
	}
	for range r.count(4) {
		p.locals = append(p.locals, localVar{name: r.text(), start: r.small(), end: r.small(), reg: r.byte()})
	}
	return p
}

func (r *restorer) readInstruction() instruction {
	op, a := r.byte(), r.byte()
	b, c, d := r.below(1<<16), r.below(1<<16), r.below(1<<16)
	return abc(opcode(op), int(a), b, c) | instruction(d)<<48
}

// literal reads a constant of a function.
func (r *restorer) literal() Value {
	v := r.value()
	switch v.Kind() {
	case KindNil, KindBool, KindInt, KindFloat:
		return v
	case KindString:
		return r.state.intern(v.str().s).value()
	}
	r.corrupt("code has an impossible constant")
	return Nil
}

// readInner reads which functions are inside p. Every one is inside one other
// at most, and not deeper than the compiler nests them.
func (r *restorer) readInner(p *Proto) {
	depth := 0
	for range r.count(1) {
		i := r.below(len(r.protos))
		if r.failure != nil {
			return
		}
		if r.inner[i] {
			r.corrupt("a function is inside two others")
			return
		}
		r.inner[i] = true
		depth = max(depth, r.nested[i]+1)
		p.protos = append(p.protos, r.protos[i])
	}
	if depth > maxNesting {
		r.corrupt("functions are nested too deep")
	}
	r.nested = append(r.nested, depth)
	r.inner = append(r.inner, false)
}

// missing reports a library that the state needs.
func (r *restorer) missing(name string) {
	r.fail(fmt.Errorf("the state uses the library %q, which was not given", name))
}

// hostValue makes the Go value of a userdata.
func (r *restorer) hostValue(kind string, data []byte) (any, error) {
	if maker := r.opts.Userdata[kind]; maker != nil {
		value, err := maker(data)
		if err != nil {
			return nil, fmt.Errorf("userdata of kind %q: %w", kind, err)
		}
		return value, nil
	}
	for _, l := range r.opts.Libraries {
		if maker := l.companions().userdata[kind]; maker != nil {
			return maker(r.state, data)
		}
	}
	return nil, fmt.Errorf("the state has userdata of kind %q, which nothing given can make", kind)
}
