package upstream

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Broadcast is something a backend told everybody.
type Broadcast struct {
	Upstream string
	kind     string
	data     json.RawMessage
}

// EventType is the broadcast's, with a dot for its first _: artifact_created is
// "artifact.created". Types we do not know, and those that are about the backend
// itself, begin with "backend.", so that no backend can say what is not its own.
func (b Broadcast) EventType() string { return b.kind }

// EventKey is the upstream's name.
func (b Broadcast) EventKey() string { return b.Upstream }

// MarshalJSON writes what the backend told, and which one it was.
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

// handleBroadcast takes a broadcast: what belongs to a call under way goes to its
// caller, the rest to the house.
func (l *zmqTransport) handleBroadcast(news hootproto.RawBroadcast) {
	switch news.Type {
	case "progress", "log":
		known, err := news.Decode()
		if err != nil {
			l.hooks.Garbage(excerpt([]byte(err.Error())))
			return
		}
		if l.routeToCall(known) {
			return
		}
		if p, ok := known.(hootproto.Progress); ok { // as our own jobs say it
			news.Raw = rawjson.Set(news.Raw, "fraction", jsonNumber(p.Percent))
		}
	case "shutdown":
		l.hooks.CheckHealth()
	}
	l.hooks.Broadcast(news.Type, news.Raw)
}

// routeToCall brings news of a call to whoever made it, if it is one of ours.
func (l *zmqTransport) routeToCall(news hootproto.Broadcast) bool {
	var id string
	switch n := news.(type) {
	case hootproto.Progress:
		id = n.JobID
	case hootproto.Log:
		id = n.JobID
	}
	request, err := hootproto.ParseID(id)
	if err != nil {
		return false
	}
	l.mu.Lock()
	call, under := l.calls[request]
	l.mu.Unlock()
	if !under {
		return false
	}
	switch n := news.(type) {
	case hootproto.Progress:
		l.hooks.Received(call, wire.Notification(wire.NoteProgress, progressParams(call, n)))
	case hootproto.Log:
		params := rawjson.SetText(rawjson.SetText(nil, "level", n.Level), "data", n.Message)
		if n.Source != "" {
			params = rawjson.SetText(params, "logger", n.Source)
		}
		l.hooks.Received(call, wire.Notification(wire.NoteMessage, params))
	}
	return true
}

// progressParams is progress in MCP's words; our progress tokens are our ids.
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
