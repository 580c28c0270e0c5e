package js

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Session is a realm that lasts: what scripts define at the top level is there for the
// next one. At rest a session is an image of memory, tens of kilobytes that differ from an
// empty realm; it holds an instance of the engine only while a script runs.
//
// A script that is stopped, by its limits or by its context, leaves the session as it was
// before. One that fails by itself keeps what it had done until then.
type Session struct {
	engine *Engine
	turn   chan struct{} // held by the evaluation under way

	mu    sync.Mutex
	state state
}

// state is what a session is between two evaluations. It is replaced, never changed.
type state struct {
	image *image     // nil means the template: nothing has run yet
	maps  sourceMaps // of sources whose functions may still be there
	turns int        // evaluations that came to their own end
}

// NewSession makes an empty session. It needs no closing.
func (e *Engine) NewSession() *Session { return newSession(e, state{}) }

func newSession(e *Engine, s state) *Session {
	return &Session{engine: e, turn: make(chan struct{}, 1), state: s}
}

// Eval runs a program in the session, one at a time; others wait for their turn. Variables
// may be declared again. Those of a program that returns at the top level are its own and
// do not last. A program without a name is called "eval-3.js", by its number.
func (s *Session) Eval(ctx context.Context, program Program, host Host) (Outcome, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Outcome{}, fault.Wrap(fault.CodeOf(ctx.Err()), ctx.Err(), "wait for the session")
	}
	m, err := s.engine.enter(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer s.engine.underway.done()
	before := s.now()
	img := before.image
	if img == nil {
		img = m.template
	}
	if program.Name == "" {
		program.Name = fmt.Sprintf("eval-%d.js", before.turns+1)
	}
	r := &run{program: &program, host: host, maps: sourceMaps{}, redeclare: true}
	maps.Copy(r.maps, before.maps)
	outcome, left, err := s.engine.execute(ctx, m, img, r, true)
	if left != nil {
		s.mu.Lock()
		s.state = state{left, r.maps, before.turns + 1}
		s.mu.Unlock()
	}
	return outcome, err
}

// now is the state after the last evaluation.
func (s *Session) now() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Turns is how many evaluations came to their own end, and so may have changed it.
func (s *Session) Turns() int { return s.now().turns }

// Fork makes another session in the same state. It copies nothing, and takes the state
// before an evaluation that is under way.
func (s *Session) Fork() *Session { return newSession(s.engine, s.now()) }

// Size is what the session holds in memory at rest, in bytes; forks share it.
func (s *Session) Size() int {
	if img := s.now().image; img != nil {
		return img.bytes()
	}
	return 0
}
