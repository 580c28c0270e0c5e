package hootserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// Broadcast publishes a message to all subscribers. It may be lost.
func (s *Server) Broadcast(ctx context.Context, message hootproto.Broadcast) {
	if s.pub == nil {
		return
	}
	frame, err := hootproto.EncodeBroadcast(hootproto.JSON, message)
	if err == nil {
		err = s.pub.Send(ctx, zmtp.Message{frame})
	}
	if err != nil {
		s.opts.Log.DebugContext(ctx, "broadcast lost", "error", err)
	}
}

// broadcastEvents broadcasts events of the bus until ctx ends.
func (s *Server) broadcastEvents(ctx context.Context) {
	if s.opts.Events == nil || s.pub == nil {
		return
	}
	types := []string{"job.*"}
	for _, kind := range forwarded {
		types = append(types, strings.Replace(kind, "_", ".", 1))
	}
	sub := s.opts.Events.Subscribe(event.Options{Types: types})
	defer sub.Close()
	for e := range sub.All(ctx) {
		if message := broadcastOf(e); message != nil {
			s.Broadcast(ctx, message)
		}
	}
}

// forwarded are the types of broadcasts whose data is that of an event. The event's
// type has a dot for the first underscore.
var forwarded = []string{
	"artifact_created", "transport_state_changed", "marker_reached", "beat_tick",
	"region_entered", "region_left", "config_update", "script_invalidate", "job_state_changed",
}

// broadcastOf returns the broadcast for an event, or nil. Events that came from an
// upstream backend are not broadcast: two servers that are each other's backends
// would repeat them for ever.
func broadcastOf(e event.Event) hootproto.Broadcast {
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
	for _, known := range forwarded {
		if kind == known {
			return withType(kind, raw)
		}
	}
	return nil
}

// stateOf returns the broadcast for a job in that state or, if state is empty, in
// the state of the event.
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

// withType returns an event's data with its type added.
func withType(kind string, raw json.RawMessage) hootproto.Broadcast {
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
