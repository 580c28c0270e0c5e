package lua

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
