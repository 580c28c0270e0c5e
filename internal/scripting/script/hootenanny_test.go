package script

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
	"github.com/luanette/luanette/internal/store/cas"
)

// hootenanny is a fake music backend: it has one song, records uploads, and its jobs
// complete at once.
type hootenanny struct {
	song string // path of the song

	mu       sync.Mutex
	jobs     int
	slow     atomic.Bool
	rendered map[string]any // arguments of the last convert_midi_to_wav
	uploads  strings.Builder
}

// songHash is the hash of the song.
const songHash = "abc123def456"

// newHootenanny writes its song into a folder that scripts may read.
func newHootenanny(t *testing.T, folder string) *hootenanny {
	t.Helper()
	song := smf.File{Format: 1, Tracks: []smf.Track{
		{Events: []smf.Event{smf.TextEvent(0, smf.TrackName, "Song"), smf.SetTempo(0, 500_000), smf.SetMeter(0, 3, 4), smf.End(0)}},
		{Events: []smf.Event{
			smf.Program(0, 0, 5), smf.Note(10, 0, 60, 100), smf.Release(470, 0, 60),
			smf.Note(475, 0, 127, 90), smf.Release(500, 0, 127), smf.End(960),
		}},
	}}
	data, err := song.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "song.mid")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return &hootenanny{song: path}
}

func (h *hootenanny) addTo(box toolbox) {
	for name, run := range map[string]handler{
		"orpheus_generate": scripttest.HandlerFor(h.generate),
		"job_poll":         scripttest.HandlerFor(h.poll),
		"convert_midi_to_wav": scripttest.HandlerFor(func(_ context.Context, in map[string]any) (any, error) {
			h.rendered = in
			return map[string]any{"job_id": "render-1", "status": "pending"}, nil
		}),
		"job_status":      scripttest.HandlerFor(h.status),
		"abc_to_midi":     scripttest.HandlerFor(h.play),
		"cas_inspect":     scripttest.HandlerFor(h.inspect),
		"cas_upload_file": scripttest.HandlerFor(h.upload),
	} {
		box[tool.Ref{Space: "hootenanny", Name: name}] = run
	}
}

func (h *hootenanny) generate(_ context.Context, in map[string]any) (any, error) {
	if in["model"] != "base" {
		return nil, fault.New(fault.InvalidParams, "no model %v", in["model"]).WithHint("use base")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs++
	in["job_id"] = fmt.Sprintf("job-%d", h.jobs)
	return in, nil
}

func (h *hootenanny) poll(_ context.Context, in struct {
	JobIDs []string `json:"job_ids"`
}) (any, error) {
	if in.JobIDs[0] == "slow" && h.slow.CompareAndSwap(false, true) { // not complete at the first poll
		return map[string]any{"completed": []string{}, "pending": in.JobIDs, "timed_out": true}, nil
	}
	completed := []map[string]string{}
	for _, id := range in.JobIDs {
		completed = append(completed, map[string]string{"job_id": id, "status": "complete"})
	}
	return map[string]any{"completed": completed, "pending": []string{}, "timed_out": false}, nil
}

func (h *hootenanny) status(_ context.Context, in struct {
	JobID string `json:"job_id"`
}) (any, error) {
	switch in.JobID {
	case "broken":
		return map[string]any{"job_id": in.JobID, "status": "failed", "error": map[string]any{"message": "orpheus is not running"}}, nil
	case "render-1":
		return map[string]any{"job_id": in.JobID, "status": "complete", "result": map[string]any{"artifact_id": "artifact_wav", "content_hash": "wav", "asked": h.rendered}}, nil
	default:
		return map[string]any{"job_id": in.JobID, "status": "complete", "result": map[string]any{"artifact_id": "artifact_" + in.JobID, "content_hash": songHash}}, nil
	}
}

func (h *hootenanny) play(_ context.Context, in map[string]any) (any, error) {
	return map[string]any{"artifact_id": "artifact_midi", "content_hash": songHash, "asked": in}, nil
}

func (h *hootenanny) inspect(_ context.Context, in struct{ Hash string }) (any, error) {
	if in.Hash != songHash {
		return nil, fault.New(fault.NotFound, "nothing under %s", in.Hash)
	}
	return map[string]any{"hash": in.Hash, "mime_type": "audio/midi", "exists": true, "local_path": h.song}, nil
}

// upload also records the uploaded music.
func (h *hootenanny) upload(_ context.Context, in struct {
	FilePath string `json:"file_path"`
	MIMEType string `json:"mime_type"`
}) (any, error) {
	data, err := os.ReadFile(in.FilePath)
	if err != nil {
		return nil, err
	}
	file, err := smf.Decode(data)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.uploads, "%s %s format %d\n", filepath.Base(in.FilePath), in.MIMEType, file.Format)
	for i, track := range file.Tracks {
		for _, e := range track.Events {
			fmt.Fprintf(&h.uploads, "  track %d at %d: %s", i+1, e.Time, e.Kind)
			if e.Kind == smf.Meta {
				fmt.Fprintf(&h.uploads, " %s % x\n", e.Meta, e.Bytes)
			} else {
				fmt.Fprintf(&h.uploads, " %d %d %d\n", e.Channel, e.Data1, e.Data2)
			}
		}
	}
	return map[string]any{"hash": cas.Sum(data).String(), "size_bytes": len(data), "mime_type": in.MIMEType}, nil
}
