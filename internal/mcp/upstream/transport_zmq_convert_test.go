package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Whatever a backend replies becomes a result that clients can read.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		`{"type":"success","result":{"text":"a","data":{"b":1}}}`, `{"type":"success","result":[1,"x"]}`, `{"type":"success"}`,
		`{"type":"success","result":{"text":"","data":1.5e300,"attachments":[{"mime_type":"image/png","data":"AQI="},{},{"uri":"a"},{"text":"x"}]}}`,
		`{"type":"error","code":"c","message":"m","hint":"h","details":{"a":[null]}}`, `{"type":"error"}`, `{"type":"error","details":" "}`,
		"\x82\xa4type\xa7success\xa6result\xc4\x01a",
	} {
		f.Add([]byte(seed), seed[0] != '{')
	}
	f.Fuzz(func(t *testing.T, body []byte, packed bool) {
		frame := hootproto.Message{Command: hootproto.Reply, Content: hootproto.JSON, Body: body}
		if packed {
			frame.Content = hootproto.MsgPack
		}
		var outcome hootproto.Outcome
		if frame.Decode(&outcome) != nil {
			return
		}
		result := resultOf(outcome)
		if err := rawjson.Valid(result); err != nil {
			t.Fatalf("%s: %v", result, err)
		}
		view, err := tool.Result{Raw: result}.View()
		if err != nil || view.IsError != (outcome.Err != nil) || len(view.Content) == 0 {
			t.Fatalf("%s: %v", result, err)
		}
		if view.Structured != nil && !rawjson.IsObject(view.Structured) {
			t.Fatalf("%s: the structured content is no object", result)
		}
	})
}

// Whatever a backend broadcasts becomes an event that cannot be mistaken for one of
// another source.
func FuzzBroadcast(f *testing.F) {
	for _, seed := range []string{
		`{"type":"artifact_created","artifact_id":"a","upstream":"forged"}`, `{"type":"upstream.connected"}`, `{"type":"job_finished","job_id":"x"}`,
		`{"type":"progress","job_id":1}`, `{"type":"\u0000"}`, "\x81\xa4type\xa3log", `{"type":"beat_tick","type":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	ours := []string{"artifact.created", "job.state_changed", "job.progress", "transport.state_changed", "marker.reached", "beat.tick", "region.entered", "region.left", "config.update", "script.invalidate"}
	f.Fuzz(func(t *testing.T, frame []byte) {
		broadcast, err := hootproto.ParseBroadcast(frame)
		if err != nil {
			return
		}
		b := newBroadcast("band", broadcast.Type, broadcast.Raw)
		known := false
		for _, kind := range ours {
			known = known || b.EventType() == kind
		}
		if !known && !strings.HasPrefix(b.EventType(), "backend.") {
			t.Fatalf("%s became %q", frame, b.EventType())
		}
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		if from, _ := rawjson.GetText(raw, "upstream"); from != "band" {
			t.Fatalf("%s says it comes from %q", raw, from)
		}
	})
}
