package contents_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/ui/contents"
)

const tune = "X:1\nT:Scale\nK:C\nCDEF|\n"

// TestLibrary lists artifacts by kind, reads them, converts a tune, deletes and restores.
func TestLibrary(t *testing.T) {
	t.Parallel()
	files, err := artifact.OpenFiles(t.Context(), dbtest.Open(t, dbtest.Fresh(t)), artifact.FilesOptions{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]artifact.Artifact{}
	for name, content := range map[string][2]string{
		"code": {"return 1", "text/x-lua"}, "scale": {tune, "text/vnd.abc"}, "notes": {"hello", "text/plain; charset=utf-8"},
		"data": {"{}", "application/json"}, "song": {"RIFF", "audio/wav"}, "blob": {"\x00", "application/octet-stream"},
	} {
		if stored[name], _, err = files.Put(t.Context(), strings.NewReader(content[0]), artifact.Details{Name: name, MIME: content[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := files.PutResult(t.Context(), strings.NewReader("# Report"), artifact.Result{MIME: "text/markdown", Name: "report.md", Script: "daily", Job: "0193"}); err != nil {
		t.Fatal(err)
	}
	published := map[cas.Ref]contents.PublishedAs{stored["code"].Hash: {Name: "greet", Version: 2}}
	library := &contents.Library{Files: files, Published: func(context.Context) map[cas.Ref]contents.PublishedAs { return published }}
	web := httptest.NewServer(principal.Unguarded(library.Routes()))
	t.Cleanup(web.Close)
	path := func(name string) string { return "/" + artifact.ID(stored[name].Hash) }
	for _, tt := range []struct {
		request, want string
		status        int
	}{
		{"GET ?kind=script", `"kind":"script"`, 200},
		{"GET ?kind=tool", `"tool":{"name":"greet","version":2}`, 200},
		{"GET ?kind=tool&find=nothing", `"items":[],"total":0`, 200},
		{"GET ?kind=text", `"name":"notes"`, 200},
		{"GET ?kind=text", `"total":2`, 200},
		{"GET ?kind=result", `"total":6`, 200},
		{"GET ?find=report", `"name":"report.md","tags":[],"creator":"daily","job":"0193"`, 200},
		{"GET ?kind=json", `"name":"data"`, 200},
		{"GET ?kind=audio", `"name":"song"`, 200},
		{"GET ?kind=binary", `"name":"blob"`, 200},
		{"GET ?kind=what", `is not a kind`, 400},
		{"GET ?limit=0", `is not valid`, 400},
		{"GET ?find=scale", `"kind":"abc"`, 200},
		{"GET " + path("scale"), `"mime_type":"text/vnd.abc"`, 200},
		{"GET " + path("scale") + "/content", tune, 200},
		{"GET " + path("scale") + "/midi", "MThd", 200},
		{"GET " + path("notes") + "/midi", "is not in ABC notation", 400},
		{"DELETE " + path("code"), "this script is the tool greet", 409},
		{"DELETE " + path("notes"), `"name":"notes"`, 200},
		{"GET " + path("notes"), "no ", 404},
		{"POST /" + stored["notes"].Hash.String() + "/restore", `"name":"notes"`, 200},
		{"GET " + path("notes") + "/content", "hello", 200},
		{"POST /nothing/restore", "use the whole hash", 400},
	} {
		method, at, _ := strings.Cut(tt.request, " ")
		response, body := httpjsontest.Read(t, method, web.URL+"/api/v1/library"+at, "")
		if response.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d with %q", tt.request, response.StatusCode, body, tt.status, tt.want)
		}
	}
}
