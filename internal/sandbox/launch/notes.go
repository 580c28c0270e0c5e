package launch

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
