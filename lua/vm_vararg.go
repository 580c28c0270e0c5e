package lua

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
