package upstream

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Broadcast is an event that a backend broadcasts.
type Broadcast struct {
	Upstream string
	kind     string
	data     json.RawMessage
}

// EventType is the type of the broadcast with a dot for its first underscore:
// artifact_created becomes "artifact.created". Unknown types, and those about the
// backend itself, begin with "backend.", so that no backend can forge other events.
func (b Broadcast) EventType() string { return b.kind }

// EventKey is the upstream's name.
func (b Broadcast) EventKey() string { return b.Upstream }

// MarshalJSON writes the broadcast with the name of the upstream.
func (b Broadcast) MarshalJSON() ([]byte, error) { return b.data, nil }

func newBroadcast(upstream, kind string, data json.RawMessage) Broadcast {
	data = rawjson.SetText(rawjson.Delete(data, "type"), "upstream", upstream)
	return Broadcast{upstream, broadcastType(kind), data}
}

func broadcastType(kind string) string {
	switch kind {
	case "progress":
		return "job.progress"
	case "artifact_created", "job_state_changed", "transport_state_changed", "marker_reached", "beat_tick",
		"region_entered", "region_left", "config_update", "script_invalidate":
		return strings.Replace(kind, "_", ".", 1)
	}
	return "backend." + clean(kind[:min(len(kind), 64)])
}

// handleBroadcast takes a broadcast. Progress and logs of a call in progress go to
// its caller; everything else is published as an event.
func (t *zmqTransport) handleBroadcast(b hootproto.RawBroadcast) {
	switch b.Type {
	case "progress", "log":
		known, err := b.Decode()
		if err != nil {
			t.hooks.Garbage(excerpt([]byte(err.Error())))
			return
		}
		if t.routeToCall(known) {
			return
		}
		if p, ok := known.(hootproto.Progress); ok { // as in the events of our own jobs
			b.Raw = rawjson.Set(b.Raw, "fraction", jsonNumber(p.Percent))
		}
	case "shutdown":
		t.hooks.CheckHealth()
	}
	t.hooks.Broadcast(b.Type, b.Raw)
}

// routeToCall passes progress and logs to the call that they belong to, if it is
// one of ours.
func (t *zmqTransport) routeToCall(b hootproto.Broadcast) bool {
	var id string
	switch n := b.(type) {
	case hootproto.Progress:
		id = n.JobID
	case hootproto.Log:
		id = n.JobID
	}
	request, err := hootproto.ParseID(id)
	if err != nil {
		return false
	}
	t.mu.Lock()
	call, found := t.calls[request]
	t.mu.Unlock()
	if !found {
		return false
	}
	switch n := b.(type) {
	case hootproto.Progress:
		t.hooks.Received(call, wire.Notification(wire.NoteProgress, progressParams(call, n)))
	case hootproto.Log:
		params := rawjson.SetText(rawjson.SetText(nil, "level", n.Level), "data", n.Message)
		if n.Source != "" {
			params = rawjson.SetText(params, "logger", n.Source)
		}
		t.hooks.Received(call, wire.Notification(wire.NoteMessage, params))
	}
	return true
}

// progressParams are the params of the MCP notification. Our progress tokens are
// the request ids.
func progressParams(call wire.ID, p hootproto.Progress) json.RawMessage {
	done, total := p.Percent, 1.0
	if p.Done > 0 {
		done, total = p.Done, p.Total
	}
	params := rawjson.Set(nil, wire.MetaProgressToken, json.RawMessage(call))
	params = rawjson.Set(params, "progress", jsonNumber(done))
	if total > 0 {
		params = rawjson.Set(params, "total", jsonNumber(total))
	}
	return rawjson.SetText(params, "message", p.Message)
}

func jsonNumber(n float64) json.RawMessage { return strconv.AppendFloat(nil, n, 'g', -1, 64) }
