package launch

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/confine"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// receiveNotes passes notes on until the first process ends.
func (c *Command) receiveNotes() {
	defer func() { _ = c.control.Close() }()
	for {
		m, _, err := confine.Next(c.control)
		if err != nil {
			return
		}
		c.passOn(m)
	}
}

func (c *Command) passOn(m confine.Message) {
	for _, note := range m.Notes {
		c.observe(note)
	}
}

// observer passes on what a program was refused.
func (l *Launcher) observer(c *Command, p profile.Profile) func(confine.Note) {
	return func(n confine.Note) {
		if !n.Refused || !exists(n) {
			return
		}
		r := profile.NewRefusal(time.Now(), p, n.Action, c.named(n))
		if n.Allow != "" {
			r.Allow = n.Allow
		}
		l.keep(r)
		for _, told := range []func(profile.Refusal){l.Refused, c.Refused} {
			if told != nil {
				told(r)
			}
		}
	}
}

// named is what a note is about. The addresses that programs get for names are made up.
func (c *Command) named(n confine.Note) string {
	to, err := netip.ParseAddrPort(n.Object)
	if n.Action != profile.Connecting || err != nil || c.gateway == nil {
		return n.Object
	}
	return net.JoinHostPort(c.gateway.HostOf(to.Addr().Unmap()), strconv.Itoa(int(to.Port())))
}

// exists reports whether what a note is about exists outside the sandbox, or could be
// made: programs look for many files that nobody has.
func exists(n confine.Note) bool {
	path := n.Object
	if strings.HasPrefix(path, "/sys/") { // runtimes look there for the computer's size, and do without
		return false
	}
	switch n.Action {
	case profile.Reading, profile.Executing:
	case profile.Writing:
		path = filepath.Dir(path)
	default:
		return true
	}
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, os.ErrNotExist)
}

// refusalFile is where the refusals of a program's last run are kept.
func (l *Launcher) refusalFile(name string) string {
	return filepath.Join(l.Folder, safeName(name), "refused.jsonl")
}

// Refusals are what a program was refused in its last run, the oldest first.
func (l *Launcher) Refusals(name string) ([]profile.Refusal, error) {
	file, err := os.Open(l.refusalFile(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read what %s was refused", name)
	}
	defer file.Close()
	var refusals []profile.Refusal
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r profile.Refusal
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			refusals = append(refusals, r)
		}
	}
	return refusals, lines.Err()
}

// Keep adds a refusal of another part of the sandbox to those of the program's run.
func (l *Launcher) Keep(r profile.Refusal) {
	l.keep(r)
	for _, c := range l.runningAs(r.Name) {
		if c.Refused != nil {
			c.Refused(r)
		}
	}
}

// runningAs are the programs of a name that run.
func (l *Launcher) runningAs(name string) (found []*Command) {
	l.runningLock.Lock()
	defer l.runningLock.Unlock()
	for c := range l.running {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// isRunning says whether refusals of other parts are also those of a program that runs.
func (l *Launcher) isRunning(c *Command, runs bool) {
	l.runningLock.Lock()
	defer l.runningLock.Unlock()
	if l.running == nil {
		l.running = map[*Command]bool{}
	}
	if runs {
		l.running[c] = true
	} else {
		delete(l.running, c)
	}
}

// keep adds a refusal to the file. That nothing can be written is no reason to disturb
// the program: the event says the same.
func (l *Launcher) keep(r profile.Refusal) {
	file, err := os.OpenFile(l.refusalFile(r.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	if text, err := json.Marshal(r); err == nil {
		_, _ = file.Write(append(text, '\n'))
	}
}

// forget begins a new run.
func (l *Launcher) forget(name string) { _ = os.Remove(l.refusalFile(name)) }
