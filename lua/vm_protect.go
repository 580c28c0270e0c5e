package lua

import "errors"

// maxHandlers bounds how often a message handler may fail and be called for
// its own error.
const maxHandlers = 10

// handle lets the message handler of the nearest xpcall on the thread see an
// error where it was raised, and stores the traceback of an uncaught one.
func (s *State) handle(t *Thread, err error) error {
	if isFatal(err) {
		return err
	}
	e := s.asError(err)
	if e.handled {
		return e
	}
	i := t.nearest(frameProtected)
	if i < 0 {
		if t == s.main && e.Traceback == "" {
			e.Traceback = s.Traceback(t, "", 0)
		}
		return e
	}
	f := &t.frames[i]
	fn := t.stack[f.fn].function()
	if fn.host.builtin != builtinXpcall {
		return e
	}
	e = &Error{Value: e.Value, Cause: e.Cause, handled: true}
	if s.handlers >= maxHandlers {
		e.Value = String("error in error handling")
		return e
	}
	s.handlers++
	v, err := s.callBackAt(t, t.stack[f.fn+1], e.Value)
	s.handlers--
	if err != nil {
		if isFatal(err) {
			return err
		}
		v = s.asError(err).Value
	}
	e.Value = v
	return e
}

// callBackAt is callBack on a given thread.
func (s *State) callBackAt(t *Thread, fn Value, args ...Value) (Value, error) {
	cur := s.cur
	s.cur = t
	v, err := s.callBack(fn, args...)
	s.cur = cur
	return v, err
}

// nearest returns the index of the topmost frame with any of the flags, or -1.
func (t *Thread) nearest(flags frameFlags) int {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if t.frames[i].flags&flags != 0 {
			return i
		}
	}
	return -1
}

// unwind carries an error from the running thread to the frame that catches it. It
// returns nil when the machine goes on with the frame that did, exit when that
// ended a call from Go, and the error when it leaves the machine.
func (s *State) unwind(err error) (exit bool, _ error) {
	if isFatal(err) {
		s.abandon(err)
		return false, err
	}
	err = s.handle(s.cur, err)
	for {
		if isFatal(err) {
			s.abandon(err)
			return false, err
		}
		t, e := s.cur, s.asError(err)
		i := t.nearest(frameProtected | frameFresh)
		if i < 0 {
			exit, err = s.killThread(t, e)
			if err == nil {
				return exit, nil
			}
			err = s.handle(s.cur, err)
			continue
		}
		f := &t.frames[i]
		if f.flags&frameProtected == 0 {
			return false, s.leaveFresh(t, i, e)
		}
		exit, err = s.catch(t, i, e)
		if err == nil {
			return exit, nil
		}
		err = s.handle(t, err)
	}
}

// catch makes the protected call at frame i end with an error, once variables
// are closed.
func (s *State) catch(t *Thread, i int, e *Error) (exit bool, err error) {
	t.frames = t.frames[:i+1]
	f := &t.frames[i]
	f.phase = phaseFailed
	slot := int(f.fn) + 1
	if t.stack[f.fn].function().host.builtin == builtinXpcall {
		slot++
	}
	t.stack[slot] = e.Value
	if t.overflowed {
		t.recoverOverflow(slot + 1)
	}
	return s.closeProtected(t, slot)
}

// recoverOverflow gives the memory of an overflown stack back.
func (t *Thread) recoverOverflow(used int) {
	for _, at := range t.pending {
		used = max(used, int(at)+1)
	}
	if t.open != nil {
		used = max(used, t.open.at+1)
	}
	used += stackReserve
	if used >= maxStack/2 {
		return
	}
	t.overflowed = false
	stack := make([]Value, used)
	copy(stack, t.stack)
	t.state.account.memory -= int64(len(t.stack)-used) * int64(valueSize)
	t.stack = stack
	if t.limit != 0 {
		t.limit = used
	}
	for u := t.open; u != nil; u = u.next {
		u.v = &stack[u.at]
	}
}

// closeProtected closes the next variable of a failed protected call, or ends
// the call when there is none. The error is in the slot.
func (s *State) closeProtected(t *Thread, slot int) (exit bool, err error) {
	for {
		at := t.popPending(slot + 1)
		if at < 0 {
			t.closeUpvalues(slot + 1)
			f := t.frame()
			f.flags &^= frameProtected
			return s.retBehind(t, Bool(false), slot, 1)
		}
		h := s.closeHandler(t, at)
		depth := len(t.frames)
		if err := s.invokeCallback(t, at+1, h, t.stack[at], t.stack[slot]); err != nil {
			return false, err
		}
		if len(t.frames) > depth || s.cur != t {
			return false, nil // goes on in resumeBuiltin
		}
	}
}

// invokeCallback calls a function on behalf of a builtin one, dropping its
// results.
func (s *State) invokeCallback(t *Thread, at int, h Value, args ...Value) error {
	if err := t.reserve(at + 1 + len(args)); err != nil {
		return err
	}
	t.stack[at] = h
	copy(t.stack[at+1:], args)
	_, err := s.call(t, at, len(args), returnTo{flags: frameCallback, cont: contDiscard})
	return err
}

// leaveFresh removes the frames of a call from Go that failed, closing their
// variables.
func (s *State) leaveFresh(t *Thread, i int, e *Error) error {
	level := int(t.frames[i].ret)
	t.frames = t.frames[:i]
	v, err := s.closeAll(t, level, e.Value)
	if err != nil {
		return err
	}
	if v != e.Value {
		e = &Error{Value: v, handled: e.handled, Traceback: e.Traceback}
	}
	if t.overflowed {
		t.recoverOverflow(level)
	}
	return e
}

// abandon removes what a budget error leaves behind up to the innermost call
// from Go: no Lua code runs, threads on the way are dead.
func (s *State) abandon(err error) {
	if b := (*BudgetError)(nil); errors.As(err, &b) && b.Traceback == "" {
		b.Traceback = s.Traceback(s.cur, "", 0)
	}
	for {
		t := s.cur
		if i := t.nearest(frameFresh); i >= 0 {
			level := int(t.frames[i].ret)
			t.frames = t.frames[:i]
			t.closeUpvalues(level)
			for t.popPending(level) >= 0 {
			}
			return
		}
		t.status = failed
		t.failure = Nil
		t.pending = nil
		t.closeUpvalues(0)
		s.cur = t.resumer
		s.cur.status = running
		t.resumer = nil
	}
}

// popPending takes the topmost to-be-closed variable at or above a stack
// position off the list and returns its position, or -1.
func (t *Thread) popPending(level int) int {
	n := len(t.pending)
	if n == 0 || int(t.pending[n-1]) < level {
		return -1
	}
	at := int(t.pending[n-1])
	t.pending = t.pending[:n-1]
	return at
}

// markPending makes the variable at a stack position to be closed. Nil and
// false need no closing.
func (s *State) markPending(t *Thread, at int) error {
	v := t.stack[at]
	if v.isFalse() {
		return nil
	}
	if s.metamethod(v, evClose).p == nil {
		name := t.localName(at)
		return s.runtimeError("variable '%s' got a non-closable value", name)
	}
	t.pending = append(t.pending, int32(at))
	return nil
}

// closeHandler prepares closing the variable at a position: upvalues above it
// are closed and its handler is returned.
func (s *State) closeHandler(t *Thread, at int) Value {
	t.closeUpvalues(at)
	v := t.stack[at]
	h := s.metamethod(v, evClose)
	if h.p == nil { // the metatable changed meanwhile
		h = v
	}
	return h
}

// closeAll closes all variables from a position on, calling handlers from Go.
// It returns the error value that remains: a handler's own error replaces the
// one before.
func (s *State) closeAll(t *Thread, level int, errv Value) (Value, error) {
	v, _, err := s.closeAllReporting(t, level, errv)
	return v, err
}

// closeAllReporting also tells whether a handler raised an error.
func (s *State) closeAllReporting(t *Thread, level int, errv Value) (v Value, raised bool, err error) {
	cur := s.cur
	s.cur = t
	defer func() { s.cur = cur }()
	for {
		at := t.popPending(level)
		if at < 0 {
			t.closeUpvalues(level)
			return errv, raised, nil
		}
		h := s.closeHandler(t, at)
		if err := t.reserve(at + 4); err != nil {
			return errv, raised, err
		}
		t.stack[at+1], t.stack[at+2], t.stack[at+3] = h, t.stack[at], errv
		if err := s.callNested(t, at+1, 2); err != nil {
			if isFatal(err) {
				return errv, raised, err
			}
			errv, raised = s.asError(err).Value, true
		}
	}
}

// closeOne closes the next variable at or above a position for the running Lua
// function, whose instruction will run again; false means there is none.
func (s *State) closeOne(t *Thread, level, scratch int) (bool, error) {
	at := t.popPending(level)
	if at < 0 {
		t.closeUpvalues(level)
		return false, nil
	}
	h := s.closeHandler(t, at)
	return true, s.invokeAt(t, scratch, returnTo{want: 1, cont: contRepeat}, h, t.stack[at], Nil)
}
