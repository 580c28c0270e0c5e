package terminal

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// refreshInterval is how often the screen is redrawn and outdated lists are loaded.
const refreshInterval = 500 * time.Millisecond

// model is the state of the dashboard. Update changes it, one message at a time.
type model struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea's messages have no context; it ends with Run
	server *server
	shell  func(context.Context) error
	now    func() time.Time
	state  state
	paused *state // what is shown while updates are paused

	live       bool
	disconnect disconnected // the last failure, once there was one
	refused    error        // the server refused our key: there will be no retry
	loading    loading

	width, height int
	pages         []page // the last one is shown
	prompt        prompt
	confirmation  confirmation
	message       message
}

// message is the result of an action, shown until the next key.
type message struct {
	text plain
	bad  bool
}

func newModel(ctx context.Context, s *server, now func() time.Time, shell func(context.Context) error) *model {
	return &model{ctx: ctx, server: s, shell: shell, now: now, width: 80, height: 24, pages: []page{newOverview()}}
}

// Messages that the model sends to itself.
type (
	tick struct{}
	// actionDone is the result of an action.
	actionDone struct {
		text plain
		err  error
	}
)

// Init starts the clock.
func (m *model) Init() tea.Cmd { return m.scheduleTick() }

func (m *model) scheduleTick() tea.Cmd {
	return tea.Tick(refreshInterval, func(time.Time) tea.Msg { return tick{} })
}

// Update handles a message from the terminal, and passes on those about the server.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseClickMsg:
		return m, m.click(msg.Mouse())
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
	case tick:
		m.loading.tick()
		return m, tea.Batch(m.scheduleTick(), m.loadStale())
	default:
		return m, m.updateServer(msg)
	}
	return m, nil
}

// updateServer handles a message about the server.
func (m *model) updateServer(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case connected:
		m.live = true
		return m.reloadAll()
	case disconnected:
		return m.onDisconnect(msg)
	case eventBatch:
		for i := range msg {
			m.loading.stale.add(m.state.apply(&msg[i]))
		}
	case loaded:
		m.finishLoad(msg)
	case documentLoaded:
		m.finishDocument(msg)
	case toolsFound:
		m.state.addFound(msg.tools)
		m.showError(msg.err)
	case jobStarted:
		return m.showStarted(msg)
	case actionDone:
		m.message = message{msg.text, false}
		if msg.err != nil {
			m.message = message{advice(msg.err), true}
		}
		return m.reloadAll()
	}
	return nil
}

// reloadAll loads everything again at once.
func (m *model) reloadAll() tea.Cmd {
	m.loading.stale = allLists
	m.loading.pause = [listCount]int{}
	return m.loadStale()
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

// shown is the state that is on the screen.
func (m *model) shown() *state {
	if m.paused != nil {
		return m.paused
	}
	return &m.state
}
