package lua

// CoroutineLib is the coroutine library.
var CoroutineLib = NewLibrary("coroutine", []Reg{
	{"close", coroutineClose},
	{"create", coroutineCreate},
	{"isyieldable", coroutineIsyieldable},
	{"resume", nil},
	{"running", coroutineRunning},
	{"status", coroutineStatus},
	{"wrap", coroutineWrap},
	{"yield", nil},
}, nil, nil)

// wrapped is the function coroutine.wrap binds a thread to.
var wrapped = func() *Function {
	f := NewFunc("coroutine.wrapped", nil)
	f.host.builtin = builtinWrapped
	return f
}()

func newCoroutine(c *Call) (*Thread, error) {
	f, err := c.CheckFunction(1)
	if err != nil {
		return nil, err
	}
	if err := c.Alloc(threadSize); err != nil {
		return nil, err
	}
	t := newThread(c.state)
	t.stack[0] = f.Value()
	if h := c.thread.hook; h != nil {
		t.setHook(&hook{fn: h.fn, call: h.call, ret: h.ret, line: h.line, count: h.count, left: h.count})
	}
	return t, nil
}

func coroutineCreate(c *Call) error {
	t, err := newCoroutine(c)
	if err != nil {
		return err
	}
	return c.Return(t.Value())
}

func coroutineWrap(c *Call) error {
	t, err := newCoroutine(c)
	if err != nil {
		return err
	}
	return c.Return(wrapped.Bind(t.Value()).Value())
}

func checkThread(c *Call) (*Thread, error) {
	t, ok := c.Arg(1).AsThread()
	if !ok {
		return nil, c.TypeError(1, "thread")
	}
	return t, nil
}

func coroutineStatus(c *Call) error {
	t, err := checkThread(c)
	if err != nil {
		return err
	}
	return c.Return(c.state.intern(t.Status()).value())
}

// Status returns the coroutine's state as coroutine.status names it.
func (t *Thread) Status() string {
	return [...]string{"suspended", "running", "normal", "dead", "dead"}[t.status]
}

// Failure returns the error that killed the coroutine, with its cause and the
// coroutine's own traceback, or nil when no error did.
func (t *Thread) Failure() *Error {
	if t.status != failed {
		return nil
	}
	return &Error{Value: t.failure, Cause: t.cause, Traceback: t.state.Traceback(t, "", 0)}
}

func coroutineRunning(c *Call) error {
	return c.Return(c.thread.Value(), Bool(c.thread == c.state.main))
}

func coroutineIsyieldable(c *Call) error {
	t := c.thread
	if v, ok := c.Arg(1).AsThread(); ok {
		t = v
	} else if c.NArgs() > 0 {
		if _, err := checkThread(c); err != nil {
			return err
		}
	}
	return c.Return(Bool(t != c.state.main && t.pinned == 0))
}

func coroutineClose(c *Call) error {
	t, err := checkThread(c)
	if err != nil {
		return err
	}
	switch t.status {
	case running, normal:
		return c.Errorf("cannot close a %s coroutine", t.Status())
	}
	failure, err := c.state.closeThread(t)
	if err != nil {
		return err
	}
	if failure != nil {
		return c.Return(Bool(false), failure.Value)
	}
	return c.Return(Bool(true))
}

// closeThread ends a coroutine that does not run, closing its variables. It
// returns the error it died of or a handler raised.
func (s *State) closeThread(t *Thread) (*Error, error) {
	var failure *Error
	if t.status == failed {
		failure = &Error{Value: t.failure}
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.depth+t.resumes >= maxDepth {
		return nil, s.depthError()
	}
	t.frames = t.frames[:0]
	t.status = running
	resumer := s.cur
	t.resumer = resumer
	before, hadFailure := Nil, failure != nil
	if hadFailure {
		before = failure.Value
	}
	v, raised, err := s.closeAllReporting(t, 0, before)
	t.status, t.resumer, t.failure, t.cause = dead, nil, Nil, nil
	t.stack = make([]Value, 1)
	t.limit = 1
	if err != nil {
		return nil, err
	}
	if raised || hadFailure {
		return &Error{Value: v}, nil
	}
	return nil, nil
}
