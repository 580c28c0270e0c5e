package lua

import "context"

// maxDepth bounds how deep host functions that call back into Lua may nest.
const maxDepth = 195

// Call calls a function and returns its results. The context is seen by host
// functions and stops the script when it is done. An error is a *Error, or a
// *BudgetError when a limit was reached.
//
//nolint:contextcheck // what is called finds ctx in the account
func (s *State) Call(ctx context.Context, fn Value, args ...Value) ([]Value, error) {
	a := &s.account
	outer, outerDone := a.ctx, a.done
	a.ctx, a.done = ctx, ctx.Done()
	defer func() { a.ctx, a.done = outer, outerDone }()
	if err := s.checkTime(); err != nil {
		return nil, err
	}
	t := s.cur
	at := s.scratch(t)
	if err := t.reserve(at + len(args) + 1); err != nil {
		return nil, err
	}
	t.stack[at] = fn
	copy(t.stack[at+1:], args)
	if err := s.callNested(t, at, len(args)); err != nil {
		return nil, err
	}
	return append([]Value(nil), t.stack[at:t.top]...), nil
}

// callNested calls the function at a stack position from Go and leaves its
// results there, up to t.top.
func (s *State) callNested(t *Thread, at, nargs int) error {
	if s.depth >= maxDepth {
		return s.depthError()
	}
	if t.stack[at].switchesThreads() {
		// It returns by way of other threads, whose frames cannot tell that
		// they leave the machine. A frame that can stands in between.
		if err := t.reserve(at + nargs + 2); err != nil {
			return err
		}
		copy(t.stack[at+1:at+nargs+2], t.stack[at:at+nargs+1])
		t.stack[at] = apply
		nargs++
	}
	return s.callFresh(t, at, nargs, 0)
}

// callFresh calls the function at a stack position in a machine of its own, which
// ends when that returns.
func (s *State) callFresh(t *Thread, at, nargs int, flags frameFlags) error {
	s.depth++
	t.pinned++
	below := len(t.frames)
	exit, err := s.call(t, at, nargs, returnTo{want: -1, flags: frameFresh | flags})
	if err != nil && len(t.frames) == below {
		err = s.handle(t, err)
	} else if err != nil || !exit {
		err = s.exec(err)
	}
	t.pinned--
	s.depth--
	return err
}

// switchesThreads reports coroutine.resume and what coroutine.wrap returns.
func (v Value) switchesThreads() bool {
	if !v.isFunction() || v.function().host == nil {
		return false
	}
	b := v.function().host.builtin
	return b == builtinResume || b == builtinWrapped
}

// depthError reports too deep nesting, leaving some room for handlers.
func (s *State) depthError() error {
	if s.depth >= maxDepth+maxDepth/10 {
		return &Error{Value: String("error in error handling"), handled: true}
	}
	s.depth += maxDepth / 10
	err := s.runtimeError("C stack overflow")
	s.depth -= maxDepth / 10
	return err
}

// call begins the call of the value at a stack position with the arguments
// behind it. A Lua function gets a frame, to be run by exec; a host function
// runs at once. Exit is set when a frame entered from Go has returned.
func (s *State) call(t *Thread, at, nargs int, to returnTo) (exit bool, err error) {
	if !t.stack[at].isFunction() {
		if nargs, err = s.callable(t, at, nargs); err != nil {
			return false, err
		}
	}
	s.account.fuel--
	if s.account.fuel < 0 {
		if err := s.refuel(); err != nil {
			return false, err
		}
	}
	f := t.stack[at].function()
	if f.proto == nil {
		return s.callHost(t, f, at, nargs, to)
	}
	p := f.proto
	top := at + 1 + int(p.maxStack)
	if err := t.reserve(max(top, at+1+nargs)); err != nil {
		return false, err
	}
	for i := nargs; i < int(p.params); i++ {
		t.stack[at+1+i] = Nil
	}
	*t.pushFrame() = frame{
		fn: int32(at), ret: int32(at), top: int32(top), want: to.want, extra: int32(nargs),
		cont: to.cont, flags: to.flags, a: to.a,
	}
	if t.hook != nil {
		return false, s.callHook(t, to.flags&frameTail != 0)
	}
	return false, nil
}

// callable puts the metamethod __call of a value that is no function below it, as what is
// called, and so on, and returns the number of arguments then.
func (s *State) callable(t *Thread, at, nargs int) (int, error) {
	for chain := 0; !t.stack[at].isFunction(); chain++ {
		h := s.metamethod(t.stack[at], evCall)
		if h.p == nil || chain > maxDepth {
			return 0, s.typeErrorAt("call", t.stack[at], at)
		}
		if err := t.reserve(at + nargs + 2); err != nil {
			return 0, err
		}
		copy(t.stack[at+1:at+nargs+2], t.stack[at:at+nargs+1])
		t.stack[at] = h
		nargs++
	}
	return nargs, nil
}

func (s *State) callHost(t *Thread, f *Function, at, nargs int, to returnTo) (exit bool, err error) {
	if err := t.reserve(at + nargs + 1); err != nil {
		return false, err
	}
	*t.pushFrame() = frame{
		fn: int32(at), ret: int32(at), top: int32(at + 1 + nargs), want: to.want, extra: int32(nargs),
		cont: to.cont, flags: to.flags | frameHost, a: to.a,
	}
	if t.hook != nil {
		if err := s.callHook(t, to.flags&frameTail != 0); err != nil {
			return false, err
		}
	}
	if f.host.builtin >= firstFrameBuiltin {
		return s.startBuiltin(t, f, at, nargs)
	}
	return s.runHost(t, f, at, nargs, false)
}

// runHost runs the host function whose frame is the top of t, with its
// arguments behind it on the stack: first when it is called, and again when it
// suspended the coroutine and that is resumed.
func (s *State) runHost(t *Thread, f *Function, at, nargs int, resumed bool) (exit bool, err error) {
	c := s.freeCall
	if c == nil {
		c = &Call{state: s}
	} else {
		s.freeCall = c.next
	}
	c.thread, c.fn, c.args, c.rets = t, f, t.stack[at+1:at+1+nargs:at+1+nargs], c.rets[:0]
	c.resumed = resumed
	err = f.host.fn(c)
	yields := err == errYield //nolint:errorlint // Call.Yield returns it as it is
	first := at
	if yields {
		err = nil
	}
	if yields || t.hook != nil { // a return hook looks at the function
		first = at + 1
	}
	n := len(c.rets)
	if err == nil {
		if first+n > len(t.stack) {
			err = t.reserve(first + n)
		}
		if err == nil {
			copy(t.stack[first:], c.rets)
		}
	} else {
		err = s.fromHost(t, err)
	}
	c.fn, c.args = nil, nil
	if cap(c.rets) > 64 {
		c.rets, c.back = nil, nil
	}
	c.next = s.freeCall
	s.freeCall = c
	if err != nil {
		return false, err
	}
	if yields {
		return s.yield(t, at, n)
	}
	return s.ret(t, first, n)
}

// retBehind ends the frame of a builtin function with v and the n values from
// a stack position on, which is that behind v's or higher. The function's own
// slot takes v, unless a return hook will look at it.
func (s *State) retBehind(t *Thread, v Value, first, n int) (exit bool, err error) {
	at := int(t.frame().fn)
	if t.hook != nil {
		at++
	}
	if err := t.reserve(at + 1 + n); err != nil {
		return false, err
	}
	copy(t.stack[at+1:at+1+n], t.stack[first:first+n])
	t.stack[at] = v
	return s.ret(t, at, n+1)
}

// fromHost gives an error of a host function the form of a Lua error.
func (s *State) fromHost(t *Thread, err error) error {
	switch e := err.(type) { //nolint:errorlint // a wrapped one is an error of the host
	case *Error, *BudgetError:
		return err
	case keyError:
		return &Error{Value: String(string(e))}
	}
	if isFatal(err) {
		return err
	}
	return &Error{Value: String(s.where(t, 1) + err.Error()), Cause: err}
}

// ret ends the running frame of t, whose n results begin at a stack position,
// and hands them to its caller.
func (s *State) ret(t *Thread, first, n int) (exit bool, err error) {
	if t.hook != nil {
		if err := s.returnHook(t, first, n); err != nil {
			return false, err
		}
	}
	f := *t.frame()
	t.frames = t.frames[:len(t.frames)-1]
	dst := int(f.ret)
	switch f.cont {
	case contResults:
		if f.want < 0 {
			copy(t.stack[dst:], t.stack[first:first+n])
			t.top = dst + n
		} else {
			m := copy(t.stack[dst:dst+int(f.want)], t.stack[first:first+n])
			clear(t.stack[dst+m : dst+int(f.want)])
		}
	case contStore:
		t.stack[t.frame().fn+1+f.a] = t.first(first, n)
	case contCompare:
		s.finishCompare(t, t.first(first, n).Truthy())
	case contRepeat:
		t.frame().pc--
	case contConcat:
		if err := s.finishConcat(t, t.first(first, n), int(f.a)); err != nil {
			return false, err
		}
	}
	if f.flags&frameFresh != 0 {
		return true, nil
	}
	if len(t.frames) == 0 {
		return s.finishThread(t, dst, n)
	}
	return false, nil
}

// first returns the first of n values, or Nil.
func (t *Thread) first(at, n int) Value {
	if n == 0 {
		return Nil
	}
	return t.stack[at]
}

// invoke calls a metamethod on behalf of the running Lua function; cont and a
// say what becomes of the result.
func (s *State) invoke(t *Thread, cont continuation, a int, h Value, args ...Value) error {
	return s.invokeAt(t, int(t.frame().top), returnTo{want: 1, cont: cont, a: int32(a)}, h, args...)
}

// invokeAt calls h with its arguments at a stack position.
func (s *State) invokeAt(t *Thread, at int, to returnTo, h Value, args ...Value) error {
	if err := t.reserve(at + 1 + len(args)); err != nil {
		return err
	}
	t.stack[at] = h
	copy(t.stack[at+1:], args)
	_, err := s.call(t, at, len(args), to)
	return err
}

// makeWay lets a call proceed that lacked fuel or room for its frame.
func (s *State) makeWay(t *Thread) error {
	if n := len(t.frames); n == cap(t.frames) {
		t.pushFrame()
		t.frames = t.frames[:n]
	}
	if s.account.fuel < 0 {
		return s.refuel()
	}
	return nil
}

// tailCall replaces the running frame by a call.
func (s *State) tailCall(t *Thread, at, nargs int) error {
	f := *t.frame()
	nargs, err := s.callable(t, at, nargs)
	if err != nil {
		return err
	}
	if p := t.stack[at].function().proto; p == nil || p.hosted() {
		// Host functions run at once, and those a host wrote in Lua keep their
		// caller on the stack like them: an ordinary call, whose results the
		// return instruction behind it passes on.
		_, err = s.call(t, at, nargs, returnTo{want: -1})
		return err
	}
	copy(t.stack[f.ret:], t.stack[at:at+nargs+1])
	t.frames = t.frames[:len(t.frames)-1]
	_, err = s.call(t, int(f.ret), nargs, returnTo{want: f.want, flags: f.flags | frameTail, cont: f.cont, a: f.a})
	return err
}

// prepareVarargs moves function and parameters above the variable arguments.
func (s *State) prepareVarargs(t *Thread, p *Proto) error {
	f := t.frame()
	nargs, params := int(f.extra), int(p.params)
	at := int(f.fn)
	fn := at + nargs + 1
	if nargs < params {
		fn = at + params + 1
	}
	if err := t.reserve(fn + 1 + int(p.maxStack)); err != nil {
		return err
	}
	f = t.frame()
	t.stack[fn] = t.stack[at]
	for i := 1; i <= params; i++ {
		t.stack[fn+i] = t.stack[at+i]
		t.stack[at+i] = Nil
	}
	f.fn, f.top = int32(fn), int32(fn+1+int(p.maxStack))
	f.extra = int32(max(0, nargs-params))
	return nil
}

// varargs copies variable arguments to R[a] and up; want < 0 copies all.
func (s *State) varargs(t *Thread, a, want int) error {
	f := t.frame()
	n := int(f.extra)
	fn := int(f.fn)
	dst := fn + 1 + a
	if want < 0 {
		if err := t.reserve(dst + n); err != nil {
			return err
		}
		want = n
		t.top = dst + n
		s.account.fuel -= int64(n >> 3) // the next call or jump looks at it
	}
	m := copy(t.stack[dst:dst+want], t.stack[fn-n:fn])
	clear(t.stack[dst+m : dst+want])
	s.account.fuel -= int64(want >> 4) // a call or jump will look at it
	return nil
}
