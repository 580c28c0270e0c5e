package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
)

// Modes of a service. The path of a service is /MODE/SERVICE/predict.
const (
	modeOK      = "ok"      // it answers
	modeFlaky   = "flaky"   // it answers each request at the third attempt: it is busy, then fails
	modeBroken  = "broken"  // it fails with status 500
	modeHTML    = "html"    // another program is at its address
	modeEmpty   = "empty"   // it answers {}
	modeGarbage = "garbage" // what it made is none of what it should be
)

// modelServer is a stand-in for the music models: it speaks their HTTP, refuses requests
// that they would refuse, and fails as they fail.
type modelServer struct {
	URL   string
	Close func()

	mu       sync.Mutex
	attempts map[string]int // by path and body
	requests map[string][]map[string]any
}

// startModelServer starts it.
func startModelServer() *modelServer {
	s := &modelServer{attempts: map[string]int{}, requests: map[string][]map[string]any{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL, s.Close = server.URL, server.Close
	return s
}

// accepted returns the requests to a service in a mode that it accepted, without those
// that it was busy or failed for.
func (s *modelServer) accepted(mode, service string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[mode+"/"+service])
}

func (s *modelServer) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 3 || parts[2] != "predict" || modelRules[parts[1]].fields == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, `{"detail":"Method Not Allowed"}`, http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	service := modelRules[parts[1]]
	var request map[string]any
	if err := json.Unmarshal(body, &request); err == nil {
		err = service.check(request)
		if err != nil {
			reply(w, http.StatusUnprocessableEntity, map[string]any{"detail": err.Error()})
			return
		}
	} else {
		reply(w, http.StatusUnprocessableEntity, map[string]any{"detail": "no JSON"})
		return
	}
	s.answer(w, parts[0], parts[1], request, s.attempt(r.URL.Path+string(body)))
}

func (s *modelServer) attempt(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[key]++
	return s.attempts[key]
}

func (s *modelServer) answer(w http.ResponseWriter, mode, name string, request map[string]any, attempt int) {
	switch {
	case mode == modeBroken, mode == modeFlaky && attempt == 2:
		reply(w, http.StatusInternalServerError, map[string]any{"detail": "CUDA out of memory"})
		return
	case mode == modeFlaky && attempt == 1:
		w.Header().Set("Retry-After", "0.01")
		reply(w, http.StatusServiceUnavailable, map[string]any{"detail": "GPU busy"})
		return
	case mode == modeHTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>It works!</title>")
		return
	case mode == modeEmpty:
		reply(w, http.StatusOK, map[string]any{})
		return
	}
	s.mu.Lock()
	s.requests[mode+"/"+name] = append(s.requests[mode+"/"+name], request)
	s.mu.Unlock()
	answer := modelRules[name].answer(request)
	if mode == modeGarbage {
		answer = spoil(answer)
	}
	reply(w, http.StatusOK, answer)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// spoil replaces what a model made, and removes what it found.
func spoil(answer map[string]any) map[string]any {
	junk := base64.StdEncoding.EncodeToString([]byte("neither MIDI nor sound"))
	for key := range answer {
		switch key {
		case "variations":
			answer[key] = []any{map[string]any{"midi_base64": junk}}
		case "audio_base64":
			answer[key] = junk
		case "format":
		default:
			delete(answer, key)
		}
	}
	return answer
}

// modelField is a field of a request: its kind, and whether it must be there.
type modelField struct {
	kind     string
	required bool
}

type modelRule struct {
	fields map[string]modelField
	answer func(request map[string]any) map[string]any
}

func modelFields(list string) map[string]modelField {
	all := map[string]modelField{}
	for item := range strings.FieldsSeq(list) {
		name, kind, _ := strings.Cut(item, ":")
		kind, required := strings.CutSuffix(kind, "!")
		all[name] = modelField{kind, required}
	}
	return all
}

const sampling = " temperature:number! top_p:number! max_tokens:number! num_variations:number! client_job_id:string"

var modelRules = map[string]modelRule{
	"orpheus":            {modelFields("model:string task:string! midi_input:midi" + sampling), orpheus},
	"orpheus_bridge":     {modelFields("section_a:midi! section_b:midi" + sampling), orpheus},
	"orpheus_loops":      {modelFields("seed_midi:midi" + sampling), orpheus},
	"orpheus_classifier": {modelFields("midi_input:midi!"), classify},
	"musicgen":           {modelFields("prompt:string! duration:number! temperature:number! top_k:number! top_p:number! guidance_scale:number! do_sample:bool!"), sound},
	"yue":                {modelFields("lyrics:string! genre:string! max_new_tokens:number! run_n_segments:number! seed:number!"), song},
	"clap":               {modelFields("audio:wav! tasks:list! audio_b:wav text_candidates:list"), clap},
	"beatthis":           {modelFields("audio:wav!"), beats},
	"anticipatory":       {modelFields("task:string! midi_input:midi length_seconds:number prime_seconds:number top_p:number num_variations:number model_size:string embed_layer:number client_job_id:string"), anticipate},
	"unknown":            {modelFields("task:string! text:string! seconds:number like:wav"), sound},
}

func (s modelRule) check(request map[string]any) error {
	for name := range request {
		if _, known := s.fields[name]; !known {
			return fmt.Errorf("unknown field %s", name)
		}
	}
	for name, f := range s.fields {
		value, given := request[name]
		switch {
		case !given && f.required:
			return fmt.Errorf("field required: %s", name)
		case !given:
		default:
			if err := f.check(value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (f modelField) check(value any) error {
	ok := false
	switch f.kind {
	case "number":
		_, ok = value.(float64)
	case "bool":
		_, ok = value.(bool)
	case "list":
		_, ok = value.([]any)
	default:
		_, ok = value.(string)
	}
	if !ok {
		return fmt.Errorf("not a %s: %v", f.kind, value)
	}
	if f.kind != "midi" && f.kind != "wav" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(value.(string))
	if err != nil {
		return err
	}
	if f.kind == "midi" {
		if !bytes.HasPrefix(raw, []byte("MThd")) {
			return errors.New("no MIDI file")
		}
		return nil
	}
	_, _, err = audio.Decode(raw)
	return err
}

func orpheus(request map[string]any) map[string]any {
	return map[string]any{"task": request["task"], "variations": variations(request), "meta": map[string]any{}}
}

// variations returns MIDI files that depend on the request.
func variations(request map[string]any) []any {
	seed := 0
	if raw, err := json.Marshal(request); err == nil {
		for _, b := range raw {
			seed = (seed*31 + int(b)) % 4096
		}
	}
	count, _ := request["num_variations"].(float64)
	var made []any
	for i := range max(1, int(count)) {
		raw, err := modelSong(uint8(36+i), uint8(seed%64+32), uint8(seed/64+32))
		if err != nil {
			panic(err) // the notes are valid
		}
		made = append(made, map[string]any{"midi_base64": base64.StdEncoding.EncodeToString(raw), "num_tokens": 100 + i, "num_events": 30})
	}
	return made
}

func classify(map[string]any) map[string]any {
	return map[string]any{"classification": map[string]any{"is_human": true, "confidence": 0.9, "probabilities": map[string]any{"human": 0.9}}, "num_tokens": 12}
}

func sound(request map[string]any) map[string]any {
	raw, err := modelTone(440+float64(len(request)), 1) // other requests get another sound
	if err != nil {
		panic(err) // the tone is valid
	}
	return map[string]any{"audio_base64": base64.StdEncoding.EncodeToString(raw), "sample_rate": 32000, "duration": 1, "num_samples": 32000, "channels": 1, "prompt": request["prompt"]}
}

func song(request map[string]any) map[string]any {
	mp3 := append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x00"), fmt.Sprint(request["lyrics"])...)
	return map[string]any{"status": "success", "audio_base64": base64.StdEncoding.EncodeToString(mp3), "format": "mp3", "lyrics": request["lyrics"], "genre": request["genre"]}
}

func clap(request map[string]any) map[string]any {
	answer := map[string]any{}
	for _, task := range request["tasks"].([]any) {
		answer[fmt.Sprint(task)] = map[string]any{"top_label": "ambient", "score": 0.8}
	}
	return answer
}

func beats(map[string]any) map[string]any {
	return map[string]any{"beats": []any{0.5, 1.0}, "downbeats": []any{0.5}, "bpm": 120, "num_beats": 2, "num_downbeats": 1, "duration": 1, "frames": map[string]any{"fps": 50}}
}

func anticipate(request map[string]any) map[string]any {
	if request["task"] == "embed" {
		return map[string]any{"task": "embed", "embedding": []any{0.1, -0.2}, "embedding_dim": 2, "layer": request["embed_layer"], "num_tokens": 12}
	}
	return map[string]any{"task": request["task"], "variations": variations(request), "metadata": map[string]any{}}
}

// modelSong returns a MIDI file with one note after another.
func modelSong(keys ...uint8) ([]byte, error) {
	events := []smf.Event{smf.SetTempo(0, 500_000)}
	for i, key := range keys {
		events = append(events, smf.Note(int64(i)*480, 0, key, 100), smf.Release(int64(i+1)*480, 0, key))
	}
	f := smf.File{Tracks: []smf.Track{{Events: append(events, smf.End(int64(len(keys))*480))}}}
	return f.Encode()
}

// modelTone returns a WAV file with a sine wave.
func modelTone(hz, seconds float64) ([]byte, error) {
	const rate = 32000
	c := audio.Clip{Channels: 1, Rate: rate}
	for i := range int(seconds * rate) {
		c.Samples = append(c.Samples, float32(0.25*math.Sin(2*math.Pi*hz*float64(i)/rate)))
	}
	return c.Encode(16)
}
