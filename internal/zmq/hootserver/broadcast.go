package hootserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// broadcast tells everybody who listens.
func (b *Server) broadcast(ctx context.Context, news hootproto.Broadcast) {
	if b.pub == nil {
		return
	}
	frame, err := hootproto.EncodeBroadcast(hootproto.JSON, news)
	if err == nil {
		err = b.pub.Send(ctx, zmtp.Message{frame})
	}
	if err != nil {
		b.opts.Log.DebugContext(ctx, "a broadcast was lost", "error", err)
	}
}

// tell broadcasts what happens in the house until ctx ends.
func (b *Server) tell(ctx context.Context) {
	if b.opts.Events == nil || b.pub == nil {
		return
	}
	types := []string{"job.*"}
	for _, kind := range passed {
		types = append(types, strings.Replace(kind, "_", ".", 1))
	}
	sub := b.opts.Events.Subscribe(event.Options{Types: types})
	defer sub.Close()
	for e := range sub.All(ctx) {
		if news := newsOf(e); news != nil {
			b.broadcast(ctx, news)
		}
	}
}

// passed are the broadcasts that an event of the house is as it stands: its type
// has a dot for the first _ of these.
var passed = []string{
	"artifact_created", "transport_state_changed", "marker_reached", "beat_tick",
	"region_entered", "region_left", "config_update", "script_invalidate", "job_state_changed",
}

// newsOf is an event as a broadcast, or nil when it is none. What we heard from a
// backend of our own is not said again: two that are each other's would never
// stop.
func newsOf(e event.Event) hootproto.Broadcast {
	raw, err := json.Marshal(e.Data)
	if err != nil {
		return nil
	}
	var from struct {
		Upstream string `json:"upstream"`
	}
	if json.Unmarshal(raw, &from) == nil && from.Upstream != "" {
		return nil
	}
	switch e.Type {
	case "job.submitted":
		return stateOf(raw, "pending")
	case "job.started":
		return stateOf(raw, "running")
	case "job.paused":
		return stateOf(raw, "paused")
	case "job.finished":
		return stateOf(raw, "")
	case "job.progress":
		var p struct {
			ID       string  `json:"job_id"`
			Fraction float64 `json:"fraction"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		return hootproto.Progress{JobID: p.ID, Percent: p.Fraction, Message: p.Message}
	}
	kind := strings.Replace(e.Type, ".", "_", 1)
	for _, known := range passed {
		if kind == known {
			return asItIs(kind, raw)
		}
	}
	return nil
}

// stateOf tells of a job that it is in that state, or in the one it names.
func stateOf(raw json.RawMessage, state string) hootproto.Broadcast {
	var j struct {
		ID     string          `json:"job_id"`
		State  string          `json:"status"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(raw, &j) != nil {
		return nil
	}
	if state != "" {
		j.State = state
	}
	return hootproto.JobStateChanged{JobID: j.ID, State: j.State, Result: j.Result}
}

// asItIs is an event's data with its type before it.
func asItIs(kind string, raw json.RawMessage) hootproto.Broadcast {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	tag, err := json.Marshal(kind)
	if err != nil {
		return nil
	}
	members["type"] = tag
	whole, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return hootproto.RawBroadcast{Type: kind, Raw: whole}
}
