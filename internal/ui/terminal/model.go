package terminal

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// refreshInterval is how often the screen is redrawn and outdated lists are loaded.
const refreshInterval = 500 * time.Millisecond

// model is the state of the dashboard. Update changes it, one message at a time.
type model struct {
	ctx    context.Context // Bubble Tea's messages have no context; it ends with Run
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
	return &model{ctx: ctx, server: s, shell: shell, now: now, width: 80, height: 24, pages: []page{activityPage()}}
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
		m.loading.stale[serverList] = m.loading.stale[serverList] || m.state.hasTried(m.now())
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
	case found:
		return m.onFound(msg)
	case undoPlanned:
		return m.showUndo(msg)
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

// actionTimeout is how long an action may take.
const actionTimeout = 30 * time.Second

// activityPage is what is shown first.
func activityPage() page { return &table{view: activityView{}} }

// views are all tables, in the order of their keys from 1; 0 is the overview.
func views() []view {
	return []view{activityView{}, serversView{}, toolsView{}, approvalsView{}, jobsView{}, callsView{}, tracesView{}, logView{}, nodesView{}}
}

// key handles a key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.message = message{}
	switch {
	case m.confirmation.question != "":
		return m.answer(name)
	case m.prompt.sign != "":
		return m.promptKey(name, k.Text)
	}
	return m.browseKey(name)
}

// browseKey handles a key that means the same on every page; the page handles the
// others.
func (m *model) browseKey(name string) tea.Cmd {
	switch name {
	case "q":
		if !m.pop() {
			return tea.Quit
		}
	case "?":
		return m.push(helpPage())
	case ":":
		m.prompt = prompt{sign: ":"}
	case "/":
		m.prompt = prompt{sign: "/", text: *m.page().filterText()}
	case "esc":
		m.back()
	case "backspace":
		m.pop()
	case "space", " ":
		m.togglePause()
	case "s":
		return m.openShell()
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return m.showNumber(int(name[0] - '0'))
	default:
		return m.page().press(m, name)
	}
	return nil
}

// showNumber shows the overview for 0, or a view.
func (m *model) showNumber(n int) tea.Cmd {
	if n == 0 {
		return m.show(newOverview())
	}
	return m.show(&table{view: views()[n-1]})
}

// back clears the filter, or goes to the page below.
func (m *model) back() {
	if filter := m.page().filterText(); *filter != "" {
		*filter = ""
		return
	}
	m.pop()
}

// togglePause stops or continues updating the screen.
func (m *model) togglePause() {
	if m.paused != nil {
		m.paused = nil
		return
	}
	m.paused = m.state.still()
}

// callTool calls a tool and shows success or its error.
func (m *model) callTool(name string, args any, done plain) tea.Cmd {
	return m.act(func(ctx context.Context) error { return m.server.call(ctx, name, args, nil) }, done)
}

// act does something on the server and shows success or its error.
func (m *model) act(do func(context.Context) error, done plain) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		return actionDone{done, do(ctx)}
	}
}

// wheelRows is how many rows one step of the wheel moves.
const wheelRows = 3

// click handles a click: tabs show their page, everything else is the page's.
func (m *model) click(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.prompt.sign != "" || m.confirmation.question != "" {
		return nil
	}
	m.message = message{}
	b := m.bodyBox()
	switch {
	case m.hasTabs() && at.Y == 1:
		if n := m.tabAt(at.X); n >= 0 {
			return m.showNumber(n)
		}
	case b.contains(at.X, at.Y):
		return m.page().click(m, b, at.X, at.Y)
	}
	return nil
}

// wheel scrolls the page, or the pane under the pointer.
func (m *model) wheel(at tea.Mouse) {
	lines := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelRows, tea.MouseWheelDown: wheelRows}[at.Button]
	if o, ok := m.page().(*overview); ok {
		if i, _ := o.paneAt(m.bodyBox(), at.X, at.Y); i >= 0 {
			o.focus = i
		}
	}
	m.page().scroll(m, m.bodyBox(), lines)
}

// loadSettings loads which settings take effect after a restart.
func loadSettings(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct {
		Settings []plain `json:"restart_needed"`
	}
	err := s.get(ctx, "/health", &response)
	return func(b *state) { b.Restart = response.Settings }, ignoreMissing(err) // a proxy may hide this path
}

// restartNote is the header's note about settings that need a restart.
func (b *state) restartNote() string {
	if len(b.Restart) == 0 {
		return ""
	}
	return "restart needed for " + strings.Join(texts(b.Restart), ", ")
}
