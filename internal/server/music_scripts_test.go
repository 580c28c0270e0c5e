package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
)

// TestDocumentScripts runs the scripts of document.txtar that use music tools. Those with an
// expected error must fail.
func TestDocumentScripts(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(filepath.Join("..", "scripting", "script", "testdata", "document.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, f := range archive.Files {
		sections[f.Name] = string(f.Data)
	}
	m := &music{}
	_, srv := start(t, musicSources(t, m, ""))
	stored, err := srv.contents.PutFile(t.Context(), bytes.NewReader(song(t, 60, 62, 64)), "audio/midi")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.folder, "song.mid"), song(t, 60, 62), 0o600); err != nil {
		t.Fatal(err)
	}
	music := 0
	for name, source := range sections {
		name, isScript := strings.CutSuffix(name, ".lua")
		if !isScript || !strings.Contains(source, "mcp.hootenanny") {
			continue
		}
		music++
		q := script.Request{Source: strings.ReplaceAll(source, "abc123def456", stored.Hash.Short())}
		if params, given := sections[name+".params"]; given {
			q.Main, q.Params = true, json.RawMessage(strings.ReplaceAll(params, "abc123def456", stored.Hash.Short()))
		}
		_, err := srv.scripts.runner.Run(t.Context(), q)
		if _, fails := sections[name+".error"]; fails != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if music < 5 {
		t.Errorf("only %d scripts use music", music)
	}
}

// TestMusicJobContinuesAfterRestart stops the server while a job waits for its model. After
// the restart the job asks the model again and completes, and a replay does not ask it.
func TestMusicJobContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	waiting := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise a closed connection is not noticed
		if requests.Add(1) == 1 {
			close(waiting) // the server stops during the first request
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(args{"beats": []float64{1}, "bpm": 90})
	}))
	t.Cleanup(model.Close)
	sources := config.Sources{File: configtest.WriteFile(t, "[music]\nenabled = true\n[music.services]\nbeatthis = \""+model.URL+"\"\n"), Flags: map[string]string{"data": t.TempDir()}}
	build := func() *Server {
		t.Helper()
		loaded, err := config.Load(sources)
		if err != nil {
			t.Fatal(err)
		}
		srv, err := Build(t.Context(), loaded, Options{Version: "test", Stderr: &startOutput{url: make(chan string, 1)}, Jobs: true})
		if err != nil {
			t.Fatal(err)
		}
		return srv
	}
	first := build()
	stored, err := first.contents.PutFile(t.Context(), bytes.NewReader(tone(t, 0.5)), "audio/wav")
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(args{"audio_hash": stored.Hash.String()})
	result, err := first.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: hootenanny.Space, Name: "beatthis_analyze"}, Args: raw})
	if err != nil {
		t.Fatal(err)
	}
	view, _ := result.View()
	var begun hootenanny.StartedJob
	if err := json.Unmarshal(view.Structured, &begun); err != nil {
		t.Fatalf("%s: %v", result.Raw, err)
	}
	<-waiting
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	second := build()
	t.Cleanup(func() {
		if err := second.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	done, pending, err := second.jobs.Poll(t.Context(), []string{begun.JobID}, 50*time.Second, true)
	if err != nil || len(pending) > 0 || done[0].State != "complete" || !strings.Contains(string(done[0].Result), `"bpm":90`) {
		t.Fatalf("%+v, %v, %v", done, pending, err)
	}
	steps, err := second.jobs.Journal(t.Context(), begun.JobID)
	if err != nil || len(steps) != 1 || steps[0].Name != "model.beatthis" {
		t.Errorf("journal %+v, %v", steps, err)
	}
	replayed, err := second.jobs.Replay(t.Context(), begun.JobID, job.Script{})
	if err != nil || replayed.Error != nil || string(replayed.Result) != string(done[0].Result) {
		t.Errorf("replayed %+v, %v", replayed, err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the model got %d requests, want 2", n)
	}
}
