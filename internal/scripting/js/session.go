package js

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Session is a persistent realm: what a script defines at the top level is available to
// the next one. Between evaluations a session is an image of memory, tens of kilobytes that
// differ from an empty realm. It holds an instance of the engine only while a script runs.
//
// A script that is stopped, by its limits or by its context, leaves the session unchanged.
// A script that fails keeps the changes it made before the error.
type Session struct {
	engine *Engine
	turn   chan struct{} // held by the evaluation in progress

	mu    sync.Mutex
	state state
}

// state is the state of a session between two evaluations. It is replaced, never modified.
type state struct {
	image *image     // nil means the template: nothing has run yet
	maps  sourceMaps // of sources whose functions may still exist
	turns int        // evaluations that were not stopped
}

// NewSession makes an empty session. It need not be closed.
func (e *Engine) NewSession() *Session { return newSession(e, state{}) }

func newSession(e *Engine, s state) *Session {
	return &Session{engine: e, turn: make(chan struct{}, 1), state: s}
}

// Eval runs a program in the session. Evaluations run one at a time, the others wait.
// Variables may be declared again. Variables of a program that returns at the top level are
// local to it. A program without a name is called "eval-3.js", by its number.
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

// now returns the state after the last evaluation.
func (s *Session) now() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Turns returns the number of evaluations that were not stopped.
func (s *Session) Turns() int { return s.now().turns }

// Fork makes another session with the same state. It copies nothing. If an evaluation is in
// progress, the fork has the state before it.
func (s *Session) Fork() *Session { return newSession(s.engine, s.now()) }

// Size returns the memory that the session takes between evaluations, in bytes. Forks
// share it.
func (s *Session) Size() int {
	if img := s.now().image; img != nil {
		return img.bytes()
	}
	return 0
}
