package lua

// readThread completes a coroutine. Whether it makes sense is checked at the
// end, when its functions are there.
func (r *restorer) readThread(t *Thread) {
	t.id = r.id()
	t.status = status(r.byte())
	t.overflowed = r.bool()
	t.failure = r.value()
	h := r.readHook()
	top := r.uint()
	stack := r.list()
	frames := r.count(11)
	r.charge(frames * int(frameSize))
	if r.failure != nil {
		return
	}
	t.stack = append(stack, make([]Value, max(0, firstStack-len(stack)))...)
	t.top = int(min(top, uint64(len(t.stack))))
	t.frames = make([]frame, 0, frames+4)
	for range frames {
		t.frames = append(t.frames, r.readFrame())
	}
	for range r.count(1) {
		t.pending = append(t.pending, r.small())
	}
	t.setHook(h)
	r.readOpen(t)
}

func (r *restorer) readFrame() frame {
	f := frame{
		fn: r.small(), ret: r.small(), top: r.small(), pc: r.small(), want: r.small(), extra: r.small(), a: r.small(),
		closing: r.small(),
	}
	f.cont, f.flags, f.phase = continuation(r.byte()), frameFlags(r.byte()), r.byte()
	return f
}

// readOpen links the variables that live on the stack of t, topmost first.
func (r *restorer) readOpen(t *Thread) {
	link, last := &t.open, len(t.stack)
	for range r.count(2) {
		i, pos := r.below(len(r.upvalues)), r.below(len(t.stack))
		if r.failure != nil {
			return
		}
		u := r.upvalues[i]
		if !r.open[i] || u.thread != nil || pos >= last {
			r.corrupt("the variables on a stack contradict each other")
			return
		}
		u.v, u.thread, u.at = &t.stack[pos], t, pos
		*link, link, last = u, &u.next, pos
	}
}

func (r *restorer) readHook() *hook {
	if !r.bool() {
		return nil
	}
	h := &hook{fn: r.value(), call: r.bool(), ret: r.bool(), line: r.bool()}
	h.count = int(r.small())
	h.left, h.lastPC = int(r.small()), int(r.small())
	if h.count < 0 || h.left < 0 || h.lastPC < 0 {
		r.fail(errReference)
	}
	return h
}
