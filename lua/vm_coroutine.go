package lua

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
