package launch

import "maps"

// note notes that a program runs, or has ended.
func (l *Launcher) note(c *Command, runs bool) {
	if l == nil {
		return
	}
	l.runningLock.Lock()
	defer l.runningLock.Unlock()
	if !runs {
		delete(l.started, c.Process.Pid)
		return
	}
	if l.started == nil {
		l.started = map[int]string{}
	}
	l.started[c.Process.Pid] = c.name
}

// Started returns the programs that run: the names of their profiles, by process id.
func (l *Launcher) Started() map[int]string {
	if l == nil {
		return nil
	}
	l.runningLock.Lock()
	defer l.runningLock.Unlock()
	return maps.Clone(l.started)
}
