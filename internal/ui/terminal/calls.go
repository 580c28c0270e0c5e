package terminal

import (
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
)

// call is a call of a tool.
type call struct {
	Number uint64    `json:"call"`
	Space  plain     `json:"namespace"`
	Tool   plain     `json:"tool"`
	Caller plain     `json:"caller,omitempty"`
	Depth  int       `json:"depth"`
	TookMS float64   `json:"duration_ms,omitempty"`
	Kind   plain     `json:"error_type,omitempty"`
	Error  plain     `json:"error,omitempty"`
	Began  time.Time `json:"began"`
	Ended  bool      `json:"ended"`
	Node   plain     `json:"node,omitempty"` // if it is not the node that we read from
}

func (c *call) title() plain {
	if c.Space == "" {
		return c.Tool
	}
	return c.Space + "." + c.Tool
}

// key identifies the call: each node counts its own.
func (c *call) key() string {
	return strconv.FormatUint(c.Number, 10) + string(at(c.Node)) + " " + c.Began.String()
}

// ownTools are the tools that the dashboard itself calls. Their calls are not shown.
var ownTools = []plain{"job_list", "approval_list", "job_status", "job_logs", "job_journal", "search_tools", "get_tool_definitions"}

func (c *call) isOwn() bool {
	return c.Space == "" && c.Depth <= 1 && slices.Contains(ownTools, c.Tool)
}

// callsView lists the latest calls of tools.
type callsView struct{}

func (callsView) name() string { return "calls" }

func (callsView) columns() []column {
	return []column{
		{title: "Began", width: 8},
		{title: "Tool", width: 28},
		{title: "Duration", width: 9, right: true},
		{title: "Caller", width: 16, from: 110},
		{title: "Result", from: 56},
	}
}

func (callsView) rows(b *state, of scope, now time.Time) (rows []row) {
	for i := len(b.Calls) - 1; i >= max(0, len(b.Calls)-maxCalls); i-- {
		c := &b.Calls[i]
		if of.server != "" && c.Space != of.server {
			continue
		}
		took, result := lasting(millis(c.TookMS)), cell{text: "ok", style: green}
		switch {
		case !c.Ended:
			took, result = lasting(now.Sub(c.Began)), cell{text: "running", style: yellow}
		case c.Kind != "":
			result = cell{text: c.Kind + ": " + c.Error, style: red}
		}
		rows = append(rows, row{c.key(), []cell{moment(c.Began, now), {text: c.title() + at(c.Node)}, took, {text: c.Caller, style: faint}, result}})
	}
	return rows
}

// call finds a call by its key.
func (b *state) call(key string) *call {
	for i := range b.Calls {
		if b.Calls[i].key() == key {
			return &b.Calls[i]
		}
	}
	return nil
}

// open shows one call.
func (callsView) open(m *model, _ scope, row string) tea.Cmd {
	c := m.shown().call(row)
	if c == nil {
		return nil
	}
	last := *c // calls are not kept for ever
	return m.push(&document{name: last.title(), row: row, does: callsView{}.actions(scope{}), body: func(b *state, _ int, now time.Time) []styled {
		if c := b.call(row); c != nil {
			last = *c
		}
		return last.facts(now)
	}})
}

func (c *call) facts(now time.Time) []styled {
	state := plain("running")
	if c.Ended {
		state = "ended after " + short(millis(c.TookMS))
	}
	return slices.Concat(field("tool", c.title()), field("began", clockTime(c.Began, now)), field("state", state), field("caller", c.Caller),
		field("depth", c.Depth), field("node", c.Node), coloured(field("error type", c.Kind), red), coloured(field("error", c.Error), red))
}

func (callsView) newestFirst() {}

func (callsView) actions(scope) []action {
	return []action{{key: "t", does: "traces", do: func(m *model, row string) tea.Cmd {
		if c := m.shown().call(row); c != nil {
			return m.showTraces(scope{tool: c.title()})
		}
		return nil
	}}}
}

func (callsView) empty(scope) plain { return "no calls yet" }
func (callsView) needs() lists      { return lists{} }
