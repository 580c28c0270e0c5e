package hootproto

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestBroadcastsNameTheirProject checks that a broadcast about a transport that is read
// and written again still says which project it is about.
func TestBroadcastsNameTheirProject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"transport_state_changed","project":"suite","state":"playing","position_beats":1,"tempo_bpm":90}`,
		`{"type":"marker_reached","project":"suite","position_beats":1,"marker_type":"cue"}`,
		`{"type":"beat_tick","project":"suite","beat":1,"position_beats":1,"tempo_bpm":90}`,
	} {
		b, err := DecodeBroadcast([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(b)
		if err != nil || !strings.Contains(string(raw), `"project":"suite"`) {
			t.Errorf("%s became %s, %v", text, raw, err)
		}
	}
}
