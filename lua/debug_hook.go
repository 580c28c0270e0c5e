package lua

import "unsafe"

// hook is what debug.sethook set for a thread.
type hook struct {
	fn    Value
	call  bool
	ret   bool
	line  bool
	count int // call the hook after this many instructions; 0 never
	left  int // instructions until then
	// lastPC is the instruction before, which tells when a line begins.
	lastPC int
	active bool // the hook itself runs
	// transfer is the position and number of values the event is about.
	first, n int
}

// setHook sets or, with nil, removes the hook. With one, calls take the slow
// path.
func (t *Thread) setHook(h *hook) {
	t.hook = h
	t.limit = len(t.stack)
	if h != nil {
		t.limit = 0
	}
}

// trapCode returns code as long as p's that stops at each instruction, or p's
// own if no event can happen there.
func (s *State) trapCode(t *Thread, p *Proto) unsafe.Pointer {
	if h := t.hook; h.active || !h.line && h.count == 0 {
		return unsafe.Pointer(unsafe.SliceData(p.code))
	}
	for len(s.traps) < len(p.code) {
		s.traps = append(s.traps, abc(opTrap, 0, 0, 0))
	}
	return unsafe.Pointer(unsafe.SliceData(s.traps))
}

// trap runs the hooks due before the instruction at pc-1 of the running
// frame.
func (s *State) trap(t *Thread) error {
	h := t.hook
	if h == nil || h.active {
		return nil
	}
	f := t.frame()
	pc := int(f.pc) - 1
	p := t.function(f).proto
	if h.count > 0 {
		if h.left--; h.left <= 0 {
			h.left = h.count
			if err := s.runHook(t, "count", -1); err != nil {
				return err
			}
		}
	}
	if !h.line || p.code[pc].op() == opVarargPrep {
		return nil
	}
	last := h.lastPC
	h.lastPC = pc
	if last >= len(p.code) {
		last = 0
	}
	if pc <= last || p.lineAt(last) != p.lineAt(pc) {
		return s.runHook(t, "line", p.lineAt(pc))
	}
	return nil
}

// callHook runs the hook for a call that has just got its frame.
func (s *State) callHook(t *Thread, tail bool) error {
	h := t.hook
	if h.active {
		return nil
	}
	p := t.function(t.frame()).proto
	if h.call {
		event := "call"
		if tail {
			event = "tail call"
		}
		h.first, h.n = 1, int(t.frame().extra)
		if p != nil {
			h.n = int(p.params)
			t.frame().pc++ // as if the first instruction ran
		}
		err := s.runHook(t, event, -1)
		if p != nil {
			t.frame().pc--
		}
		if err != nil {
			return err
		}
	}
	if h := t.hook; h != nil && p != nil { // the first line is a new one
		h.lastPC = 0
		if p.vararg {
			h.lastPC = 1
		}
	}
	return nil
}

func (s *State) returnHook(t *Thread, first, n int) error {
	h := t.hook
	if n := len(t.frames); n > 1 && !h.active {
		// Back in the caller, its line goes on.
		h.lastPC = max(0, int(t.frames[n-2].pc)-1)
	}
	if !h.ret || h.active {
		return nil
	}
	f := t.frame()
	h.first, h.n = first-int(f.fn), n
	top := f.top
	f.top = max(f.top, int32(first+n))
	err := s.runHook(t, "return", -1)
	t.frame().top = top
	return err
}

// runHook calls the hook function with an event and a line, if that is not
// negative.
func (s *State) runHook(t *Thread, event string, line int) error {
	h := t.hook
	h.active = true
	at := int(t.frame().top)
	top := t.top
	if f := t.frame(); f.flags&frameHost == 0 && top > at {
		at = top
	}
	err := t.reserve(at + 3)
	if err == nil {
		t.stack[at], t.stack[at+1], t.stack[at+2] = h.fn, s.intern(event).value(), Nil
		if line >= 0 {
			t.stack[at+2] = Int(int64(line))
		}
		err = s.callHooked(t, at)
	}
	t.top = top
	h.active = false
	if t.hook != nil { // the hook may have set another
		t.hook.active = false
	}
	return err
}

// callHooked is callNested for a hook, whose frame says so.
func (s *State) callHooked(t *Thread, at int) error {
	if s.depth >= maxDepth {
		return s.depthError()
	}
	return s.callFresh(t, at, 2, frameHook)
}
