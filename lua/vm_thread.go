package lua

import "unsafe"

// Thread is a coroutine: a stack of values and a stack of frames, nothing
// else, so that a suspended one can be copied and saved.
type Thread struct {
	header
	id     uint32
	status status
	stack  []Value
	frames []frame
	// limit is the part of the stack Lua calls may use without asking: its
	// length, or 0 when calls must take the slow path because of hooks.
	limit int
	// top is the end of a variable number of values: arguments or results of
	// an instruction that left their count open.
	top int
	// open is the topmost open upvalue.
	open *Upvalue
	// pending are the stack positions of to-be-closed variables.
	pending []int32
	// resumer is the thread that resumed this one, while it runs.
	resumer *Thread
	// pinned counts the host calls that must return before a yield.
	pinned int
	// resumes counts the resumes this thread is nested in.
	resumes int
	// failure is the error that killed the thread, for coroutine.close; cause is
	// that of a host function, which forks and snapshots do not carry.
	failure Value
	cause   error
	hook    *hook
	// overflowed is set while a stack overflow is being handled.
	overflowed bool
	state      *State
}

// status of a thread, as coroutine.status tells them apart.
type status uint8

const (
	suspended status = iota
	running
	normal
	dead
	failed // dead by an error; its stack is kept for tracebacks
)

// frame is one call on a thread. Frames hold no pointers: the function is on
// the stack, at fn, with its registers or arguments right behind it.
type frame struct {
	fn  int32 // stack position of the function
	ret int32 // stack position for the results
	top int32 // end of the registers or arguments
	pc  int32 // next instruction
	// want is the number of results the caller takes; -1 takes all.
	want int32
	// extra is the number of arguments until a vararg function has begun,
	// then that of its variable arguments, which lie below fn.
	extra int32
	cont  continuation
	flags frameFlags
	phase uint8 // of a builtin function
	// The following are only meaningful when cont, phase or a return that
	// closes variables says so.
	a       int32 // operand of the continuation
	closing int32 // 1 + number of results held back by a return
}

const frameSize = unsafe.Sizeof(frame{})

type frameFlags uint8

const (
	// frameHost is a call of a host function.
	frameHost frameFlags = 1 << iota
	// frameFresh was entered from Go: its return leaves the machine's loop.
	frameFresh
	// frameTail replaced its caller.
	frameTail
	// frameProtected stops errors: pcall and xpcall.
	frameProtected
	// frameCallback was called by a builtin function, whose frame is below.
	frameCallback
	// frameHook is the call of a hook, frameFinalizer that of a finalizer.
	frameHook
	frameFinalizer
)

// continuation says what happens with the results when a frame returns.
type continuation uint8

const (
	contResults continuation = iota // to fn and up, as many as wanted
	contStore                       // the first to register a of the caller
	contCompare                     // the first decides the caller's conditional jump
	contDiscard                     // none
	contRepeat                      // none; the caller's instruction runs again
	contConcat                      // the first is an operand of the caller's concatenation
)

// returnTo says what becomes of the results of a call. Its fields are those of
// the frame that the call gets.
type returnTo struct {
	want  int32
	a     int32
	cont  continuation
	flags frameFlags
}

const (
	firstStack = 40
	// maxStack is the largest stack of a thread, in values.
	maxStack = 1000000
	// stackReserve is what handlers of a stack overflow may use beyond that.
	stackReserve = 2000
	threadSize   = int(unsafe.Sizeof(Thread{})) + firstStack*int(valueSize)
)

func newThread(s *State) *Thread {
	t := &Thread{header: header{kind: KindThread}, state: s}
	t.stack = make([]Value, firstStack)
	t.frames = make([]frame, 0, 4)
	t.limit = firstStack
	return t
}

// Value returns t as a value.
func (t *Thread) Value() Value { return Value{unsafe.Pointer(t), 0} }

// frame returns the running frame.
func (t *Thread) frame() *frame { return &t.frames[len(t.frames)-1] }

// function returns the function a frame runs.
func (t *Thread) function(f *frame) *Function { return t.stack[f.fn].function() }

func (t *Thread) pushFrame() *frame {
	n := len(t.frames)
	if n == cap(t.frames) {
		t.frames = append(t.frames, frame{})
		t.state.owe((cap(t.frames) - n) * int(frameSize))
	} else {
		t.frames = t.frames[:n+1]
	}
	return &t.frames[n]
}

// reserve makes the stack at least n values long.
func (t *Thread) reserve(n int) error {
	if n <= len(t.stack) {
		return nil
	}
	return t.growStack(n)
}

// growStack makes room for n values. Past the limit it raises an error, and
// leaves some room for handlers of that error.
func (t *Thread) growStack(n int) error {
	if n <= maxStack {
		return t.resizeStack(min(max(n+8, 2*len(t.stack)), maxStack))
	}
	if t.overflowed && n <= maxStack+stackReserve {
		return t.resizeStack(maxStack + stackReserve)
	}
	if t.overflowed {
		return &Error{Value: String("error in error handling"), handled: true}
	}
	t.overflowed = true
	return t.state.runtimeError("stack overflow")
}

func (t *Thread) resizeStack(size int) error {
	if size <= len(t.stack) {
		return nil
	}
	if err := t.state.alloc((size - len(t.stack)) * int(valueSize)); err != nil {
		return err
	}
	stack := make([]Value, size)
	copy(stack, t.stack)
	t.stack = stack
	if t.limit != 0 {
		t.limit = size
	}
	for u := t.open; u != nil; u = u.next {
		u.v = &stack[u.at]
	}
	return nil
}

// findUpvalue returns the open upvalue for a stack position, shared by all
// closures that capture it.
func (t *Thread) findUpvalue(at int) *Upvalue {
	link := &t.open
	for *link != nil && (*link).at > at {
		link = &(*link).next
	}
	if u := *link; u != nil && u.at == at {
		return u
	}
	u := &Upvalue{header: header{kind: kindLight}, v: &t.stack[at], thread: t, at: at, next: *link}
	*link = u
	return u
}

// closeUpvalues gives the open upvalues at or above a stack position their own
// values.
func (t *Thread) closeUpvalues(at int) {
	for u := t.open; u != nil && u.at >= at; u = t.open {
		t.open = u.next
		u.close = *u.v
		u.v = &u.close
		u.thread, u.next = nil, nil
	}
}

// resume continues the coroutine co on behalf of t, whose running frame is
// coroutine.resume or a function made by coroutine.wrap. The values to pass
// are on t's stack.
func (s *State) resume(t, co *Thread, first, n int) (exit bool, err error) {
	if msg := s.cannotResume(t, co); msg != "" {
		return s.deliverFailure(t, &Error{Value: String(msg)})
	}
	co.resumer, co.resumes = t, t.resumes+1
	t.status, co.status = normal, running
	s.cur = co
	at := 0
	if len(co.frames) > 0 {
		at = int(co.frame().fn) // that of yield, or of a host function that yielded
	}
	if err := co.reserve(at + n + 1); err != nil {
		return false, err
	}
	if len(co.frames) == 0 {
		copy(co.stack[1:], t.stack[first:first+n])
		return s.call(co, 0, n, returnTo{want: -1})
	}
	if f := co.stack[at].function(); f.host.builtin != builtinYield {
		copy(co.stack[at+1:], t.stack[first:first+n])
		co.frame().top = int32(at + 1 + n)
		return s.runHost(co, f, at, n, true)
	}
	copy(co.stack[at+1:], t.stack[first:first+n])
	return s.ret(co, at+1, n)
}

func (s *State) cannotResume(t, co *Thread) string {
	switch {
	case co.status == dead || co.status == failed:
		return "cannot resume dead coroutine"
	case co.status != suspended:
		return "cannot resume non-suspended coroutine"
	case t.resumes+s.depth >= maxDepth:
		return "C stack overflow"
	}
	return ""
}

func (s *State) startResume(t *Thread, at, nargs int) (exit bool, err error) {
	c := s.argCheck(t, at, nargs)
	co, ok := c.Arg(1).AsThread()
	if !ok {
		return false, c.TypeError(1, "thread")
	}
	return s.resume(t, co, at+2, nargs-1)
}

// yield suspends t, passing its arguments to the thread that resumed it.
func (s *State) yield(t *Thread, at, nargs int) (exit bool, err error) {
	if t == s.main {
		return false, s.runtimeError("attempt to yield from outside a coroutine")
	}
	if t.pinned > 0 {
		return false, s.runtimeError("attempt to yield across a C-call boundary")
	}
	r := t.resumer
	t.status, t.resumer = suspended, nil
	s.cur, r.status = r, running
	return s.deliver(r, t.stack[at+1:at+1+nargs])
}

// deliver ends the running frame of t, a resume, with the values of the
// coroutine.
func (s *State) deliver(t *Thread, vals []Value) (exit bool, err error) {
	at := int(t.frame().fn)
	if err := t.reserve(at + 2 + len(vals)); err != nil {
		return false, err
	}
	copy(t.stack[at+1:], vals)
	if t.stack[at].function().host.builtin == builtinResume {
		return s.retBehind(t, Bool(true), at+1, len(vals))
	}
	return s.ret(t, at+1, len(vals))
}

// deliverFailure ends a resume with an error: as values, or raised in t.
func (s *State) deliverFailure(t *Thread, e *Error) (exit bool, err error) {
	at := int(t.frame().fn)
	if t.stack[at].function().host.builtin == builtinResume {
		if err := t.reserve(at + 2); err != nil {
			return false, err
		}
		t.stack[at+1] = e.Value
		return s.retBehind(t, Bool(false), at+1, 1)
	}
	if text, ok := e.Value.AsString(); ok {
		return false, &Error{Value: String(s.where(t, 1) + text), Cause: e.Cause}
	}
	return false, &Error{Value: e.Value, Cause: e.Cause}
}

// finishThread ends a coroutine whose function has returned.
func (s *State) finishThread(t *Thread, first, n int) (exit bool, err error) {
	r := t.resumer
	t.status, t.resumer = dead, nil
	s.cur, r.status = r, running
	return s.deliver(r, t.stack[first:first+n])
}

// killThread ends a coroutine by an error nothing in it caught. Its frames
// stay for tracebacks; variables are closed only by coroutine.close and by
// functions made with coroutine.wrap.
func (s *State) killThread(t *Thread, e *Error) (exit bool, err error) {
	r := t.resumer
	t.status, t.resumer, t.failure, t.cause = failed, nil, e.Value, e.Cause
	s.cur, r.status = r, running
	at := int(r.frame().fn)
	if r.stack[at].function().host.builtin == builtinWrapped {
		v, err := s.closeAll(t, 0, e.Value)
		if err != nil {
			return false, err
		}
		if v != e.Value {
			e = &Error{Value: v}
		}
	}
	return s.deliverFailure(r, e)
}
