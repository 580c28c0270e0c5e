package lua

// tailCall replaces the running frame by a call.
func (s *State) tailCall(t *Thread, at, nargs int) error {
	f := *t.frame()
	for chain := 0; !t.stack[at].isFunction(); chain++ {
		h := s.metamethod(t.stack[at], evCall)
		if h.p == nil || chain > maxDepth {
			return s.typeErrorAt("call", t.stack[at], at)
		}
		if err := t.reserve(at + nargs + 2); err != nil {
			return err
		}
		copy(t.stack[at+1:at+nargs+2], t.stack[at:at+nargs+1])
		t.stack[at] = h
		nargs++
	}
	if p := t.stack[at].function().proto; p == nil || p.hosted() {
		// Host functions run at once, and those a host wrote in Lua keep their
		// caller on the stack like them: an ordinary call, whose results the
		// return instruction behind it passes on.
		_, err := s.call(t, at, nargs, returnTo{want: -1})
		return err
	}
	copy(t.stack[f.ret:], t.stack[at:at+nargs+1])
	t.frames = t.frames[:len(t.frames)-1]
	_, err := s.call(t, int(f.ret), nargs, returnTo{want: f.want, flags: f.flags | frameTail, cont: f.cont, a: f.a})
	return err
}
