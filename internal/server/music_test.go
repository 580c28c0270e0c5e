package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// music calls the music tools, in process or over ZeroMQ.
type music struct {
	source  tool.Source
	url     string // of the server
	backend string // endpoint of the tools, if they are in another process
	srv     *Server
	folder  string // whose files may be uploaded
	models  *models
	schemas map[string]*jsonschema.Schema

	mu     sync.Mutex
	called map[string]bool
}

// musicTests are the tests of the music tools.
var musicTests = map[string]func(*testing.T, *music){
	"contents": testContents, "artifacts": testArtifacts, "variations": testVariations, "graph": testGraph, "identities": testIdentities,
	"tunes": testTunes, "media": testMedia, "render": testRender, "garden": testGarden, "events": testEvents, "jobs": testJobs,
	"models": testModels, "absent models": testAbsentModels, "help": testHelp, "over HTTP": testMusicHTTP,
}

// run runs some of the tests against the same tools.
func (m *music) run(t *testing.T, names ...string) {
	t.Helper()
	t.Run("tools", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				musicTests[name](t, m)
			})
		}
	})
}

// TestMusic tests the music tools in the server's process.
func TestMusic(t *testing.T) {
	t.Parallel()
	m := startMusic(t)
	m.run(t, slices.Collect(maps.Keys(musicTests))...)
	tools, err := m.source.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range tools {
		if info.Space == hootenanny.Space && !m.called[info.Name] {
			t.Errorf("%s was not called", info.Name)
		}
	}
}

// TestMusicOverZeroMQ runs those tests again that depend on how a call travels: with large
// contents, jobs and media, against a backend that is connected over ZeroMQ.
func TestMusicOverZeroMQ(t *testing.T) {
	t.Parallel()
	m := startMusicOverZeroMQ(t)
	m.run(t, "contents", "media", "jobs", "over HTTP")
	testRawRequests(t, m.backend)
}

// testRawRequests checks that the backend checks the arguments of clients that have no
// catalog, and answers without names of our types.
func testRawRequests(t *testing.T, endpoint string) {
	c, err := hootclient.Dial(t.Context(), endpoint, hootclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, raw := range []struct{ tool, args, want string }{
		{"cas_store", `{"mime_type":"audio/midi"}`, "content_base64: required but missing"},
		{"time_convert", `{"value":1,"from":"x","to":"beats"}`, `from: expected one of "beats", "seconds", got "x"`},
		{"job_poll", `{"timeout_ms":"soon"}`, "timeout_ms: expected integer"},
		{"job_sleep", `{"milliseconds":99999}`, "milliseconds: expected at most 30000"},
		{"orpheus_generate", `{"temperature":99}`, "temperature: expected at most 2"},
	} {
		outcome, err := c.Call(t.Context(), hootclient.ToolCall{ID: hootproto.NewID(), Name: raw.tool, Arguments: json.RawMessage(raw.args)})
		if err != nil || outcome.Err == nil || outcome.Err.Code != "invalid_params" || !strings.Contains(outcome.Err.Message, raw.want) || strings.Contains(outcome.Err.Message, "Go struct") {
			t.Errorf("%s %s: %+v, %v", raw.tool, raw.args, outcome.Err, err)
		}
	}
}

// musicSources returns a configuration with a folder to read and fake models.
func musicSources(t *testing.T, m *music, more string) config.Sources {
	t.Helper()
	m.folder, m.models = t.TempDir(), newModels(t)
	text := fmt.Sprintf("[scripts]\nread = [%q]\n[music]\nenabled = true\n[music.services]\n", m.folder)
	for _, name := range []string{"orpheus", "orpheus_classifier", "orpheus_bridge", "musicgen", "clap", "yue", "beatthis", "anticipatory"} {
		text += fmt.Sprintf("%s = %q\n", name, m.models.url+"/"+name)
	}
	text += "orpheus_loops = \"http://127.0.0.1:1\"\n" // no service
	return config.Sources{File: configtest.WriteFile(t, text+more)}
}

func startMusic(t *testing.T) *music {
	m := &music{called: map[string]bool{}}
	m.url, m.srv = start(t, musicSources(t, m, ""))
	m.source = m.srv.catalog
	return m
}

func startMusicOverZeroMQ(t *testing.T) *music {
	m := &music{called: map[string]bool{}}
	sources := musicSources(t, m, "")
	sources.Flags = map[string]string{"data": t.TempDir(), "music.url": "http://front.test"}
	loaded, err := config.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	stderr := &startOutput{url: make(chan string, 1)}
	backend, err := BuildMusic(t.Context(), loaded, Options{Version: "test", Stderr: stderr, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- backend.ServeMusic(ctx, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0") }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ServeMusic: %v", err)
		}
	})
	front := filepath.Join(t.TempDir(), "front.toml")
	m.backend = <-stderr.url
	if err := os.WriteFile(front, fmt.Appendf(nil, "[upstreams.hootenanny]\nurl = \"zmq+%s\"\n", m.backend), 0o600); err != nil {
		t.Fatal(err)
	}
	m.url, m.srv = start(t, config.Sources{File: front})
	m.srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	m.srv.catalog.Refresh(t.Context())
	m.source = m.srv.catalog
	return m
}

// try calls a tool, checks its result against the output schema, and returns it.
func (m *music) try(t *testing.T, name string, args any) (tool.View, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.called[name] = true
	m.mu.Unlock()
	result, err := m.source.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: hootenanny.Space, Name: name}, Args: raw})
	if err != nil {
		return tool.View{}, err
	}
	view, err := result.View()
	if err != nil {
		t.Fatal(err)
	}
	if !view.IsError {
		m.checkSchema(t, name, view)
	}
	return view, nil
}

// checkSchema checks a result against the tool's output schema.
func (m *music) checkSchema(t *testing.T, name string, view tool.View) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.schemas == nil {
		m.schemas = map[string]*jsonschema.Schema{}
		tools, err := m.source.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range tools {
			if info.Space == hootenanny.Space {
				m.schemas[info.Name] = compileSchema(t, info.Output)
			}
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(view.Structured))
	if err != nil {
		t.Fatalf("%s: %v in %s", name, err, view.Structured)
	}
	if err := m.schemas[name].Validate(value); err != nil {
		t.Errorf("%s returns %s: %v", name, view.Structured, err)
	}
	if view.Text() == "" {
		t.Errorf("%s: no text", name)
	}
}

func compileSchema(t *testing.T, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool:schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("tool:schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type args map[string]any

// call calls a tool that must succeed, and returns its data.
func (m *music) call(t *testing.T, name string, with any) args {
	t.Helper()
	view, err := m.try(t, name, with)
	if err != nil || view.IsError {
		t.Fatalf("%s(%v): %v %s", name, with, err, view.Text())
	}
	var data args
	if err := json.Unmarshal(view.Structured, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// refused calls a tool that must fail with a code, and returns the error text.
func (m *music) refused(t *testing.T, name string, with any, code fault.Code) string {
	t.Helper()
	view, err := m.try(t, name, with)
	if err != nil {
		if fault.CodeOf(err) != code {
			t.Errorf("%s(%v): %v, want %s", name, with, err, code)
		}
		return err.Error()
	}
	if !view.IsError || !strings.HasPrefix(view.Text(), string(code)+":") || !strings.Contains(string(view.Meta), `"code":"`+string(code)+`"`) {
		t.Errorf("%s(%v): %s %s, want %s", name, with, view.Text(), view.Meta, code)
	}
	return view.Text()
}

// store stores a content and returns its hash.
func (m *music) store(t *testing.T, content []byte, mime string) string {
	t.Helper()
	return m.call(t, "cas_store", args{"content_base64": base64.StdEncoding.EncodeToString(content), "mime_type": mime})["hash"].(string)
}

// finish waits for a job and returns it.
func (m *music) finish(t *testing.T, started args) args {
	t.Helper()
	id := started["job_id"].(string)
	for {
		polled := m.call(t, "job_poll", args{"job_ids": []string{id}, "timeout_ms": 60000, "mode": "all"})
		if len(polled["pending"].([]any)) == 0 {
			return m.call(t, "job_status", args{"job_id": id})
		}
	}
}

// await waits for a job that must succeed, and returns its result.
func (m *music) await(t *testing.T, started args) args {
	t.Helper()
	j := m.finish(t, started)
	if j["status"] != "complete" {
		t.Fatalf("job %v", j)
	}
	return j["result"].(map[string]any)
}

// song returns a MIDI file with one note after another.
func song(t *testing.T, keys ...uint8) []byte {
	t.Helper()
	events := []smf.Event{smf.SetTempo(0, 500_000)}
	for i, key := range keys {
		events = append(events, smf.Note(int64(i)*480, 0, key, 100), smf.Release(int64(i+1)*480, 0, key))
	}
	f := smf.File{Tracks: []smf.Track{{Events: append(events, smf.End(int64(len(keys))*480))}}}
	raw, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tone returns a WAV file with one second of a sine wave.
func tone(t *testing.T, level float64) []byte {
	t.Helper()
	c := audio.Clip{Channels: 2, Rate: 44100}
	for i := range 44100 {
		s := float32(level * math.Sin(2*math.Pi*440*float64(i)/44100))
		c.Samples = append(c.Samples, s, s)
	}
	raw, err := c.Encode(16)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func testContents(t *testing.T, m *music) {
	hash := m.store(t, []byte("hello, content"), "text/plain")
	if again := m.store(t, []byte("hello, content"), "text/plain"); again != hash {
		t.Errorf("the same content has the hashes %s and %s", hash, again)
	}
	about := m.call(t, "cas_inspect", args{"hash": hash[:12]})
	if about["hash"] != hash || about["mime_type"] != "text/plain" || about["size_bytes"] != 14.0 || about["exists"] != true || about["preview"] != "hello, content" {
		t.Errorf("inspected %v", about)
	}
	if raw, err := os.ReadFile(about["local_path"].(string)); err != nil || string(raw) != "hello, content" {
		t.Errorf("at local_path: %q, %v", raw, err)
	}
	if got := m.call(t, "cas_get", args{"hash": "cas:" + hash}); got["content_base64"] != base64.StdEncoding.EncodeToString([]byte("hello, content")) {
		t.Errorf("got %v", got)
	}
	path := filepath.Join(m.folder, "upload.txt")
	if err := os.WriteFile(path, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if up := m.call(t, "cas_upload_file", args{"file_path": path, "mime_type": "text/plain"}); up["size_bytes"] != 11.0 || up["source_path"] != path {
		t.Errorf("uploaded %v", up)
	}
	if stats := m.call(t, "cas_stats", args{}); stats["total_items"].(float64) < 2 || stats["total_bytes"].(float64) < 25 {
		t.Errorf("stats %v", stats)
	}
	link := filepath.Join(m.folder, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	m.refused(t, "cas_upload_file", args{"file_path": "/etc/passwd", "mime_type": "text/plain"}, fault.Denied)
	m.refused(t, "cas_upload_file", args{"file_path": m.folder + "/../../etc/passwd", "mime_type": "text/plain"}, fault.Denied)
	m.refused(t, "cas_upload_file", args{"file_path": link, "mime_type": "text/plain"}, fault.NotFound)
	m.refused(t, "cas_upload_file", args{"file_path": m.folder, "mime_type": "text/plain"}, fault.InvalidParams)
	m.refused(t, "cas_upload_file", args{"file_path": "upload.txt", "mime_type": "text/plain"}, fault.InvalidParams)
	m.refused(t, "cas_inspect", args{"hash": strings.Repeat("0", 64)}, fault.NotFound)
	m.refused(t, "cas_store", args{"content_base64": "!", "mime_type": "text/plain"}, fault.InvalidParams)
	m.refused(t, "cas_store", args{"content_base64": "aGk="}, fault.InvalidParams)
}

func testArtifacts(t *testing.T, m *music) {
	path := filepath.Join(m.folder, "first.mid")
	if err := os.WriteFile(path, song(t, 61, 62), 0o600); err != nil {
		t.Fatal(err)
	}
	first := m.call(t, "artifact_upload", args{"file_path": path, "mime_type": "audio/midi", "tags": []string{"family:test"}, "creator": "ada", "name": "First"})
	if !strings.HasPrefix(first["artifact_id"].(string), "artifact_") || first["source_path"] != path {
		t.Errorf("uploaded %v", first)
	}
	hash := m.store(t, song(t, 63), "audio/midi")
	second := m.call(t, "artifact_create", args{"cas_hash": hash, "tags": []string{"family:test"}, "creator": "bob", "parent_id": first["artifact_id"], "metadata": args{"take": 2}})
	got := m.call(t, "artifact_get", args{"id": second["artifact_id"]})
	if got["content_hash"] != hash || got["creator"] != "bob" || got["parent_id"] != first["artifact_id"] || got["mime_type"] != "audio/midi" ||
		fmt.Sprint(got["metadata"]) != "map[take:2]" || fmt.Sprint(got["tags"]) != "[family:test tool:artifact_create type:midi]" {
		t.Errorf("got %v", got)
	}
	byHash := m.call(t, "artifact_get", args{"id": hash})
	if byHash["id"] != got["id"] {
		t.Errorf("by hash %v", byHash)
	}
	list := m.call(t, "artifact_list", args{"tag": "family:test"})
	if list["count"] != 2.0 {
		t.Errorf("listed %v", list)
	}
	if list := m.call(t, "artifact_list", args{"tag": "family:test", "creator": "ada"}); list["count"] != 1.0 {
		t.Errorf("list of creator ada: %v", list)
	}
	page := m.call(t, "artifact_list", args{"tag": "family:test", "limit": 1})
	next := m.call(t, "artifact_list", args{"tag": "family:test", "limit": 1, "cursor": page["next_cursor"]})
	if fmt.Sprint(page["artifacts"]) == fmt.Sprint(next["artifacts"]) || next["next_cursor"] != nil {
		t.Errorf("pages %v and %v", page, next)
	}
	m.refused(t, "artifact_get", args{"id": "artifact_000000000000"}, fault.NotFound)
	m.refused(t, "artifact_create", args{"cas_hash": hash, "mime_type": "nonsense"}, fault.InvalidParams)
	m.refused(t, "artifact_create", args{"cas_hash": hash, "parent_id": "artifact_000000000000"}, fault.NotFound)
}

func testVariations(t *testing.T, m *music) {
	var ids []any
	for i := range 3 {
		hash := m.store(t, song(t, uint8(70+i)), "audio/midi")
		a := m.call(t, "artifact_create", args{"cas_hash": hash, "variation_set_id": "takes"})
		if a["variation_set_id"] != "takes" || a["variation_index"] != float64(i+1) {
			t.Errorf("variation %d is %v", i+1, a)
		}
		ids = append(ids, a["id"])
		if again := m.call(t, "artifact_create", args{"cas_hash": hash, "variation_set_id": "takes"}); again["variation_index"] != a["variation_index"] {
			t.Errorf("created again: %v", again)
		}
	}
	list := m.call(t, "artifact_list", args{"variation_set_id": "takes"})
	for i, a := range list["artifacts"].([]any) {
		if a.(map[string]any)["id"] != ids[i] {
			t.Errorf("variation %d of the set is %v", i+1, a)
		}
	}
	other := m.store(t, song(t, 80), "audio/midi")
	m.refused(t, "artifact_create", args{"cas_hash": other, "variation_set_id": "takes", "variation_index": 2}, fault.Conflict)
	if a := m.call(t, "artifact_create", args{"cas_hash": other, "variation_set_id": "takes", "variation_index": 9}); a["variation_index"] != 9.0 {
		t.Errorf("variation 9 is %v", a)
	}
}

func testGraph(t *testing.T, m *music) {
	create := func(key uint8, more args) string {
		with := args{"cas_hash": m.store(t, song(t, key), "audio/midi"), "tags": []string{"graph"}}
		maps.Copy(with, more)
		return m.call(t, "artifact_create", with)["id"].(string)
	}
	root := create(90, args{"creator": "ada", "name": "Morning"})
	child := create(91, args{"creator": "bob", "parent_id": root})
	grandchild := create(92, args{"creator": "ada", "parent_id": child})
	annotated := m.call(t, "add_annotation", args{"artifact_id": child, "message": "slow and full of rain", "vibe": "melancholic dusk", "source": "critic"})
	if annotated["success"] != true || annotated["artifact_id"] != child {
		t.Errorf("annotated %v", annotated)
	}
	found := m.call(t, "graph_context", args{"vibe_search": "melancholic rain", "tag": "graph"})
	if list := found["artifacts"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != child {
		t.Errorf("found by vibe: %v", found)
	}
	if found := m.call(t, "graph_context", args{"tag": "graph", "creator": "ada", "include_annotations": false}); found["summary"].(map[string]any)["total"] != 2.0 {
		t.Errorf("found by tag and creator: %v", found)
	}
	for query, want := range map[string][]string{
		`tag = graph and creator = ada`:                           {grandchild, root},
		`tag = graph and not has(parent)`:                         {root},
		`tag = graph and (annotation ~ "RAIN" or name = Morning)`: {child, root},
		`tag = graph and vibe ~ dusk and source = critic`:         {child},
		`ancestor = ` + root:                                      {grandchild, child},
		`tag = graph and descendant = ` + grandchild:              {child, root},
		`parent = ` + child:                                       {grandchild},
		`tag = graph and creator != ada`:                          {child},
		`tag = $tag and size > 10 and created > 2020-01-01`:       {grandchild, child, root},
		`tag = graph and size < 10`:                               {},
		`tag = graph and mime = "audio/midi" and has(annotation)`: {child},
		child: {child},
		`tag = graph AND NOT (creator = ada OR creator = 'unknown')`: {child},
		`tag ~ grap and id = ` + root + ` and not description ~ "x"`: {root},
	} {
		result := m.call(t, "graph_query", args{"query": query, "variables": args{"tag": "graph"}})
		var ids []string
		for _, a := range result["results"].([]any) {
			ids = append(ids, a.(map[string]any)["id"].(string))
		}
		if !slices.Equal(ids, want) && len(ids)+len(want) > 0 || result["complete"] != true {
			t.Errorf("%s\n found %v\n  want %v", query, ids, want)
		}
	}
	if result := m.call(t, "graph_query", args{"query": "tag = graph", "limit": 2}); result["count"] != 2.0 || result["complete"] != false {
		t.Errorf("limited %v", result)
	}
	for query, want := range map[string]string{
		`tag graph`:           "after a field comes one of",
		`tug = graph`:         "did you mean tag?",
		`tag = `:              "a value is expected",
		`(tag = graph`:        "not closed",
		`tag = graph creator`: "unexpected text after the end",
		`tag = "graph`:        "not closed",
		`size ~ 3`:            "cannot be compared",
		`tag < 3`:             "cannot be compared",
		`size = big`:          "compared with a number",
		`created > yesterday`: "compared with a date",
		`tag = $other`:        "no variable other",
		`has(ancestor)`:       "unknown field",
		strings.Repeat("(", 500) + "tag = x" + strings.Repeat(")", 500): "nested deeper",
	} {
		if text := m.refused(t, "graph_query", args{"query": query}, fault.InvalidParams); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
	}
}

func testIdentities(t *testing.T, m *music) {
	synth := m.call(t, "graph_bind", args{"id": "jdxi", "name": "Roland JD-Xi", "hints": []args{{"kind": "usb_id", "value": "0582:01a1"}, {"kind": "alsa", "value": "JD-Xi", "confidence": 0.5}}})
	if synth["name"] != "Roland JD-Xi" || len(synth["hints"].([]any)) != 2 {
		t.Errorf("bound %v", synth)
	}
	m.call(t, "graph_bind", args{"id": "mixer", "name": "100% Mixer_1"})
	if tagged := m.call(t, "graph_tag", args{"identity_id": "jdxi", "namespace": "role", "value": "synth"}); fmt.Sprint(tagged["tags"]) != "[role:synth]" {
		t.Errorf("tagged %v", tagged)
	}
	ports := args{"from_identity": "jdxi", "from_port": "out", "to_identity": "mixer", "to_port": "in1", "transport": "audio"}
	connection := m.call(t, "graph_connect", ports)
	if again := m.call(t, "graph_connect", ports); again["connection_id"] != connection["connection_id"] {
		t.Errorf("connected twice: %v, %v", connection, again)
	}
	for _, tt := range []struct {
		with args
		want []string
	}{
		{args{"name": "jd-x"}, []string{"jdxi"}},
		{args{"name": "0%"}, []string{"mixer"}},
		{args{"name": "r_1"}, []string{"mixer"}},
		{args{"tag_namespace": "role"}, []string{"jdxi"}},
		{args{"tag_namespace": "role", "tag_value": "synth"}, []string{"jdxi"}},
		{args{"tag_value": "drums"}, nil},
		{args{}, []string{"mixer", "jdxi"}},
	} {
		found := m.call(t, "graph_find", tt.with)
		var ids []string
		for _, i := range found["identities"].([]any) {
			ids = append(ids, i.(map[string]any)["id"].(string))
		}
		if !slices.Equal(ids, tt.want) || len(ids) > 0 && len(found["connections"].([]any)) != 1 {
			t.Errorf("%v finds %v", tt.with, found)
		}
	}
	m.refused(t, "graph_tag", args{"identity_id": "unknown", "namespace": "a", "value": "b"}, fault.NotFound)
	m.refused(t, "graph_connect", args{"from_identity": "jdxi", "from_port": "a", "to_identity": "unknown", "to_port": "b"}, fault.NotFound)
}

const tune = "X:1\nT:Test Reel\nM:4/4\nL:1/8\nQ:1/4=120\nK:G\n|: GABc d2 (3efg | {a}[GBd]4 z4 :|\n"

func testTunes(t *testing.T, m *music) {
	parsed := m.call(t, "abc_parse", args{"abc": tune})
	if parsed["success"] != true || parsed["title"] != "Test Reel" || parsed["key"] != "G major" || parsed["bar_count"] != 2.0 || parsed["ast"].(map[string]any)["voices"] == nil {
		t.Errorf("parsed %v", parsed)
	}
	if checked := m.call(t, "abc_validate", args{"abc": "X:1\nK:C\nCDE [FG\n"}); checked["valid"] != false || checked["errors"].([]any)[0].(map[string]any)["line"] != 3.0 {
		t.Errorf("checked %v", checked)
	}
	if moved := m.call(t, "abc_transpose", args{"abc": tune, "semitones": 2}); moved["new_key"] != "A" && moved["new_key"] != "A major" || !strings.Contains(moved["abc"].(string), "K:A") {
		t.Errorf("transposed %v", moved)
	}
	if moved := m.call(t, "abc_transpose", args{"abc": tune, "target_key": "D"}); !strings.Contains(moved["abc"].(string), "K:D") {
		t.Errorf("transposed to D: %v", moved)
	}
	m.refused(t, "abc_transpose", args{"abc": tune}, fault.InvalidParams)
	played := m.call(t, "abc_to_midi", args{"abc": tune, "tags": []string{"reel"}, "velocity": 90})
	if played["mime_type"] != "audio/midi" || played["name"] != "Test Reel" || played["note_count"].(float64) != 24 { // 8 notes, a grace note and a chord of three, repeated
		t.Errorf("converted %v", played)
	}
	m.refused(t, "abc_to_midi", args{"abc": "X:1\nK:C\n[CE"}, fault.InvalidParams)
	partly := m.call(t, "abc_to_midi", args{"abc": "X:1\nT:t\nM:4/4\nL:1/4\nK:C\n\"C\"C4|!turn!D4|"})
	if list := partly["warnings"].([]any); len(list) != 1 || list[0].(map[string]any)["message"] != "the decoration turn is not played" {
		t.Errorf("warnings %v", list)
	}
	if partly["note_count"] != 18.0 { // two of the melody, and in both bars two strokes of the bass and two chords
		t.Errorf("%v notes", partly["note_count"])
	}
}

func testMedia(t *testing.T, m *music) {
	hash := m.store(t, song(t, 60, 64, 67), "audio/midi")
	if info := m.call(t, "midi_info", args{"hash": hash}); info["note_count"] != 3.0 || info["tempo_bpm"] != 120.0 || info["duration_seconds"] != 1.5 {
		t.Errorf("midi %v", info)
	}
	sound := m.store(t, tone(t, 0.5), "audio/wav")
	info := m.call(t, "audio_info", args{"hash": sound})
	if info["duration"] != 1.0 || info["channels"] != 2.0 || info["is_silent"] != false || math.Abs(info["peak_db"].(float64)+6.02) > 0.1 {
		t.Errorf("audio %v", info)
	}
	if info := m.call(t, "audio_info", args{"hash": m.store(t, tone(t, 0.0001), "audio/wav")}); info["is_silent"] != true {
		t.Errorf("silence %v", info)
	}
	for _, tt := range []struct {
		with args
		want float64
	}{
		{args{"value": 4, "from": "beats", "to": "seconds", "tempo_bpm": 120}, 2},
		{args{"value": 3, "from": "seconds", "to": "beats", "tempo_bpm": 60}, 3},
		{args{"value": 3, "from": "seconds", "to": "seconds", "tempo_bpm": 60}, 3},
	} {
		if got := m.call(t, "time_convert", tt.with); got["value"] != tt.want {
			t.Errorf("%v is %v", tt.with, got)
		}
	}
	font := m.store(t, soundfonttest.Font(), "audio/sf2")
	about := m.call(t, "soundfont_inspect", args{"soundfont_hash": font, "include_drum_map": true})
	if len(about["presets"].([]any)) != 3 || about["has_drum_presets"] != true || about["drum_map"] == nil {
		t.Errorf("font %v", about)
	}
	if preset := m.call(t, "soundfont_preset_inspect", args{"soundfont_hash": font, "bank": 0, "program": 5}); len(preset["regions"].([]any)) != 2 {
		t.Errorf("preset %v", preset)
	}
	m.refused(t, "soundfont_preset_inspect", args{"soundfont_hash": font, "bank": 0, "program": 99}, fault.NotFound)
	m.refused(t, "midi_info", args{}, fault.InvalidParams)
	m.refused(t, "midi_info", args{"hash": sound}, fault.InvalidParams)
	m.refused(t, "audio_info", args{"hash": hash}, fault.InvalidParams)
}

func testRender(t *testing.T, m *music) {
	font := m.store(t, soundfonttest.Font(), "audio/sf2")
	midi := m.call(t, "abc_to_midi", args{"abc": "X:1\nL:1/4\nQ:1/4=60\nK:C\nA2 z2|"}) // A, 440 Hz, for two seconds
	begun := m.call(t, "convert_midi_to_wav", args{"input_hash": midi["artifact_id"], "soundfont_hash": font, "sample_rate": 22050, "tags": []string{"mix"}})
	made := m.await(t, begun)
	wav := m.call(t, "artifact_get", args{"id": made["artifact_id"]})
	if wav["mime_type"] != "audio/wav" || wav["parent_id"] != midi["artifact_id"] || !slices.Contains(wav["tags"].([]any), any("mix")) || wav["content_hash"] != made["content_hash"] {
		t.Errorf("made %v", wav)
	}
	got := m.call(t, "cas_get", args{"hash": made["content_hash"]})
	raw, err := base64.StdEncoding.DecodeString(got["content_base64"].(string))
	if err != nil {
		t.Fatal(err)
	}
	clip, _, err := audio.Decode(raw)
	if err != nil || clip.Rate != 22050 || clip.Channels != 2 || math.Abs(clip.Seconds()-4) > 0.1 { // four beats; the note has faded out before
		t.Fatalf("%g seconds at %d Hz, %v", clip.Seconds(), clip.Rate, err)
	}
	note := clip.Trim(0.5, 1.5).Mono()
	if a, b := amplitudeAt(note, 440), amplitudeAt(note, 466.16); a < 10*b || a < 0.01 {
		t.Errorf("amplitude %g at 440 Hz, %g a semitone above", a, b)
	}
	if info := clip.Trim(3, 4).Info(); !info.IsSilent {
		t.Errorf("the end is not silent: %+v", info)
	}
	if peak := audio.Decibels(clip.Peak()); math.Abs(peak+1) > 0.1 {
		t.Errorf("the peak is at %g dB, want -1", peak)
	}
	level := func(more args) float64 {
		maps.Copy(more, args{"input_hash": midi["artifact_id"], "soundfont_hash": font, "sample_rate": 8000})
		made := m.await(t, m.call(t, "convert_midi_to_wav", more))
		return m.call(t, "audio_info", args{"hash": made["content_hash"]})["peak_db"].(float64)
	}
	if plain, louder := level(args{"gain": 0}), level(args{"gain": 6, "normalize": false}); plain > -10 || math.Abs(louder-plain-6) > 0.1 {
		t.Errorf("peaks at %g dB, and with 6 dB more at %g", plain, louder)
	}
	if normal := level(args{"gain": -5, "normalize": true}); math.Abs(normal+6) > 0.1 {
		t.Errorf("normalized and 5 dB less, the peak is at %g dB, want -6", normal)
	}
	m.refused(t, "convert_midi_to_wav", args{"input_hash": midi["artifact_id"], "soundfont_hash": font, "gain": 99}, fault.InvalidParams)
	m.refused(t, "convert_midi_to_wav", args{"input_hash": font, "soundfont_hash": font}, fault.InvalidParams)
	m.refused(t, "convert_midi_to_wav", args{"input_hash": midi["content_hash"], "soundfont_hash": midi["content_hash"]}, fault.InvalidParams)
	m.refused(t, "convert_midi_to_wav", args{"input_hash": strings.Repeat("0", 64), "soundfont_hash": font}, fault.NotFound)
}

// amplitudeAt returns the amplitude of one frequency.
func amplitudeAt(c audio.Clip, hz float64) float64 {
	var re, im float64
	for i, s := range c.Samples {
		turn := 2 * math.Pi * hz * float64(i) / float64(c.Rate)
		re, im = re+float64(s)*math.Cos(turn), im+float64(s)*math.Sin(turn)
	}
	return 2 * math.Hypot(re, im) / float64(len(c.Samples))
}

func testGarden(t *testing.T, m *music) {
	m.call(t, "garden_stop", args{})
	m.call(t, "garden_set_tempo", args{"bpm": 90})
	if state := m.call(t, "garden_seek", args{"beat": 16}); state["position_beats"] != 16.0 || state["tempo_bpm"] != 90.0 || state["state"] != "stopped" {
		t.Errorf("state %v", state)
	}
	song := m.store(t, song(t, 50), "audio/midi")
	first := m.call(t, "garden_create_region", args{"position": 16, "duration": 4, "behavior_type": "play_content", "content_id": song, "name": "verse"})
	second := m.call(t, "garden_create_region", args{"position": 40, "duration": 4, "behavior_type": "latent"})
	marker := m.call(t, "garden_add_marker", args{"position": 18.5, "marker_type": "section_change", "metadata": args{"to": "chorus"}})
	if list := m.call(t, "garden_get_regions", args{"start": 0, "end": 20}); list["count"] != 1.0 {
		t.Errorf("regions %v", list)
	}
	if moved := m.call(t, "garden_move_region", args{"region_id": second["region_id"], "new_position": 18}); moved["position"] != 18.0 {
		t.Errorf("moved %v", moved)
	}
	view := m.call(t, "garden_query", args{"end": 30, "behavior_type": "play_content"})
	if len(view["regions"].([]any)) != 1 || len(view["markers"].([]any)) != 1 || fmt.Sprint(view["active_regions"]) != fmt.Sprint([]any{first["region_id"]}) {
		t.Errorf("view %v", view)
	}
	if state := m.call(t, "garden_play", args{}); state["state"] != "playing" {
		t.Errorf("playing %v", state)
	}
	m.call(t, "garden_status", args{})
	if state := m.call(t, "garden_pause", args{}); state["state"] != "paused" || state["position_beats"].(float64) < 16 {
		t.Errorf("paused %v", state)
	}
	m.call(t, "garden_play", args{})
	if state := m.call(t, "garden_emergency_pause", args{}); state["state"] != "paused" {
		t.Errorf("after the emergency pause: %v", state)
	}
	m.call(t, "garden_delete_marker", args{"marker_id": marker["marker_id"]})
	m.call(t, "garden_delete_region", args{"region_id": first["region_id"]})
	if cleared := m.call(t, "garden_clear_regions", args{}); cleared["deleted_count"] != 1.0 {
		t.Errorf("cleared %v", cleared)
	}
	m.refused(t, "garden_delete_region", args{"region_id": first["region_id"]}, fault.NotFound)
	testProjects(t, m)
	m.refused(t, "garden_delete_marker", args{"marker_id": marker["marker_id"]}, fault.NotFound)
	m.refused(t, "garden_move_region", args{"region_id": "unknown", "new_position": 1}, fault.NotFound)
	m.refused(t, "garden_create_region", args{"position": 0, "duration": 1, "behavior_type": "play_content"}, fault.InvalidParams)
	m.refused(t, "garden_set_tempo", args{"bpm": 1000}, fault.InvalidParams)
	m.refused(t, "garden_seek", args{"beat": -1}, fault.InvalidParams)
}

// testProjects checks that projects are separate, and that a region has the sound of its
// content.
func testProjects(t *testing.T, m *music) {
	midi := m.call(t, "artifact_create", args{"cas_hash": m.store(t, song(t, 51, 52), "audio/midi")})
	m.call(t, "garden_create_region", args{"project": "suite", "position": 0, "duration": 4, "behavior_type": "play_content", "content_id": midi["artifact_id"]})
	if view := m.call(t, "garden_query", args{"project": "suite"}); view["regions"].([]any)[0].(map[string]any)["audio_hash"] != nil {
		t.Errorf("a MIDI file has a sound before it was rendered: %v", view)
	}
	sound := m.store(t, tone(t, 0.125), "audio/wav")
	m.call(t, "artifact_create", args{"cas_hash": sound, "parent_id": midi["artifact_id"]})
	view := m.call(t, "garden_query", args{"project": "suite"})
	if regions := view["regions"].([]any); len(regions) != 1 || regions[0].(map[string]any)["audio_hash"] != sound || view["project"] != "suite" {
		t.Errorf("the project: %v", view)
	}
	if other := m.call(t, "garden_query", args{}); len(other["regions"].([]any)) != 0 {
		t.Errorf("the default project: %v", other)
	}
	if list := m.call(t, "garden_projects", args{}); list["current"] != "default" || list["count"].(float64) < 2 {
		t.Errorf("projects %v", list)
	}
	_, _ = m.try(t, "garden_open", args{"project": "suite"}) // in process, calls of this test have no session
	m.call(t, "garden_delete_project", args{"project": "suite"})
	m.refused(t, "garden_query", args{"project": "suite"}, fault.NotFound)
	m.refused(t, "garden_status", args{"project": "../suite"}, fault.InvalidParams)
}

func testEvents(t *testing.T, m *music) {
	begin := m.call(t, "event_poll", args{})
	a := m.call(t, "artifact_create", args{"cas_hash": m.store(t, []byte("an event"), "text/plain"), "tags": []string{"eventful"}})
	b := m.call(t, "artifact_create", args{"cas_hash": m.store(t, []byte("another event"), "text/plain")})
	cursor := begin["cursor"]
	for missing := map[any]bool{a["artifact_id"]: true, b["artifact_id"]: true}; len(missing) > 0; {
		polled := m.call(t, "event_poll", args{"cursor": cursor, "types": []string{"artifact_created"}, "timeout_ms": 30000})
		cursor = polled["cursor"]
		for _, e := range polled["events"].([]any) {
			delete(missing, e.(map[string]any)["data"].(map[string]any)["artifact_id"])
		}
	}
	if polled := m.call(t, "event_poll", args{"since_ms": 600000, "limit": 1}); len(polled["events"].([]any)) != 1 || polled["has_more"] != true {
		t.Errorf("since %v", polled)
	}
	if again := m.call(t, "event_poll", args{"cursor": begin["cursor"], "types": []string{"artifact.created"}, "timeout_ms": 0}); len(again["events"].([]any)) == 0 {
		t.Errorf("again %v", again)
	}
	m.refused(t, "event_poll", args{"cursor": "nonsense"}, fault.InvalidParams)
	m.refused(t, "event_poll", args{"cursor": "abc-7"}, fault.InvalidParams)
	m.refused(t, "event_poll", args{"types": []string{"weather_changed"}}, fault.InvalidParams)
}

func testJobs(t *testing.T, m *music) {
	if slept := m.call(t, "job_sleep", args{"milliseconds": 1}); slept["slept_ms"].(float64) < 1 {
		t.Errorf("slept %v", slept)
	}
	if polled := m.call(t, "job_poll", args{"timeout_ms": 1}); polled["timed_out"] != true || polled["reason"] != "timeout" {
		t.Errorf("polled without jobs: %v", polled)
	}
	begun := m.call(t, "musicgen_generate", args{"prompt": "wait for me"}) // the fake model responds when the job is cancelled
	if polled := m.call(t, "job_poll", args{"job_ids": []any{begun["job_id"]}, "timeout_ms": 10}); polled["timed_out"] != true || len(polled["pending"].([]any)) != 1 {
		t.Errorf("polled %v", polled)
	}
	if list := m.call(t, "job_list", args{}); list["total"].(float64) < 1 {
		t.Errorf("listed %v", list)
	}
	if cancelled := m.call(t, "job_cancel", args{"job_id": begun["job_id"]}); cancelled["success"] != true {
		t.Errorf("cancelled %v", cancelled)
	}
	if j := m.finish(t, begun); j["status"] != "cancelled" {
		t.Errorf("after the cancellation: %v", j)
	}
	if again := m.call(t, "job_cancel", args{"job_id": begun["job_id"]}); again["success"] != false {
		t.Errorf("cancelled twice: %v", again)
	}
	polled := m.call(t, "job_poll", args{"job_ids": []any{begun["job_id"]}, "timeout_ms": 60000})
	failed := polled["failed"].([]any) // each job is in one list
	if len(failed) != 1 || failed[0].(map[string]any)["job_id"] != begun["job_id"] || len(polled["completed"].([]any)) != 0 || polled["timed_out"] != false {
		t.Errorf("polled after its end: %v", polled)
	}
	m.refused(t, "job_sleep", args{"milliseconds": 99999}, fault.InvalidParams)
	m.refused(t, "job_poll", args{"timeout_ms": 1, "mode": "few"}, fault.InvalidParams)
	m.refused(t, "job_status", args{"job_id": "unknown"}, fault.NotFound)
	m.refused(t, "job_cancel", args{"job_id": "unknown"}, fault.NotFound)
	m.refused(t, "job_poll", args{"job_ids": []string{"unknown"}, "timeout_ms": 10}, fault.NotFound)
}

func testHelp(t *testing.T, m *music) {
	if help := m.call(t, "help", args{}); !slices.Contains(help["categories"].([]any), any("garden")) {
		t.Errorf("help %v", help)
	}
	if help := m.call(t, "help", args{"category": "abc"}); len(help["tools"].([]any)) != 4 {
		t.Errorf("help on abc %v", help)
	}
	if help := m.call(t, "help", args{"tool": "cas_get"}); help["input_schema"] == nil {
		t.Errorf("help on cas_get %v", help)
	}
	if text := m.refused(t, "help", args{"tool": "cas_gte"}, fault.NotFound); !strings.Contains(text, "did you mean cas_get") {
		t.Errorf("help on an unknown tool: %s", text)
	}
}

// models is a fake of all model services.
type models struct {
	url string

	mu  sync.Mutex
	got map[string][]args // requests by service
}

func (s *models) requests(service string) []args {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got[service])
}

// baseRequests returns the requests for the model base.
func baseRequests(requests []args) (found []args) {
	for _, q := range requests {
		if q["model"] == "base" {
			found = append(found, q)
		}
	}
	return found
}

func newModels(t *testing.T) *models {
	t.Helper()
	s := &models{got: map[string][]args{}}
	encoded := func(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		var request args
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/predict") || json.Unmarshal(body, &request) != nil {
			http.Error(w, "not a prediction", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.got[service] = append(s.got[service], request)
		times := len(s.got[service])
		busy := request["model"] == "base" && len(baseRequests(s.got[service])) == 1
		s.mu.Unlock()
		answer := func(body any) { _ = json.NewEncoder(w).Encode(body) }
		switch service {
		case "orpheus":
			if busy {
				w.Header().Set("Retry-After", "0.01")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			if request["temperature"].(float64) > 1.9 {
				w.WriteHeader(http.StatusUnprocessableEntity)
				answer(args{"detail": "too hot"})
				return
			}
			if request["top_p"] == 0.125 { // a model that changes nothing
				answer(args{"variations": []args{{"midi_base64": request["midi_input"]}}})
				return
			}
			var made []args
			for i := range int(request["num_variations"].(float64)) {
				made = append(made, args{"midi_base64": encoded(song(t, uint8(40+i), uint8(10*times%100))), "num_tokens": 100 + i})
			}
			answer(args{"task": request["task"], "variations": made, "meta": args{}})
		case "orpheus_bridge":
			answer(args{"variations": []args{{"midi_base64": encoded([]byte("not MIDI")), "num_tokens": 1}}})
		case "orpheus_classifier":
			answer(args{"classification": args{"is_human": true, "confidence": 0.9}, "num_tokens": 12})
		case "musicgen":
			if request["prompt"] == "wait for me" {
				<-r.Context().Done()
				return
			}
			answer(args{"audio_base64": encoded(tone(t, 0.25)), "sample_rate": 44100, "duration": 1, "channels": 2})
		case "yue":
			if request["genre"] == "Silence" {
				answer(args{"status": "error", "error": "out of memory"})
				return
			}
			answer(args{"status": "success", "audio_base64": encoded([]byte("ID3 an mp3")), "format": "mp3"})
		case "clap":
			answer(args{"genre": args{"top_label": "ambient"}, "mood": args{"top_label": "calm"}})
		case "beatthis":
			answer(args{"beats": []float64{0.5, 1}, "downbeats": []float64{0.5}, "bpm": 120, "num_beats": 2})
		case "anticipatory":
			if request["task"] == "embed" {
				answer(args{"embedding": []float64{0.5}, "embedding_dim": 1})
				return
			}
			answer(args{"variations": []args{{"midi_base64": encoded(song(t, 33, uint8(40+times))), "num_events": 2}}})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func testModels(t *testing.T, m *music) {
	one := m.await(t, m.call(t, "orpheus_generate", args{"model": "base", "temperature": 0.8, "tags": []string{"style:ambient"}}))
	if one["status"] != "completed" || !strings.HasPrefix(one["artifact_id"].(string), "artifact_") {
		t.Errorf("generated %v", one)
	}
	requests := baseRequests(m.models.requests("orpheus"))
	if len(requests) != 2 { // the first was refused as busy
		t.Fatalf("orpheus got %d requests, want 2", len(requests))
	}
	want := args{"model": "base", "task": "generate", "temperature": 0.8, "top_p": 0.95, "max_tokens": 1024.0, "num_variations": 1.0}
	for key, value := range want {
		if requests[1][key] != value {
			t.Errorf("request to orpheus with %s = %v, want %v", key, requests[1][key], value)
		}
	}
	a := m.call(t, "artifact_get", args{"id": one["artifact_id"]})
	if a["mime_type"] != "audio/midi" || !slices.Contains(a["tags"].([]any), any("style:ambient")) || !slices.Contains(a["tags"].([]any), any("tool:orpheus_generate")) {
		t.Errorf("artifact %v", a)
	}
	several := m.await(t, m.call(t, "orpheus_generate_seeded", args{"seed_hash": one["content_hash"], "num_variations": 3}))
	if len(several["artifact_ids"].([]any)) != 3 {
		t.Errorf("variations %v", several)
	}
	third := m.call(t, "artifact_get", args{"id": several["artifact_ids"].([]any)[2]})
	if third["variation_index"] != 3.0 || third["variation_set_id"] == nil || third["parent_id"] != one["artifact_id"] {
		t.Errorf("third variation %v", third)
	}
	m.await(t, m.call(t, "orpheus_continue", args{"input_hash": one["artifact_id"], "variation_set_id": "more"}))
	if q := m.models.requests("orpheus"); !slices.ContainsFunc(q, func(q args) bool { return q["task"] == "continue" && q["midi_input"] != nil }) {
		t.Errorf("requests to orpheus %v", q)
	}
	same := m.await(t, m.call(t, "orpheus_continue", args{"input_hash": third["artifact_id"], "top_p": 0.125}))
	if a := m.call(t, "artifact_get", args{"id": same["artifact_id"]}); same["artifact_id"] != third["artifact_id"] || a["parent_id"] != one["artifact_id"] {
		t.Errorf("a model returned its input: %v, %v", same, a)
	}
	classified := m.await(t, m.call(t, "orpheus_classify", args{"input_hash": one["content_hash"]}))
	if m.models.requests("orpheus_classifier")[0]["midi_input"] == nil || classified["analysis"].(map[string]any)["num_tokens"] != 12.0 {
		t.Errorf("classified %v", classified)
	}
	sound := m.await(t, m.call(t, "musicgen_generate", args{"prompt": "rain on a roof"}))
	if q := m.models.requests("musicgen"); !slices.ContainsFunc(q, func(q args) bool {
		return q["prompt"] == "rain on a roof" && q["duration"] == 10.0 && q["top_k"] == 250.0 && q["guidance_scale"] == 3.0 && q["do_sample"] == true
	}) {
		t.Errorf("requests to musicgen %v", q)
	}
	if sung := m.await(t, m.call(t, "yue_generate", args{"lyrics": "la la"})); m.call(t, "artifact_get", args{"id": sung["artifact_id"]})["mime_type"] != "audio/mpeg" {
		t.Errorf("generated song %v", sung)
	}
	if analysis := m.await(t, m.call(t, "clap_analyze", args{"audio_hash": sound["content_hash"]})); analysis["analysis"].(map[string]any)["mood"] == nil {
		t.Errorf("analysis %v", analysis)
	}
	m.await(t, m.call(t, "anticipatory_generate", args{"length_seconds": 5}))
	more := m.await(t, m.call(t, "anticipatory_continue", args{"input_hash": one["artifact_id"], "tags": []string{"more"}}))
	if a := m.call(t, "artifact_get", args{"id": more["artifact_id"]}); a["parent_id"] != one["artifact_id"] || !slices.Contains(a["tags"].([]any), any("more")) {
		t.Errorf("continued as %v", a)
	}
	m.await(t, m.call(t, "anticipatory_embed", args{"input_hash": one["content_hash"]}))
	m.refused(t, "anticipatory_generate", args{"length_seconds": 1000}, fault.InvalidParams)
	beats := m.await(t, m.call(t, "beatthis_analyze", args{"audio_hash": sound["artifact_id"]}))
	raw, _ := base64.StdEncoding.DecodeString(m.models.requests("beatthis")[0]["audio"].(string))
	if clip, _, err := audio.Decode(raw); err != nil || clip.Rate != 22050 || clip.Channels != 1 || beats["analysis"].(map[string]any)["bpm"] != 120.0 {
		t.Errorf("beats %v of %d Hz, %v", beats, clip.Rate, err)
	}
}

// testAbsentModels checks that the error of a job names the model that failed.
func testAbsentModels(t *testing.T, m *music) {
	midi, silence := m.store(t, song(t, 30), "audio/midi"), m.store(t, tone(t, 0), "audio/wav")
	for _, tt := range []struct {
		tool       string
		with       args
		code, text string
	}{
		{"orpheus_loops", args{"seed_hash": midi}, "unavailable", "the orpheus_loops service is not running at http://127.0.0.1:1"},
		{"orpheus_generate", args{"temperature": 2}, "invalid_params", "too hot"},
		{"orpheus_bridge", args{"section_a_hash": midi, "section_b_hash": midi}, "upstream_error", "variation 1 of orpheus_bridge"},
		{"yue_generate", args{"lyrics": "x", "genre": "Silence"}, "upstream_error", "out of memory"},
		{"beatthis_analyze", args{"audio_hash": silence}, "invalid_params", "is silent"},
	} {
		j := m.finish(t, m.call(t, tt.tool, tt.with))
		failed, _ := j["error"].(map[string]any)
		if j["status"] != "failed" || failed["code"] != tt.code || !strings.Contains(fmt.Sprint(failed["message"]), tt.text) {
			t.Errorf("%s: %v, want %s: %s", tt.tool, j, tt.code, tt.text)
		}
	}
	m.refused(t, "orpheus_continue", args{"input_hash": strings.Repeat("0", 64)}, fault.NotFound)
}
