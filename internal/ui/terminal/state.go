package terminal

import (
	"cmp"
	"encoding/json"
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

	seen uint64
}

// How many calls and lines are stored.
const (
	maxCalls = 500
	maxLines = 1000
)

// upstream is an upstream as mcp_list_upstreams returns it.
type upstream struct {
	Name      plain   `json:"namespace"`
	Endpoint  plain   `json:"endpoint"`
	Transport plain   `json:"transport,omitempty"`
	Protocol  plain   `json:"protocol,omitempty"`
	State     plain   `json:"state"`
	Tools     int     `json:"tool_count"`
	Stale     bool    `json:"stale,omitempty"`
	Error     plain   `json:"error,omitempty"`
	Attempt   int     `json:"attempt,omitempty"`
	NextTryMS int64   `json:"next_try_ms,omitempty"`
	Warnings  []plain `json:"warnings,omitempty"`
	Calls     int     `json:"call_count"`
	Errors    int     `json:"error_count"`
	InFlight  int     `json:"in_flight"`
	LastTool  plain   `json:"last_tool,omitempty"`
	P50       float64 `json:"p50_ms,omitempty"`
	P99       float64 `json:"p99_ms,omitempty"`

	loadedAt time.Time // when the server reported this
}

// untilRetry is the time until the next connection attempt.
func (u *upstream) untilRetry(now time.Time) time.Duration {
	return max(u.loadedAt.Add(time.Duration(u.NextTryMS)*time.Millisecond).Sub(now), 0)
}

func (u *upstream) isConnected() bool { return u.State == "connected" }

// isRemoved reports whether a user removed it although the configuration has it.
func (u *upstream) isRemoved() bool { return u.State == "removed" }

// job is a job as job_list returns it. Times are seconds since 1970.
type job struct {
	ID        plain   `json:"job_id"`
	Status    plain   `json:"status"`
	Name      plain   `json:"name,omitempty"`
	Creator   plain   `json:"creator,omitempty"`
	Script    plain   `json:"script_hash,omitempty"`
	Tags      []plain `json:"tags,omitempty"`
	Created   float64 `json:"created_at"`
	Started   float64 `json:"started_at,omitempty"`
	Completed float64 `json:"completed_at,omitempty"`
	Progress  float64 `json:"progress"`
	Message   plain   `json:"message,omitempty"`
	Error     *struct {
		Code    plain `json:"code"`
		Message plain `json:"message"`
		Hint    plain `json:"hint,omitempty"`
	} `json:"error,omitempty"`
}

func (j *job) title() plain { return cmp.Or(j.Name, j.ID) }

func (j *job) active() bool {
	return j.Status == "pending" || j.Status == "running" || j.Status == "waiting"
}

// took is how long the job ran, or has been running.
func (j *job) took(now time.Time) time.Duration {
	if j.Started == 0 {
		return 0
	}
	end := float64(now.UnixMilli()) / 1000
	if j.Completed > 0 {
		end = j.Completed
	}
	return time.Duration(max(end-j.Started, 0) * float64(time.Second))
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

// serverEvent is an event as the server sends it.
type serverEvent struct {
	Seq  uint64          `json:"seq"`
	Time time.Time       `json:"time"`
	Type plain           `json:"type"`
	Data json.RawMessage `json:"data"`
	Node plain           `json:"node"`
}

// lists names lists that have to be loaded again.
type lists struct{ upstreams, jobs, approvals, nodes, settings bool }

func (s *lists) add(other lists) {
	s.upstreams = s.upstreams || other.upstreams
	s.jobs = s.jobs || other.jobs
	s.approvals = s.approvals || other.approvals
	s.nodes = s.nodes || other.nodes
	s.settings = s.settings || other.settings
}

var allLists = lists{upstreams: true, jobs: true, approvals: true, nodes: true, settings: true}

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
	return changedLists(e.Type)
}

func (b *state) addLine(l line) {
	if l.replaces != "" {
		b.Log = slices.DeleteFunc(b.Log, func(old line) bool { return old.replaces == l.replaces })
	}
	b.Log = append(b.Log, l)
	if len(b.Log) > 2*maxLines {
		b.Log = slices.Clone(b.Log[len(b.Log)-maxLines:])
	}
}

// ownTools are the tools that the dashboard itself calls. Their calls are not shown.
var ownTools = []plain{"mcp_list_upstreams", "job_list", "approval_list", "job_status", "job_logs"}

func (c *call) isOwn() bool {
	return c.Space == "" && c.Depth <= 1 && slices.Contains(ownTools, c.Tool)
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
			return lists{upstreams: c.Space != ""}
		}
	}
	c.Began = e.Time.Add(-time.Duration(c.TookMS * float64(time.Millisecond)))
	b.Calls = append(b.Calls, c) // the start of the call was not received
	return lists{upstreams: c.Space != ""}
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
	return lists{jobs: true}
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
