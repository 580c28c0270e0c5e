package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// testMusicHTTP stores and reads the same contents with tools, over HTTP, in scripts and as
// resources.
func testMusicHTTP(t *testing.T, m *music) {
	song := bytes.Repeat([]byte("la la la "), 600_000) // stored in several parts
	hash := m.store(t, song, "audio/x-song")
	made := m.call(t, "artifact_create", args{"cas_hash": hash, "mime_type": "audio/x-song", "tags": []string{"kind:song", "of:uploads"}, "creator": "uploader"})
	id := made["id"].(string)
	if link, _ := made["artifact_url"].(string); !strings.HasSuffix(link, "/artifact/"+id) || !strings.HasPrefix(link, "http://") {
		t.Errorf("artifact_url is %q", link)
	}
	part := m.call(t, "cas_get", args{"hash": hash, "offset": 9, "length": 5})
	if part["content_base64"] != base64.StdEncoding.EncodeToString([]byte("la la")) || part["size_bytes"] != float64(len(song)) {
		t.Errorf("part of a content: %v", part)
	}

	for _, path := range []string{"/artifact/" + id, "/cas/" + hash, "/cas/" + hash[:16]} {
		if status, body := fetch(t, m.url+path, ""); status != http.StatusOK || !bytes.Equal(body, song) {
			t.Errorf("GET %s: %d, %d bytes", path, status, len(body))
		}
	}
	if status, body := fetch(t, m.url+"/artifact/"+id, "bytes=3-7"); status != http.StatusPartialContent || string(body) != "la la" {
		t.Errorf("range request: %d %q", status, body)
	}
	if status, body := fetch(t, m.url+"/artifact/"+id+"/meta", ""); status != http.StatusOK || !bytes.Contains(body, []byte(`"of:uploads"`)) {
		t.Errorf("meta: %d %s", status, body)
	}
	if status, body := fetch(t, m.url+"/artifacts?tag=kind:song&tag=of:uploads&creator=uploader", ""); status != http.StatusOK || !bytes.Contains(body, []byte(id)) {
		t.Errorf("list: %d %s", status, body)
	}
	if status, _ := fetch(t, m.url+"/cas/"+strings.Repeat("0", 64), ""); status != http.StatusNotFound {
		t.Errorf("unknown content: %d, want 404", status)
	}
	posted := post(t, m.url+"/cas", "text/x-uploaded", "sent over HTTP")
	if about := m.call(t, "cas_inspect", args{"hash": posted}); about["mime_type"] != "text/x-uploaded" {
		t.Errorf("uploaded content: %v", about)
	}
	m.testScripts(t, id, hash)
}

// testScripts checks that scripts and the music tools use the same contents.
func (m *music) testScripts(t *testing.T, id, hash string) {
	outcome, err := m.srv.scripts.runner.Run(t.Context(), script.Request{Source: `
		local id, hash = "` + id + `", "` + hash + `"
		assert(artifact.content_hash(id) == hash)
		assert(cas.size(hash) == 5400000 and #cas.read(hash) == 5400000)
		assert(cas.path(hash) ~= "" and artifact.path(id) == cas.path(hash))
		assert(not cas.exists(("0"):rep(64)))
		local mine = cas.store("stored by a script", "text/x-mine")
		local seen = mcp.hootenanny.cas_inspect{hash = mine}
		return seen.mime_type .. ": " .. cas.read(mine)`})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(outcome.Result); !strings.Contains(got, "text/x-mine") || !strings.Contains(got, "stored by a script") {
		t.Errorf("the script returns %s", got)
	}
	for uri, want := range map[string]string{"hoot://artifact/" + id: hash, "hoot://artifacts/recent": id, "hoot://garden": "tempo"} {
		if answer, err := m.srv.resources().ReadResource(t.Context(), uri, nil); err != nil || !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s: %s %v", uri, answer, err)
		}
	}
}

// TestMusicUpstreamAtRunTime checks that an upstream named hootenanny replaces the music
// backend in this process, until it is removed.
func TestMusicUpstreamAtRunTime(t *testing.T) {
	t.Parallel()
	remote := startMusicOverZeroMQ(t)
	hash := remote.store(t, []byte("stored elsewhere"), "text/plain")
	local := startMusic(t)
	endpoint := remote.srv.config.Upstreams[hootenanny.Space].URL
	has := func() bool {
		status, body := fetch(t, local.url+"/cas/"+hash, "")
		return status == http.StatusOK && string(body) == "stored elsewhere"
	}
	if has() {
		t.Fatal("the local backend has the content of the upstream")
	}
	if err := local.srv.upstreams.Add(t.Context(), hootenanny.Space, upstream.Settings{URL: endpoint}); err != nil {
		t.Fatal(err)
	}
	local.srv.upstreams.Await(t.Context(), hootenanny.Space)
	local.srv.catalog.Refresh(t.Context())
	if !has() {
		t.Error("the upstream's content is not found")
	}
	if _, err := local.srv.upstreams.Remove(t.Context(), hootenanny.Space); err != nil {
		t.Fatal(err)
	}
	local.srv.catalog.Refresh(t.Context())
	if view, err := local.try(t, "cas_stats", args{}); err != nil || view.IsError {
		t.Errorf("the local backend is not used again: %v %s", err, view.Text())
	}
}

func fetch(t *testing.T, url, span string) (status int, body []byte) {
	t.Helper()
	answer, text := httpjsontest.Read(t, http.MethodGet, url, "", "Range", span)
	return answer.StatusCode, []byte(text)
}

// post sends a content and returns its hash.
func post(t *testing.T, url, mime, text string) string {
	t.Helper()
	answer, body := httpjsontest.Read(t, http.MethodPost, url, text, "Content-Type", mime)
	var stored hootenanny.StoredContent
	if err := json.Unmarshal([]byte(body), &stored); err != nil || answer.StatusCode != http.StatusCreated || stored.Hash != cas.Sum([]byte(text)).String() {
		t.Fatalf("POST: %s %s %v", answer.Status, body, err)
	}
	return stored.Hash
}
