package terminal

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// refreshInterval is how often times are drawn anew, and lists that are old are asked for.
const refreshInterval = 500 * time.Millisecond

// actionTimeout is how long an action may take.
const actionTimeout = 30 * time.Second

// model is the state of the dashboard. Everything happens in Update, one message
// after the other.
type model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea's messages carry none; it ends with Run
	server *server
	now    func() time.Time
	state  state

	live       bool
	disconnect disconnected // why it is not live, once it was tried
	refused    error        // the server does not want us: no use in trying again

	stale   lists // lists to ask for at the next beat
	loading lists // lists that were asked for

	width, height int
	focus         paneID
	panes         [paneCount]pane
	paused        *state // what is shown instead while the person wants nothing to move
	mode          mode
	confirmation  confirmation
	details       details
	message       message
}

// mode is who gets the keys.
type mode int

const (
	browsing mode = iota
	filtering
	confirming
	showingDetails // details
	showingHelp
)

// confirmation is asked before something is done that cannot be undone.
type confirmation struct {
	text plain
	yes  tea.Cmd
}

// message is a word about what was done, shown until the next key.
type message struct {
	text plain
	bad  bool
}

func newModel(ctx context.Context, s *server, now func() time.Time) *model {
	return &model{ctx: ctx, server: s, now: now, width: 80, height: 24}
}

// The messages a model sends to itself.
type (
	tick            struct{}
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
	// actionDone is what became of an action.
	actionDone struct {
		text plain
		err  error
	}
)

func (m *model) Init() tea.Cmd { return m.scheduleTick() }

func (m *model) scheduleTick() tea.Cmd {
	return tea.Tick(refreshInterval, func(time.Time) tea.Msg { return tick{} })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tick:
		return m, tea.Batch(m.scheduleTick(), m.loadStale())
	case connected:
		m.live = true
		m.stale = allLists
		return m, m.loadStale()
	case disconnected:
		return m, m.onDisconnect(msg)
	case eventBatch:
		for i := range msg {
			m.stale.add(m.state.apply(&msg[i]))
		}
	case detailsLoaded:
		m.details.load(msg)
	case actionDone:
		m.message = message{msg.text, false}
		if msg.err != nil {
			m.message = message{clean(msg.err.Error()), true}
		}
		m.stale = allLists
		return m, m.loadStale()
	default:
		m.loaded(msg)
	}
	return m, nil
}

// onDisconnect takes note that the server is away, or gives up on one that refuses us.
func (m *model) onDisconnect(msg disconnected) tea.Cmd {
	m.live, m.disconnect = false, msg
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
		m.loading.upstreams = false
		if msg.err == nil {
			m.state.Upstreams = msg.list
		}
		m.showError(msg.err)
	case jobsLoaded:
		m.loading.jobs = false
		if msg.err == nil {
			m.state.Jobs = msg.list
		}
		m.showError(msg.err)
	case approvalsLoaded:
		m.loading.approvals = false
		if msg.err == nil {
			m.state.Approvals = msg.waiting
		}
		m.showError(msg.err)
	case nodesLoaded:
		m.loading.nodes = false
		if msg.err == nil {
			m.state.Nodes = msg.list
		}
		m.showError(msg.err)
	case settingsLoaded:
		m.loading.settings = false
		if msg.err == nil {
			m.state.Restart = msg.restart
		}
		m.showError(msg.err)
	}
}

// showError says what went wrong, unless it is that the server is away, which is
// said already, or that we are leaving.
func (m *model) showError(err error) {
	if err != nil && fault.CodeOf(err) != fault.Unavailable && !errors.Is(err, context.Canceled) {
		m.message = message{clean(err.Error()), true}
	}
}

// loadStale asks for the lists that are old, each one at a time.
func (m *model) loadStale() tea.Cmd {
	if !m.live {
		return nil
	}
	var commands []tea.Cmd
	if startLoading(&m.stale.upstreams, &m.loading.upstreams) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.upstreams(m.ctx, m.now)
			return upstreamsLoaded{list, err}
		})
	}
	if startLoading(&m.stale.jobs, &m.loading.jobs) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.jobs(m.ctx)
			return jobsLoaded{list, err}
		}, m.loadJobDetails())
	}
	if startLoading(&m.stale.approvals, &m.loading.approvals) {
		commands = append(commands, func() tea.Msg {
			waiting, err := m.server.pendingApprovals(m.ctx)
			return approvalsLoaded{waiting, err}
		})
	}
	if startLoading(&m.stale.nodes, &m.loading.nodes) {
		commands = append(commands, func() tea.Msg {
			list, err := m.server.nodes(m.ctx)
			return nodesLoaded{list, err}
		})
	}
	if startLoading(&m.stale.settings, &m.loading.settings) {
		commands = append(commands, func() tea.Msg {
			names, err := m.server.restartNeeded(m.ctx)
			return settingsLoaded{names, err}
		})
	}
	return tea.Batch(commands...)
}

// startLoading tells whether a list is old and not asked for yet, which it is from now on.
func startLoading(old, asking *bool) bool {
	if !*old || *asking {
		return false
	}
	*old, *asking = false, true
	return true
}

// showsInline is the board as the person wants to see it.
func (m *model) shown() *state {
	if m.paused != nil {
		return m.paused
	}
	return &m.state
}
