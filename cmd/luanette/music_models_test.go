package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/programtest"
)

// modelTool is a tool that asks a model: the service, the arguments, and what the result
// must be.
type modelTool struct {
	name, service string
	args          map[string]any
	mime          string // of the artifact; "" for an analysis
	parent        bool   // whether the artifact has a parent
	garbage       string // part of the error when the model makes nonsense
}

// modelServices are the services whose addresses are settings.
var modelServices = []string{"orpheus", "orpheus_classifier", "orpheus_bridge", "orpheus_loops", "musicgen", "clap", "yue", "beatthis", "anticipatory"}

func modelTools(midi, other, wav string) []modelTool {
	const noMIDI, noSound = "variation 1 of", "read the sound of"
	return []modelTool{
		{"orpheus_generate", "orpheus", map[string]any{"model": "base", "num_variations": 2}, "audio/midi", false, noMIDI},
		{"orpheus_generate_seeded", "orpheus", map[string]any{"seed_hash": midi}, "audio/midi", true, noMIDI},
		{"orpheus_continue", "orpheus", map[string]any{"input_hash": midi, "temperature": 0.8}, "audio/midi", true, noMIDI},
		{"orpheus_bridge", "orpheus_bridge", map[string]any{"section_a_hash": midi, "section_b_hash": other}, "audio/midi", true, noMIDI},
		{"orpheus_loops", "orpheus_loops", map[string]any{"seed_hash": midi}, "audio/midi", true, noMIDI},
		{"orpheus_classify", "orpheus_classifier", map[string]any{"input_hash": midi}, "", true, "empty analysis"},
		{"musicgen_generate", "musicgen", map[string]any{"prompt": "rain on a roof"}, "audio/wav", false, noSound},
		{"yue_generate", "yue", map[string]any{"lyrics": "la la la"}, "audio/mpeg", false, noSound},
		{"clap_analyze", "clap", map[string]any{"audio_hash": wav, "tasks": []string{"genre", "mood"}}, "", true, "empty analysis"},
		{"beatthis_analyze", "beatthis", map[string]any{"audio_hash": wav}, "", true, "empty analysis"},
		{"anticipatory_generate", "anticipatory", map[string]any{"length_seconds": 8}, "audio/midi", false, noMIDI},
		{"anticipatory_continue", "anticipatory", map[string]any{"input_hash": midi, "num_variations": 3}, "audio/midi", true, noMIDI},
		{"anticipatory_embed", "anticipatory", map[string]any{"input_hash": midi}, "", true, "empty analysis"},
		{"riff_generate", "riff_generate", map[string]any{"text": "a riff", "like": wav}, "audio/wav", true, noSound}, // of the configuration
	}
}

// TestModelTools runs every tool that asks a model in the real program, against a stand-in
// for the models: it succeeds, succeeds after failures, and fails with a named error.
func TestModelTools(t *testing.T) {
	t.Parallel()
	models := startModelServer()
	t.Cleanup(models.Close)
	t.Run("modes", func(t *testing.T) {
		for _, mode := range []string{modeOK, modeFlaky, modeBroken, modeHTML, modeEmpty, modeGarbage} {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				runModelTools(t, mode, models.URL+"/"+mode+"/")
			})
		}
		t.Run("down", func(t *testing.T) {
			t.Parallel()
			runModelTools(t, "down", "http://"+netguardtest.ReservedAddress()+"/")
		})
	})
	got := models.accepted(modeOK, "unknown")
	if len(got) != 1 || got[0]["task"] != "riff" || got[0]["text"] != "a riff" || got[0]["seconds"] != 5.0 || got[0]["like"] == nil {
		t.Errorf("requests to the configured model: %v", got)
	}
	if got := models.accepted(modeFlaky, "clap"); len(got) != 1 {
		t.Errorf("clap was asked %d times after the failures", len(got))
	}
}

func runModelTools(t *testing.T, mode, services string) {
	s := serveMusic(t, services)
	midi, other, wav := s.input(t, "audio/midi", 60), s.input(t, "audio/midi", 72), s.input(t, "audio/wav", 0)
	for _, tool := range modelTools(midi, other, wav) {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			j := s.job(t, tool)
			switch mode {
			case modeOK, modeFlaky:
				s.checkMade(t, tool, j)
			case modeBroken:
				j.failed(t, "upstream_error", tool.service+" replied with status 500: CUDA out of memory")
			case modeHTML:
				j.failed(t, "upstream_error", "read the reply of "+tool.service)
			case modeEmpty:
				j.failed(t, "upstream_error", tool.service+" ")
			case modeGarbage:
				j.failed(t, "upstream_error", tool.garbage)
			default:
				j.failed(t, "unavailable", "the "+tool.service+" service is not running at "+strings.TrimSuffix(services, "/"))
			}
		})
	}
}

// musicServer is a server of its own process with the music tools.
type musicServer struct{ *programtest.Server }

func serveMusic(t *testing.T, services string) *musicServer {
	t.Helper()
	text := "[music]\nenabled = true\nexpose = [\"all\"]\n[music.services]\n"
	for _, name := range modelServices {
		text += fmt.Sprintf("%s = %q\n", name, services+name)
	}
	text += fmt.Sprintf(`
[music.models.riff_generate]
url = %q
description = "Starts a job that generates a riff."
result = "audio"
send = { task = "riff" }
arguments.text = { type = "string", description = "the riff in words", required = true }
arguments.seconds = { type = "number", default = 5, min = 1, max = 30 }
arguments.like = { type = "audio", description = "a similar sound" }
`, services+"unknown/predict")
	s := programtest.New(t, text)
	s.Start(t)
	t.Cleanup(func() {
		s.Signal(t, os.Interrupt)
		if log, err := s.Wait(); err != nil {
			t.Errorf("serve: %v\n%s", err, log)
		}
	})
	return &musicServer{s}
}

// use calls a music tool that must succeed.
func (s *musicServer) use(t *testing.T, name string, args map[string]any) (out map[string]any) {
	t.Helper()
	if err := s.Call("hootenanny__"+name, args, &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// input creates an artifact to give to models, and returns its id.
func (s *musicServer) input(t *testing.T, mime string, key uint8) string {
	t.Helper()
	raw, err := modelSong(key)
	if mime == "audio/wav" {
		raw, err = modelTone(220, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	stored := s.use(t, "cas_store", map[string]any{"content_base64": base64.StdEncoding.EncodeToString(raw), "mime_type": mime})
	return s.use(t, "artifact_create", map[string]any{"cas_hash": stored["hash"], "creator": "test"})["artifact_id"].(string)
}

// modelJob is a job that has ended.
type modelJob struct {
	Status string
	Result map[string]any
	Error  struct{ Code, Message, Hint string }
}

func (s *musicServer) job(t *testing.T, tool modelTool) (j modelJob) {
	t.Helper()
	id := s.use(t, tool.name, tool.args)["job_id"].(string)
	for pending := 1; pending > 0; {
		polled := s.use(t, "job_poll", map[string]any{"job_ids": []string{id}, "timeout_ms": 30_000})
		pending = len(polled["pending"].([]any))
	}
	raw, err := json.Marshal(s.use(t, "job_status", map[string]any{"job_id": id}))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		t.Fatal(err)
	}
	return j
}

// failed checks that a job failed with an error that says what to do.
func (j modelJob) failed(t *testing.T, code, text string) {
	t.Helper()
	if j.Status != "failed" || j.Error.Code != code || !strings.Contains(j.Error.Message, text) || j.Error.Hint == "" {
		t.Errorf("job %+v, want %s: %s", j, code, text)
	}
}

// checkMade checks the artifact of a job: its type, its tool and where it comes from.
func (s *musicServer) checkMade(t *testing.T, tool modelTool, j modelJob) {
	t.Helper()
	if j.Status != "complete" {
		t.Fatalf("job %+v", j)
	}
	id, mime := j.Result["artifact_id"], tool.mime
	if mime == "" {
		id, mime = j.Result["analysis_artifact_id"], "application/json"
	}
	a := s.use(t, "artifact_get", map[string]any{"id": id})
	if a["mime_type"] != mime || !slices.Contains(a["tags"].([]any), any("tool:"+tool.name)) {
		t.Errorf("artifact %v", a)
	}
	made, _ := a["metadata"].(map[string]any)
	if made["model"] != tool.service || made["job_id"] == nil || made["parameters"] == nil {
		t.Errorf("metadata %v", made)
	}
	sources := 0
	for key, value := range tool.args {
		if text, ok := value.(string); ok && strings.HasPrefix(text, "artifact_") {
			sources++
			if key != "section_b_hash" && a["parent_id"] != text {
				t.Errorf("the parent is %v, want %s", a["parent_id"], text)
			}
		}
	}
	if got, _ := made["sources"].([]any); len(got) != sources || tool.parent != (a["parent_id"] != nil) {
		t.Errorf("sources %v and parent %v for %v", got, a["parent_id"], tool.args)
	}
	if many, ok := tool.args["num_variations"].(int); ok {
		if ids := j.Result["artifact_ids"].([]any); len(ids) != many || a["variation_set_id"] == nil {
			t.Errorf("%d variations in %v, want %d", len(ids), a["variation_set_id"], many)
		}
	}
	if raw, _ := json.Marshal(made["parameters"]); len(raw) > 1000 {
		t.Errorf("the metadata has a content: %.200s", raw)
	}
}
