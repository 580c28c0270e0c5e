package upstream

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// programStart is what is known of the starts of a program. It is stored.
//
// A program of an installed package sleeps when nobody uses it, unless its spec says how it is
// started: what it offers cannot change before it is upgraded, and so its tools, resources and
// prompts are kept, and with the next start of ours it is not started before its first call. One
// that starts slowly, that speaks without being asked, or whose resources somebody has subscribed
// to is kept running.
type programStart struct {
	Program string        `json:"program,omitempty"` // see programOf; empty: it may be another one with each start
	Took    time.Duration `json:"took,omitempty"`    // at best, without the time in which others had the processor
	Speaks  bool          `json:"speaks,omitempty"`  // it has said something without being asked
}

// maySleep reports whether the program may sleep unasked.
func (o *Options) maySleep(p programStart) bool {
	return p.Program != "" && p.Took < o.QuickStart && !p.Speaks
}

// and adds a further start.
func (p programStart) and(next programStart) programStart {
	if p.Program != next.Program {
		return next
	}
	return programStart{p.Program, min(p.Took, next.Took), p.Speaks || next.Speaks}
}

// programOf identifies the program of an installed package with what it gets from the spec, except
// secrets.
func programOf(spec Spec, record packages.Record) string {
	env := map[string]string{}
	for name, value := range spec.Env {
		if env[name] = value; redact.Secret(name) {
			env[name] = redact.Hidden
		}
	}
	raw, err := json.Marshal([]any{identity(spec), record.Folder, env, spec.EnvFile, spec.InheritEnv, spec.CleanEnv})
	if err != nil {
		return "" // strings always encode
	}
	return digest(string(raw))
}

// currentProgram is the program that a start of the spec would run; empty if it is not that of an
// installed package.
func (o *Options) currentProgram(spec Spec) string {
	launch, err := o.Launch(spec)
	if err != nil || !launch.Installs() {
		return ""
	}
	if record, found := o.Packages.Find(launch.Request); found {
		return programOf(spec, record)
	}
	return ""
}

// sleepsUnasked reports whether the spec leaves it to us whether its program sleeps.
func (o *Options) sleepsUnasked(spec Spec) bool {
	return spec.Start == "" && !spec.Personal() && o.Idle > 0
}

// startsAsleep reports whether the program need not be started before its first call. One whose
// settings have changed is started: somebody wants to see whether it works.
func (c *connection) startsAsleep(spec Spec) bool {
	start := c.known.stored().Start
	return !c.replaces && c.opts.sleepsUnasked(spec) && c.opts.maySleep(start) && start.Program == c.opts.currentProgram(spec)
}

// idle is how long the server is not used until it sleeps; zero: it does not.
func (c *connection) idle() time.Duration {
	spec := c.spec.Load()
	switch {
	case c.restored.hasSubscribers():
		return 0
	case spec.lazy():
		return spec.idle()
	case c.opts.sleepsUnasked(*spec) && c.opts.maySleep(c.known.stored().Start):
		return positive(spec.idle(), c.opts.Idle)
	}
	return 0
}

// measureStart notes how long the program of a session took to start. It runs until then.
func (s *session) measureStart(spec Spec, installed *installed, took time.Duration) {
	if installed == nil {
		return
	}
	if s.traits.Work != nil {
		took -= s.traits.Work().waited
	}
	s.start = programStart{Program: programOf(spec, installed.record), Took: took}
}

// ofCalls are messages that say nothing by themselves.
var ofCalls = []string{wire.NoteProgress, wire.NoteCancelled, wire.NoteListenAcknowledged, wire.MethodPing, wire.MethodRoots}

// noteUnasked notes that a message of the server belongs to no call, and not to its start.
func (s *session) noteUnasked(m wire.Message) {
	if slices.Contains(ofCalls, m.Method) || s.start.Program == "" || !s.settled.Load() || s.activeCalls() > 0 {
		return
	}
	if s.connection.known.speaks(s) {
		s.connection.saveCache()
	}
}

// speaks records that the program of a session says something without being asked. It reports
// whether that is new.
func (k *known) speaks(s *session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.source != s || k.record.Start.Speaks {
		return false
	}
	k.record.Start.Speaks = true
	return true
}
