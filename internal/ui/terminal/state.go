package terminal

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
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
		return setOf(traceList)
	}
	return setOf(serverList, callReport, traceList)
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
