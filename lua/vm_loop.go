package lua

import (
	"math"
	"unsafe"
)

// forPrep prepares a numeric loop at ra: start, limit, step, variable. For
// integers the limit becomes the number of turns still to do. It reports a
// loop that does not run.
func (s *State) forPrep(t *Thread, ra *Value) (skip bool, err error) {
	slots := (*[4]Value)(unsafe.Pointer(ra))
	start, limit, step := slots[0], slots[1], slots[2]
	if start.isInt() && step.isInt() {
		if step.n == 0 {
			return false, s.runtimeError("'for' step is zero")
		}
		last, skip, err := s.forLimit(start.int(), limit, step.int())
		if err != nil || skip {
			return skip, err
		}
		count := uint64(last) - start.n
		if step.int() > 0 {
			if step.n != 1 {
				count /= step.n
			}
		} else {
			count = start.n - uint64(last)
			count /= uint64(-(step.int() + 1)) + 1
		}
		slots[1] = Value{unsafe.Pointer(&intHeader), count}
		slots[3] = start
		return false, nil
	}
	return s.forPrepFloat(slots)
}

// forLimit turns the limit of an integer loop into an integer.
func (s *State) forLimit(start int64, limit Value, step int64) (last int64, skip bool, err error) {
	if limit.isInt() {
		last = limit.int()
	} else {
		n, ok := toNumber(limit)
		if !ok {
			return 0, false, s.forError("limit", limit)
		}
		f, _ := n.AsFloat()
		switch {
		case n.isInt():
			last = n.int()
		case math.IsNaN(f):
			return 0, true, nil
		case f >= 0x1p63:
			if step < 0 {
				return 0, true, nil
			}
			last = math.MaxInt64
		case f < -0x1p63:
			if step > 0 {
				return 0, true, nil
			}
			last = math.MinInt64
		case step > 0:
			last = int64(math.Floor(f))
		default:
			last = int64(math.Ceil(f))
		}
	}
	if step > 0 {
		return last, start > last, nil
	}
	return last, start < last, nil
}

func (s *State) forPrepFloat(slots *[4]Value) (skip bool, err error) {
	limit, ok := toFloat(slots[1])
	if !ok {
		return false, s.forError("limit", slots[1])
	}
	step, ok := toFloat(slots[2])
	if !ok {
		return false, s.forError("step", slots[2])
	}
	start, ok := toFloat(slots[0])
	if !ok {
		return false, s.forError("initial value", slots[0])
	}
	if step == 0 {
		return false, s.runtimeError("'for' step is zero")
	}
	if step > 0 && limit < start || !(step > 0) && start < limit {
		return true, nil
	}
	slots[0], slots[1], slots[2], slots[3] = Float(start), Float(limit), Float(step), Float(start)
	return false, nil
}

func (s *State) forError(what string, v Value) error {
	return s.runtimeError("bad 'for' %s (number expected, got %s)", what, s.typeName(v))
}

// iterNext is next(t, k) for a loop at ra: iterator, table, key, closing
// value, and then key and value of the turn. The place of the last key is
// remembered in the iterator's slot, which scripts do not see.
func (s *State) iterNext(t *Table, ra *Value) error {
	slots := (*[6]Value)(unsafe.Pointer(ra))
	key := slots[2]
	pos := int(ra.n)
	if !t.isAt(pos, key) {
		if pos = t.position(key); pos < 0 {
			return &Error{Value: String(string(errNextKey))}
		}
	}
	k, v, next := t.at(pos)
	slots[4], slots[5] = k, v
	ra.n = uint64(max(next, 0))
	return nil
}

// isAt verifies a remembered position: that of the key before it is k.
func (t *Table) isAt(pos int, k Value) bool {
	if pos == 0 {
		return k.p == nil
	}
	if k.isInt() && k.n == uint64(pos) && pos > 0 && pos <= int(t.alen) {
		return true
	}
	if at := pos - int(t.acap) - 1; at >= 0 && at < int(t.elen) {
		e := t.entry(uint32(at))
		return e.k.p == k.p && (e.k.n == k.n || e.k.isString())
	}
	return false
}

// iterIpairs steps an ipairs loop; false leaves it to the general way.
func iterIpairs(t *Table, ra *Value) bool {
	slots := (*[6]Value)(unsafe.Pointer(ra))
	if !slots[2].isInt() {
		return false
	}
	i := slots[2].n + 1
	if at := i - 1; at < uint64(t.alen) {
		if v := t.slot(at); v.p != nil {
			slots[4], slots[5] = Value{unsafe.Pointer(&intHeader), i}, *v
			return true
		}
	}
	if t.meta != nil {
		return false
	}
	v := t.getInt(int64(i))
	slots[4], slots[5] = Value{unsafe.Pointer(&intHeader), i}, v
	if v.p == nil {
		slots[4] = Nil
	}
	return true
}

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
