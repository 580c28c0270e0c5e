// Package terminal is the terminal dashboard: a client of a running server that shows
// its servers, tools, approvals, jobs, calls, traces and log as they change, and acts on
// them by keys. It uses the public HTTP API only. No other package imports Bubble Tea.
//
// The screen shows a page: a table, a document or the overview. Each kind of table is a
// view, in a file of its own.
package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/sse"
)

// Options say which server to show, and where.
type Options struct {
	Server  string // address of a running server
	Key     secret.Text
	CAFile  string // PEM file with the authority of the server's certificate; empty: one of the system
	Version string
	Input   io.Reader
	Output  io.Writer
	Env     []string         // TERM, NO_COLOR and similar
	Now     func() time.Time // nil means time.Now
	Size    [2]int           // columns and rows; zero means the terminal's size

	// Shell runs a REPL of the server on the terminal and returns when the user leaves
	// it; nil if there is none.
	Shell func(context.Context) error
}

func (o *Options) now() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// Run shows the server until the user quits or ctx ends. It reconnects to a server that
// is unreachable; a server that refuses the key is an error.
func Run(ctx context.Context, o Options) error {
	s, err := newServer(o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := newModel(ctx, s, o.now(), o.Shell)
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithEnvironment(o.Env),
		tea.WithoutSignalHandler(), // ctx ends on signals; two handlers can deadlock
	}
	if o.Size[0] > 0 {
		options = append(options, tea.WithWindowSize(o.Size[0], o.Size[1]))
	}
	p := tea.NewProgram(m, options...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		followEvents(ctx, s, o.now(), p.Send)
	}()
	_, err = p.Run()
	stop()
	<-ended
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		err = nil // the user quit
	}
	return errors.Join(err, m.refused)
}

// Once writes the current state of the server, as text or as JSON.
func Once(ctx context.Context, o Options, width int, asJSON bool) error {
	s, err := newServer(o)
	if err != nil {
		return err
	}
	b, err := s.fetchAll(ctx, o.now())
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(o.Output)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(b)
	}
	_, err = io.WriteString(o.Output, snapshot(s, b, o.now()(), width))
	return err
}

// fetchAll loads everything once.
func (s *server) fetchAll(ctx context.Context, now func() time.Time) (*state, error) {
	b := &state{Upstreams: []upstream{}, Jobs: []job{}, Calls: []call{}, Log: []line{}}
	body, err := s.events(ctx, "all", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	for events := sse.NewReader(body, 0); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "read events")
		}
		if t, ok := parseEvent(e); ok {
			b.apply(&t)
		}
	}
	for l := range always {
		if !always[l] || list(l) == callReport {
			continue
		}
		store, err := loaders[l](ctx, s, now())
		if err != nil {
			return nil, err
		}
		store(b)
	}
	return b, nil
}

// shell is a REPL that uses the terminal while the dashboard waits.
type shell struct {
	ctx context.Context // Bubble Tea's interface has no context
	run func(context.Context) error
}

// Run runs it until the user leaves it.
func (s shell) Run() error { return s.run(s.ctx) }

// SetStdin has no effect: the REPL knows its terminal.
func (shell) SetStdin(io.Reader) {}

// SetStdout has no effect.
func (shell) SetStdout(io.Writer) {}

// SetStderr has no effect.
func (shell) SetStderr(io.Writer) {}

// openShell runs the REPL and comes back.
func (m *model) openShell() tea.Cmd {
	if m.shell == nil {
		m.message = message{"no REPL here: run `luanette repl --server " + m.server.address() + "`", true}
		return nil
	}
	return tea.Exec(shell{m.ctx, m.shell}, func(err error) tea.Msg { return actionDone{"back from the REPL", err} })
}
