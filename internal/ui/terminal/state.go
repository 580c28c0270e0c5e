package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
)

// state is what is known about the server: lists that were loaded, and events since.
type state struct {
	Upstreams []upstream `json:"upstreams"`
	Jobs      []job      `json:"jobs"`
	Calls     []call     `json:"calls"` // newest last
	Log       []line     `json:"log"`   // newest last
	Approvals int        `json:"approvals"`
	Nodes     []node     `json:"nodes,omitempty"`          // if several share a database
	Missed    uint64     `json:"missed,omitempty"`         // events that the server dropped because we were too slow
	Restart   []plain    `json:"restart_needed,omitempty"` // changed settings that need a restart

	sessions  []session
	requests  []approval
	pins      []pin
	tools     []toolEntry
	toolTotal int // how many tools there are; possibly more than are loaded
	toolCalls map[string]toolCalls
	traces    []trace
	minutes   map[string][]int  // calls of each server by minute
	stderr    map[string][]line // what the programs of servers wrote, newest last

	seen uint64
}

// How many calls and lines are stored.
const (
	maxCalls  = 500
	maxLines  = 1000
	maxStderr = 2000 // of each server
)

// serverEvent is an event as the server sends it.
type serverEvent struct {
	Seq  uint64          `json:"seq"`
	Time time.Time       `json:"time"`
	Type plain           `json:"type"`
	Data json.RawMessage `json:"data"`
	Node plain           `json:"node"`
}

// apply applies an event and returns the lists that it outdates. An event that was
// received before, as after a reconnect, has no effect.
func (b *state) apply(e *serverEvent) lists {
	if e.Type == "event.missed" {
		var missed struct{ Count uint64 }
		_ = json.Unmarshal(e.Data, &missed) // an invalid count is 0
		b.Missed += missed.Count
		b.seen = 0 // possibly another server, which counts from 1
		return allLists
	}
	if e.Seq <= b.seen {
		return lists{}
	}
	b.seen = e.Seq
	switch e.Type {
	case "tool.call_started":
		return b.callStarted(e)
	case "tool.call_ended":
		return b.callEnded(e)
	case "job.progress":
		return b.jobProgressed(e)
	}
	if said, ok := lineOf(e); ok {
		b.addLine(said)
	}
	if e.Type == "upstream.stderr" {
		b.addStderr(e)
	}
	return changedLists(e.Type)
}

// addLine adds a line to the log. A repetition takes the place of the earlier line and
// counts it.
func (b *state) addLine(l line) {
	if l.replaces != "" {
		at := slices.IndexFunc(b.Log, func(old line) bool { return old.replaces == l.replaces })
		if at >= 0 {
			l.Count, l.First = max(b.Log[at].Count, 1)+1, b.Log[at].First
			b.Log = slices.Delete(b.Log, at, at+1)
		} else {
			l.First = l.Time
		}
	}
	b.Log = append(b.Log, l)
	if len(b.Log) > 2*maxLines {
		b.Log = slices.Clone(b.Log[len(b.Log)-maxLines:])
	}
}

// addStderr stores a line that the program of a server wrote.
func (b *state) addStderr(e *serverEvent) {
	var written struct {
		Upstream string
		Line     plain
	}
	if json.Unmarshal(e.Data, &written) != nil {
		return
	}
	if b.stderr == nil {
		b.stderr = map[string][]line{}
	}
	all := append(b.stderr[written.Upstream], line{Time: e.Time, Text: written.Line, Node: e.Node})
	if len(all) > 2*maxStderr {
		all = slices.Clone(all[len(all)-maxStderr:])
	}
	b.stderr[written.Upstream] = all
}

// still is a copy that later events do not change.
func (b *state) still() *state {
	c := *b
	c.Jobs, c.Calls, c.Log, c.stderr = slices.Clone(b.Jobs), slices.Clone(b.Calls), slices.Clone(b.Log), maps.Clone(b.stderr)
	return &c
}

func (b *state) callStarted(e *serverEvent) lists {
	c := call{Began: e.Time, Node: e.Node}
	if json.Unmarshal(e.Data, &c) == nil && !c.isOwn() {
		b.Calls = append(b.Calls, c)
		if len(b.Calls) > 2*maxCalls {
			b.Calls = slices.Clone(b.Calls[len(b.Calls)-maxCalls:])
		}
	}
	return lists{}
}

func (b *state) callEnded(e *serverEvent) lists {
	var c call
	if json.Unmarshal(e.Data, &c) != nil || c.isOwn() {
		return lists{}
	}
	c.Ended, c.Node = true, e.Node
	for i := len(b.Calls) - 1; i >= 0; i-- {
		if known := &b.Calls[i]; known.Number == c.Number && known.Node == c.Node && !known.Ended {
			c.Began = known.Began
			*known = c
			return callLists(&c)
		}
	}
	c.Began = e.Time.Add(-time.Duration(c.TookMS * float64(time.Millisecond)))
	b.Calls = append(b.Calls, c) // the start of the call was not received
	return callLists(&c)
}

// callLists are the lists that the end of a call changes.
func callLists(c *call) lists {
	if c.Space == "" {
		return setOf(traceList, activityList)
	}
	return setOf(serverList, callReport, traceList, activityList)
}

// jobProgressed updates the progress of a job without loading the list.
func (b *state) jobProgressed(e *serverEvent) lists {
	var progress struct {
		ID       plain `json:"job_id"`
		Fraction float64
		Message  plain
	}
	if json.Unmarshal(e.Data, &progress) != nil {
		return lists{}
	}
	for i := range b.Jobs {
		if j := &b.Jobs[i]; j.ID == progress.ID && j.active() {
			j.Progress, j.Message = progress.Fraction, progress.Message
			return lists{}
		}
	}
	return setOf(jobList)
}

// perSecond is the rate of calls that ended recently.
func (b *state) perSecond(now time.Time) float64 {
	const window = 10 * time.Second
	n := 0
	for i := len(b.Calls) - 1; i >= 0 && now.Sub(b.Calls[i].Began) < window; i-- {
		if b.Calls[i].Ended {
			n++
		}
	}
	return float64(n) / window.Seconds()
}

// Messages about the server for the model.
type (
	// eventBatch holds the events of one batchInterval, so that many events cause few redraws.
	eventBatch []serverEvent
	// connected says that the event stream is open.
	connected struct{}
	// disconnected says that the stream failed, and when the next attempt is.
	disconnected struct {
		err  error
		next time.Time
	}
)

const (
	batchInterval = 33 * time.Millisecond // how long events are collected into one batch
	minRetry      = 500 * time.Millisecond
	maxRetry      = 5 * time.Second
	maxBatch      = 1000
)

// followEvents sends the server's events as messages until ctx ends. After a
// disconnect it reconnects and continues after the last event.
func followEvents(ctx context.Context, s *server, now func() time.Time, send func(tea.Msg)) {
	after, delay := "all", minRetry
	for ctx.Err() == nil {
		body, err := s.events(ctx, after, true)
		if err == nil {
			send(connected{})
			delay = minRetry
			after, err = readBatches(ctx, body, after, send)
		}
		if ctx.Err() != nil {
			return
		}
		send(disconnected{err, now().Add(delay)})
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRetry)
	}
}

// readBatches reads a stream to its end and sends its events in batches. It returns the
// id of the last event.
func readBatches(ctx context.Context, body io.ReadCloser, after string, send func(tea.Msg)) (string, error) {
	defer func() { _ = body.Close() }()
	read := make(chan serverEvent, maxBatch)
	var failed error
	go func() { // ends with the stream, which ends with ctx
		defer close(read)
		failed = readEvents(ctx, body, &after, read)
	}()
	for first := range read {
		batch := eventBatch{first}
		gathered := time.After(batchInterval)
	more:
		for len(batch) < maxBatch {
			select {
			case e, open := <-read:
				if !open {
					break more
				}
				batch = append(batch, e)
			case <-gathered:
				break more
			}
		}
		send(batch)
	}
	return after, failed
}

func readEvents(ctx context.Context, body io.Reader, after *string, into chan<- serverEvent) error {
	for events := sse.NewReader(body, 0); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return fault.New(fault.Unavailable, "the server closed the connection")
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "read events")
		}
		*after = e.ID
		if t, ok := parseEvent(e); ok {
			select {
			case into <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// parseEvent decodes an event; events that cannot be decoded are ignored.
func parseEvent(e sse.Event) (serverEvent, bool) {
	var t serverEvent
	return t, json.Unmarshal(e.Data, &t) == nil
}

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
