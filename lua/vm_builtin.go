package lua

// builtin marks the library functions the machine knows: iterators it steps
// itself, and functions that switch frames or threads and therefore cannot be
// plain Go functions.
type builtin uint8

const (
	builtinNone builtin = iota
	builtinNext
	builtinIpairs // the iterator ipairs returns
	// From here on the function is carried out by startBuiltin.
	builtinPcall
	builtinXpcall
	builtinYield
	builtinResume
	builtinWrapped // what coroutine.wrap returns
	builtinPairs
	builtinDofile
	builtinApply // calls its first argument with the others

	firstFrameBuiltin = builtinPcall
)

// builtins are found by the names they are registered under.
var builtins = map[string]builtin{
	"next": builtinNext, "pcall": builtinPcall, "xpcall": builtinXpcall, "pairs": builtinPairs,
	"dofile":          builtinDofile,
	"coroutine.yield": builtinYield, "coroutine.resume": builtinResume,
}

// The phases of a builtin function's frame.
const (
	phaseCalled uint8 = iota // the function it called runs
	phaseFailed              // the call failed, variables are being closed
)

// apply stands between Go and a function that switches threads.
var apply = func() Value {
	f := newShared("apply", nil)
	f.host.builtin = builtinApply
	return f.Value()
}()

// startBuiltin begins a builtin function, whose frame is the top of t.
func (s *State) startBuiltin(t *Thread, f *Function, at, nargs int) (exit bool, err error) {
	switch f.host.builtin {
	case builtinPcall:
		return s.startPcall(t, at, nargs)
	case builtinXpcall:
		return s.startXpcall(t, at, nargs)
	case builtinYield:
		return s.yield(t, at, nargs)
	case builtinResume:
		return s.startResume(t, at, nargs)
	case builtinPairs:
		return s.startPairs(t, at, nargs)
	case builtinDofile:
		return s.startDofile(t, at, nargs)
	case builtinApply:
		return s.call(t, at+1, nargs-1, returnTo{want: -1, flags: frameCallback})
	default:
		return s.resume(t, (*Thread)(f.bound[0].p), at+1, nargs)
	}
}

// resumeBuiltin goes on with the builtin function whose frame is the top of t
// after the function it called has returned, with results up to t.top.
func (s *State) resumeBuiltin(t *Thread) (exit bool, err error) {
	f := t.frame()
	at := int(f.fn)
	switch t.stack[at].function().host.builtin {
	case builtinPcall:
		if f.phase == phaseFailed {
			return s.closeProtected(t, at+1)
		}
		return s.retBehind(t, Bool(true), at+1, t.top-at-1)
	case builtinXpcall:
		if f.phase == phaseFailed {
			return s.closeProtected(t, at+2)
		}
		return s.retBehind(t, Bool(true), at+2, t.top-at-2)
	case builtinPairs:
		return s.ret(t, at+1, 3)
	default: // dofile, apply
		return s.ret(t, at+1, t.top-at-1)
	}
}

// argCheck builds the Call that argument errors of a builtin need.
func (s *State) argCheck(t *Thread, at, nargs int) *Call {
	return &Call{state: s, thread: t, fn: t.stack[at].function(), args: t.stack[at+1 : at+1+nargs]}
}

func (s *State) startPcall(t *Thread, at, nargs int) (exit bool, err error) {
	if nargs == 0 {
		return false, s.argCheck(t, at, nargs).CheckAny(1)
	}
	t.frame().flags |= frameProtected
	return s.call(t, at+1, nargs-1, returnTo{want: -1, flags: frameCallback})
}

// startXpcall swaps function and handler, so that the function is followed by
// its arguments.
func (s *State) startXpcall(t *Thread, at, nargs int) (exit bool, err error) {
	if _, err := s.argCheck(t, at, nargs).CheckFunction(2); err != nil {
		return false, err
	}
	t.stack[at+1], t.stack[at+2] = t.stack[at+2], t.stack[at+1]
	t.frame().flags |= frameProtected
	return s.call(t, at+2, nargs-2, returnTo{want: -1, flags: frameCallback})
}

func (s *State) startPairs(t *Thread, at, nargs int) (exit bool, err error) {
	if nargs == 0 {
		return false, s.argCheck(t, at, nargs).CheckAny(1)
	}
	if err := t.reserve(at + 4); err != nil {
		return false, err
	}
	v := t.stack[at+1]
	if h := s.metamethod(v, evPairs); h.p != nil {
		t.stack[at+1], t.stack[at+2] = h, v
		return s.call(t, at+1, 1, returnTo{want: 3, flags: frameCallback})
	}
	t.stack[at+1], t.stack[at+2] = v, Nil
	return s.retBehind(t, s.nextFunction, at+1, 2)
}
