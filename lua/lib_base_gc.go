package lua

// gcSettings are what scripts set through collectgarbage. They are kept and
// reported back but change nothing: Go's collector does the work.
type gcSettings struct {
	pause, stepmul int64
	generational   bool
}

func baseCollectgarbage(c *Call) error {
	option, err := c.CheckOption(1, "collect", "stop", "restart", "collect", "count", "step", "setpause",
		"setstepmul", "isrunning", "generational", "incremental")
	if err != nil {
		return err
	}
	s := c.state
	if s.gc.finalizing { // as the reference: not from a finalizer
		return c.Return(Bool(false))
	}
	switch option {
	case 0:
		s.gc.stopped = true
		return c.Return(Int(0))
	case 1:
		s.gc.stopped = false
		s.account.memoryNext = s.nextMeasure()
		return c.Return(Int(0))
	case 2:
		return fullCollect(c, Int(0))
	case 3:
		return c.Return(Float(float64(s.account.memory) / 1024))
	case 4:
		return fullCollect(c, Bool(true))
	case 5, 6:
		n, err := c.OptInt(2, 0)
		if err != nil {
			return err
		}
		slot := &s.gcSettings.pause
		if option == 6 {
			slot = &s.gcSettings.stepmul
		}
		old := *slot
		*slot = n
		return c.Return(Int(old))
	case 7:
		return c.Return(Bool(!s.gc.stopped))
	}
	old := "incremental"
	if s.gcSettings.generational {
		old = "generational"
	}
	s.gcSettings.generational = option == 8
	return c.Return(String(old))
}

// fullCollect walks, runs finalizers, and walks again for what they freed.
func fullCollect(c *Call, result Value) error {
	s := c.state
	if err := s.collectNow(); err != nil {
		return err
	}
	return c.Return(result)
}

// collectNow does a full collection with its finalizers.
func (s *State) collectNow() error {
	s.account.memory = s.collect()
	if len(s.gc.pending) > 0 {
		if err := s.finalize(); err != nil {
			return err
		}
		s.account.memory = s.collect()
	}
	s.account.memoryNext = s.nextMeasure()
	return s.step(0)
}
