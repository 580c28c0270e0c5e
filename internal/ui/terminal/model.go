package terminal

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// refreshInterval is how often the screen is redrawn and outdated lists are loaded.
const refreshInterval = 500 * time.Millisecond

// actionTimeout is how long an action may take.
const actionTimeout = 30 * time.Second

// model is the state of the dashboard. Update changes it, one message at a time.
type model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea's messages have no context; it ends with Run
	server *server
	now    func() time.Time
	state  state

	live       bool
	disconnect disconnected // the last failure, once there was one
	refused    error        // the server refused our key: there will be no retry

	stale   lists // lists to load at the next tick
	loading lists // lists that are being loaded

	width, height int
	focus         paneID
	panes         [paneCount]pane
	paused        *state // what is shown while updates are paused
	mode          mode
	confirmation  confirmation
	details       details
	message       message
}

// mode says what handles key presses.
type mode int

const (
	browsing mode = iota
	filtering
	confirming
	showingDetails
	showingHelp
)

// confirmation asks before an action that cannot be undone.
type confirmation struct {
	text plain
	yes  tea.Cmd
}

// message is the result of an action, shown until the next key.
type message struct {
	text plain
	bad  bool
}

func newModel(ctx context.Context, s *server, now func() time.Time) *model {
	return &model{ctx: ctx, server: s, now: now, width: 80, height: 24}
}

// Messages that the model sends to itself.
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
	// actionDone is the result of an action.
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

// onDisconnect records a disconnect. It quits if the server refused the key.
func (m *model) onDisconnect(msg disconnected) tea.Cmd {
	m.live, m.disconnect = false, msg
	switch fault.CodeOf(msg.err) {
	case fault.NeedsAuth, fault.Denied:
		m.refused = msg.err
		return tea.Quit
	}
	return nil
}

// loaded stores a list that was loaded. After an error the old list stays.
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

// showError shows an error, unless it is a disconnect, which the header shows, or the
// end of the program.
func (m *model) showError(err error) {
	if err != nil && fault.CodeOf(err) != fault.Unavailable && !errors.Is(err, context.Canceled) {
		m.message = message{clean(err.Error()), true}
	}
}

// loadStale starts loading the outdated lists that are not being loaded.
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

// startLoading reports whether a list is outdated and not being loaded, and marks it as
// being loaded.
func startLoading(old, asking *bool) bool {
	if !*old || *asking {
		return false
	}
	*old, *asking = false, true
	return true
}

// shown is the state that is on the screen.
func (m *model) shown() *state {
	if m.paused != nil {
		return m.paused
	}
	return &m.state
}
