package phrase_test

import (
	"testing"

	"github.com/luanette/luanette/internal/observe/phrase"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, data string
		want       phrase.Line
	}{
		{"upstream.connected", `{"upstream":"far","tool_count":1}`, phrase.Line{Kind: phrase.Good, Text: "far: connected, 1 tool"}},
		{"upstream.connected", `{"upstream":"far","tool_count":3}`, phrase.Line{Kind: phrase.Good, Text: "far: connected, 3 tools"}},
		{"tool.flagged", `{"upstream":"far","name":"get","flags":[{"code":"hidden","text":"has hidden characters"},{"text":"asks for secrets"}]}`, phrase.Line{Kind: phrase.Neutral, Text: "far.get: has hidden characters; asks for secrets"}},
		{"tool.call_ended", `{"namespace":"far","tool":"get","duration_ms":12.4}`, phrase.Line{Kind: phrase.Neutral, Text: "far.get: done in 12 ms"}},
		{"upstream.reconnecting", `{"upstream":"far","attempt":3,"delay_ms":3000,"error":"no"}`, phrase.Line{Kind: phrase.Bad, Text: "far: disconnected, attempt 3 in 3.0 s: no"}},
		{"tool.call_ended", `{"namespace":"","tool":"job_list","error":"denied"}`, phrase.Line{Kind: phrase.Bad, Text: "job_list: denied"}},
		{"job.progress", `{"name":"tidy","fraction":0.5,"message":"half"}`, phrase.Line{Kind: phrase.Neutral, Text: "job tidy: 50 % half"}},
		{"job.finished", `{"job_id":"0123456789","status":"failed","took_ms":65000,"error":"no"}`, phrase.Line{Kind: phrase.Bad, Text: "job 01234567: failed after 1m5s: no"}},
		{"job.started", `{"name":"tidy"}`, phrase.Line{Kind: phrase.Neutral, Text: "job tidy: started"}},
		{"session.forked", `{"session":"s1"}`, phrase.Line{Kind: phrase.Neutral, Text: "session s1: forked"}},
		{"config.update", `{"key":"listen","value":"x","restart_needed":true}`, phrase.Line{Kind: phrase.Bad, Text: "setting listen: changed, takes effect after a restart"}},
		{"event.missed", `{"count":3}`, phrase.Line{Kind: phrase.Bad, Text: "3 events missed"}},
		{"event.missed", `{"count":0}`, phrase.Line{Kind: phrase.Bad, Text: "events missed, number unknown"}},
		{"artifact.created", `{"artifact_id":"artifact_0123456789ab","name":"Scale"}`, phrase.Line{Kind: phrase.Neutral, Text: "artifact Scale: created"}},
		{"artifact.created", `{"artifact_id":"artifact_0123456789ab"}`, phrase.Line{Kind: phrase.Neutral, Text: "artifact 0123456789ab: created"}},
		{"unknown.type", `{"a":1}`, phrase.Line{Kind: phrase.Neutral}},
		{"job.finished", `no JSON`, phrase.Line{Kind: phrase.Bad, Text: "job :  after "}},
	} {
		if got := phrase.Of(test.kind, []byte(test.data)); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.kind, test.data, got, test.want)
		}
	}
}
