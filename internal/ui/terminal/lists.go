package terminal

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// list is something that is loaded from the server as a whole.
type list int

const (
	serverList list = iota
	jobList
	approvalList
	nodeList
	settingList
	callReport
	toolList
	traceList
	listCount
)

// lists is a set of them.
type lists [listCount]bool

func setOf(members ...list) (s lists) {
	for _, l := range members {
		s[l] = true
	}
	return s
}

func (s *lists) add(other lists) {
	for l, in := range other {
		s[l] = s[l] || in
	}
}

// meets reports whether two sets have a member in common.
func (s lists) meets(other lists) bool {
	for l := range s {
		if s[l] && other[l] {
			return true
		}
	}
	return false
}

// always are the lists that are loaded on every page. The others are loaded while a page
// shows them.
var always = setOf(serverList, jobList, approvalList, nodeList, settingList, callReport)

// allLists are all of them.
var allLists = setOf(serverList, jobList, approvalList, nodeList, settingList, callReport, toolList, traceList)

// pauses are the ticks between two loads of lists that are large and change with each
// call.
var pauses = map[list]int{callReport: 10, traceList: 4}

// changedLists returns the lists that events of a type change.
func changedLists(kind plain) lists {
	family, _, _ := strings.Cut(string(kind), ".")
	switch family {
	case "upstream":
		if kind == "upstream.stderr" || kind == "upstream.garbage" {
			return lists{}
		}
		return setOf(serverList, toolList)
	case "catalog":
		return setOf(toolList)
	case "job":
		return setOf(jobList, traceList)
	case "approval":
		return setOf(approvalList, jobList)
	case "tool", "pin": // held, changed, flagged
		return setOf(approvalList)
	case "node":
		return setOf(nodeList)
	case "config":
		return setOf(settingList)
	}
	return lists{}
}

// store puts what was loaded into the state.
type store func(*state)

// loaders load each list.
var loaders = [listCount]func(context.Context, *server, time.Time) (store, error){
	serverList:   loadServers,
	jobList:      loadJobs,
	approvalList: loadApprovals,
	nodeList:     loadNodes,
	settingList:  loadSettings,
	callReport:   loadCallReport,
	toolList:     loadTools,
	traceList:    loadTraces,
}

// loaded is a list that was loaded.
type loaded struct {
	list  list
	store store
	err   error
}

// loading is which lists are outdated and which are being loaded.
type loading struct {
	stale, running lists
	pause          [listCount]int // ticks until a list may be loaded again
}

// tick counts the pauses down.
func (l *loading) tick() {
	for i := range l.pause {
		l.pause[i] = max(l.pause[i]-1, 0)
	}
}

// start returns the outdated lists to load now, and marks them as being loaded.
func (l *loading) start(wanted lists) (now lists) {
	for i := range l.stale {
		if l.stale[i] && wanted[i] && !l.running[i] && l.pause[i] == 0 {
			l.stale[i], l.running[i], now[i] = false, true, true
			l.pause[i] = pauses[list(i)]
		}
	}
	return now
}

// loadStale starts loading the outdated lists that are shown.
func (m *model) loadStale() tea.Cmd {
	if !m.live {
		return nil
	}
	wanted := always
	wanted.add(m.page().needs())
	if m.prompt.isCall() {
		wanted.add(setOf(toolList)) // completion needs it
	}
	var commands []tea.Cmd
	now := m.loading.start(wanted)
	for l, load := range now {
		if !load {
			continue
		}
		commands = append(commands, func() tea.Msg {
			store, err := loaders[l](m.ctx, m.server, m.now())
			return loaded{list(l), store, err}
		})
	}
	if d, ok := m.page().(*document); ok && d.load != nil && d.reload.meets(now) {
		commands = append(commands, m.loadDocument(d))
	}
	return tea.Batch(commands...)
}

// finishLoad stores a list that was loaded. After an error the old list stays.
func (m *model) finishLoad(msg loaded) {
	m.loading.running[msg.list] = false
	if msg.err == nil {
		msg.store(&m.state)
	}
	m.showError(msg.err)
}

// showError shows an error, unless it is a disconnect, which the banner shows, or the
// end of the program.
func (m *model) showError(err error) {
	if err != nil && fault.CodeOf(err) != fault.Unavailable && !errors.Is(err, context.Canceled) {
		m.message = message{advice(err), true}
	}
}

// advice is an error with what to do about it.
func advice(err error) plain {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" && !strings.Contains(text, hint) {
		text += ": " + hint
	}
	return clean(text)
}
