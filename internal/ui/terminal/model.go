package terminal

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// beat is how often times are drawn anew, and lists that are old are asked for.
const beat = 500 * time.Millisecond

// patience is how long an action may take.
const patience = 30 * time.Second

// model is the state of the dashboard. Everything happens in Update, one message
// after the other.
type model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea's messages carry none; it ends with Run
	server *server
	now    func() time.Time
	board  board

	live    bool
	away    unlinked // why it is not live, once it was tried
	refused error    // the server does not want us: no use in trying again

	old    stale // lists to ask for at the next beat
	asking stale // lists that were asked for

	width, height int
	focus         paneID
	panes         [paneCount]pane
	frozen        *board // what is shown instead while the person wants nothing to move
	mode          mode
	question      question
	details       details
	flash         flash
}

// mode is who gets the keys.
type mode int

const (
	watching mode = iota
	filtering
	confirming
	reading // details
	helping
)

// question is asked before something is done that cannot be undone.
type question struct {
	text plain
	yes  tea.Cmd
}

// flash is a word about what was done, shown until the next key.
type flash struct {
	text plain
	bad  bool
}

func newModel(ctx context.Context, s *server, now func() time.Time) *model {
	return &model{ctx: ctx, server: s, now: now, width: 80, height: 24}
}

// The messages a model sends to itself.
type (
	beaten          struct{}
	upstreamsLoaded struct {
		list []upstream
		err  error
	}
	jobsLoaded struct {
		list []job
		err  error
	}
	approvalsLoaded struct {
		waiting int
		err     error
	}
	settingsLoaded struct {
		restart []plain
		err     error
	}
	nodesLoaded struct {
		list []node
		err  error
	}
	// done is what became of an action.
	done struct {
		text plain
		err  error
	}
)

func (m *model) Init() tea.Cmd { return m.beat() }

func (m *model) beat() tea.Cmd {
	return tea.Tick(beat, func(time.Time) tea.Msg { return beaten{} })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case beaten:
		return m, tea.Batch(m.beat(), m.ask())
	case linked:
		m.live = true
		m.old = everything
		return m, m.ask()
	case unlinked:
		return m, m.lost(msg)
	case happened:
		for i := range msg {
			m.old.add(m.board.apply(&msg[i]))
		}
	case detailsLoaded:
		m.details.load(msg)
	case done:
		m.flash = flash{msg.text, false}
		if msg.err != nil {
			m.flash = flash{clean(msg.err.Error()), true}
		}
		m.old = everything
		return m, m.ask()
	default:
		m.loaded(msg)
	}
	return m, nil
}

// lost takes note that the server is away, or gives up on one that refuses us.
func (m *model) lost(msg unlinked) tea.Cmd {
	m.live, m.away = false, msg
	switch fault.CodeOf(msg.err) {
	case fault.NeedsAuth, fault.Denied:
		m.refused = msg.err
		return tea.Quit
	}
	return nil
}

// loaded takes in a list that was asked for. One that did not come stays old.
func (m *model) loaded(msg tea.Msg) {
	switch msg := msg.(type) {
	case upstreamsLoaded:
		m.asking.upstreams = false
		if msg.err == nil {
			m.board.Upstreams = msg.list
		}
		m.complain(msg.err)
	case jobsLoaded:
		m.asking.jobs = false
		if msg.err == nil {
			m.board.Jobs = msg.list
		}
		m.complain(msg.err)
	case approvalsLoaded:
		m.asking.approvals = false
		if msg.err == nil {
			m.board.Approvals = msg.waiting
		}
		m.complain(msg.err)
	case nodesLoaded:
		m.asking.nodes = false
		if msg.err == nil {
			m.board.Nodes = msg.list
		}
		m.complain(msg.err)
	case settingsLoaded:
		m.asking.settings = false
		if msg.err == nil {
			m.board.Restart = msg.restart
		}
		m.complain(msg.err)
	}
}

// complain says what went wrong, unless it is that the server is away, which is
// said already, or that we are leaving.
func (m *model) complain(err error) {
	if err != nil && fault.CodeOf(err) != fault.Unavailable && !errors.Is(err, context.Canceled) {
		m.flash = flash{clean(err.Error()), true}
	}
}

// ask asks for the lists that are old, each one at a time.
func (m *model) ask() tea.Cmd {
	if !m.live {
		return nil
	}
	var commands []tea.Cmd
	if due(&m.old.upstreams, &m.asking.upstreams) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.upstreams(m.ctx, m.now)
			return upstreamsLoaded{list, err}
		})
	}
	if due(&m.old.jobs, &m.asking.jobs) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.jobs(m.ctx)
			return jobsLoaded{list, err}
		}, m.reread())
	}
	if due(&m.old.approvals, &m.asking.approvals) {
		commands = append(commands, func() tea.Msg {
			waiting, err := m.server.approvals(m.ctx)
			return approvalsLoaded{waiting, err}
		})
	}
	if due(&m.old.nodes, &m.asking.nodes) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.nodes(m.ctx)
			return nodesLoaded{list, err}
		})
	}
	if due(&m.old.settings, &m.asking.settings) {
		commands = append(commands, func() tea.Msg {
			names, err := m.server.restartNeeded(m.ctx)
			return settingsLoaded{names, err}
		})
	}
	return tea.Batch(commands...)
}

// due tells whether a list is old and not asked for yet, which it is from now on.
func due(old, asking *bool) bool {
	if !*old || *asking {
		return false
	}
	*old, *asking = false, true
	return true
}

// shown is the board as the person wants to see it.
func (m *model) shown() *board {
	if m.frozen != nil {
		return m.frozen
	}
	return &m.board
}
