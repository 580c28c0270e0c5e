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

// Attachments keep their names, and embedded ones have a URI.
func TestAttachments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   hootproto.Attachment
		want string
	}{
		{hootproto.Attachment{Name: "notes 1.txt", MimeType: "text/plain", Text: "do re"},
			`{"type":"resource","resource":{"uri":"attachment:///notes%201.txt","mimeType":"text/plain","text":"do re","_meta":{"luanette/name":"notes 1.txt"}}}`},
		{hootproto.Attachment{Text: "no name"}, `{"type":"resource","resource":{"uri":"attachment:///3","text":"no name"}}`},
		{hootproto.Attachment{}, `{"type":"resource","resource":{"uri":"attachment:///3","text":""}}`},
		{hootproto.Attachment{Name: "a.mid", MimeType: "audio/midi", Data: []byte{1}},
			`{"type":"audio","data":"AQ==","mimeType":"audio/midi","_meta":{"luanette/name":"a.mid"}}`},
		{hootproto.Attachment{Name: "a.bin", URI: "file:///a.bin", Data: []byte{1}},
			`{"type":"resource","resource":{"uri":"file:///a.bin","blob":"AQ==","_meta":{"luanette/name":"a.bin"}}}`},
		{hootproto.Attachment{URI: "https://x/y"}, `{"type":"resource_link","uri":"https://x/y","name":"https://x/y"}`},
	} {
		if got := attachmentBlock(c.in, 3); string(got) != c.want {
			t.Errorf("%+v became\n%s, want\n%s", c.in, got, c.want)
		}
	}
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
