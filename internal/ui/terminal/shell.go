package terminal

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"
)

// shell is a REPL that uses the terminal while the dashboard waits.
type shell struct {
	ctx context.Context //nolint:containedctx // Bubble Tea's interface has no context
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
