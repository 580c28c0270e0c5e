package contents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/ui/contents"
)

// store is a folder of contents; each is also an artifact.
type store struct {
	dir     *cas.Dir
	mimes   map[cas.Ref]string
	noFiles bool // contents are not files
}

func (s *store) Content(ctx context.Context, name string) (cas.File, error) {
	ref, err := cas.Resolve(ctx, s.dir, strings.TrimPrefix(name, "artifact_"))
	if err != nil {
		return cas.File{}, err
	}
	size, err := s.dir.Stat(ctx, ref)
	c := cas.File{Hash: ref, Size: size, MIME: s.mimes[ref], Path: s.dir.Path(ref)}
	if s.noFiles {
		c.Path = ""
	}
	return c, err
}

func (s *store) Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error) {
	c, err := s.Content(ctx, id)
	return hootenanny.ArtifactView{ID: artifact.ID(c.Hash), Hash: c.Hash.String(), MIMEType: c.MIME}, err
}

func (s *store) Artifacts(_ context.Context, q artifact.Query) (hootenanny.ArtifactList, error) {
	return hootenanny.ArtifactList{Artifacts: []hootenanny.ArtifactView{{Tags: q.Tags, Creator: q.Creator}}, Count: q.Limit}, nil
}

func (s *store) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return s.dir.Open(ctx, ref)
}

func (s *store) PutContent(ctx context.Context, r io.Reader, mime string) (hootenanny.StoredContent, error) {
	if mime == "nonsense" {
		return hootenanny.StoredContent{}, fault.New(fault.InvalidParams, "no MIME type")
	}
	ref, size, err := s.dir.Put(ctx, r)
	if err != nil {
		return hootenanny.StoredContent{}, err
	}
	s.mimes[ref] = mime
	return hootenanny.StoredContent{Hash: ref.String(), Size: size, MIMEType: mime}, nil
}

type client struct {
	t   *testing.T
	url string
}

func serve(t *testing.T, noFiles bool) client {
	t.Helper()
	dir, err := cas.OpenDir(t.TempDir(), cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := contents.New(&store{dir, map[cas.Ref]string{}, noFiles}, contents.Options{MaxUpload: 1000})
	web := httptest.NewServer(principal.Unguarded(server.Routes()))
	t.Cleanup(web.Close)
	return client{t, web.URL}
}

// do sends a request and returns the response with its body.
func (c client) do(method, path, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	return httpjsontest.Read(c.t, method, c.url+path, body, headers...)
}

func (c client) put(content, mime string) (hash string) {
	c.t.Helper()
	response, body := c.do("POST", "/cas", content, "Content-Type", mime)
	var stored hootenanny.StoredContent
	if err := json.Unmarshal([]byte(body), &stored); err != nil || response.StatusCode != http.StatusCreated || response.Header.Get("Location") != "/cas/"+stored.Hash {
		c.t.Fatalf("%d %s, %v", response.StatusCode, body, err)
	}
	return stored.Hash
}

func TestContents(t *testing.T) {
	t.Parallel()
	for name, noFiles := range map[string]bool{"files": false, "not files": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, noFiles)
			hash := c.put("some music", "audio/midi")
			for _, path := range []string{"/cas/" + hash, "/cas/" + hash[:12], "/artifact/artifact_" + hash[:12]} {
				r, body := c.do("GET", path, "")
				h := r.Header
				if r.StatusCode != 200 || body != "some music" || h.Get("Content-Type") != "audio/midi" || h.Get("ETag") != `"`+hash+`"` ||
					!strings.Contains(h.Get("Cache-Control"), "immutable") || h.Get("X-Content-Type-Options") != "nosniff" ||
					h.Get("Content-Disposition") != "" || h.Get("X-Content-Hash") != hash || h.Get("Content-Length") != "10" {
					t.Errorf("%s: %d %q %v", path, r.StatusCode, body, h)
				}
				if r, body := c.do("HEAD", path, ""); r.StatusCode != 200 || body != "" || r.ContentLength != 10 {
					t.Errorf("HEAD %s: %d %q %d", path, r.StatusCode, body, r.ContentLength)
				}
			}
		})
	}
}

func TestRangesAndCaching(t *testing.T) {
	t.Parallel()
	c := serve(t, false)
	path := "/cas/" + c.put("0123456789", "text/plain")
	if r, body := c.do("GET", path, "", "Range", "bytes=2-4"); r.StatusCode != 206 || body != "234" || r.Header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("a range: %d %q %v", r.StatusCode, body, r.Header)
	}
	if r, body := c.do("GET", path, "", "Range", "bytes=-3"); r.StatusCode != 206 || body != "789" {
		t.Errorf("the end: %d %q", r.StatusCode, body)
	}
	if r, _ := c.do("GET", path, "", "Range", "bytes=20-30"); r.StatusCode != 416 {
		t.Errorf("beyond: %d", r.StatusCode)
	}
	first, _ := c.do("GET", path, "")
	if r, body := c.do("GET", path, "", "If-None-Match", first.Header.Get("ETag")); r.StatusCode != 304 || body != "" {
		t.Errorf("known: %d %q", r.StatusCode, body)
	}
	if r, body := c.do("GET", path, "", "Range", "bytes=2-4", "If-Range", `"another"`); r.StatusCode != 200 || body != "0123456789" {
		t.Errorf("a range of another: %d %q", r.StatusCode, body)
	}
}

// A stored page must not run with the rights of our origin.
func TestHostileContentDoesNotRun(t *testing.T) {
	t.Parallel()
	c := serve(t, false)
	for _, mime := range []string{"text/html", "image/svg+xml", "application/xhtml+xml", "text/html; charset=utf-8", "application/pdf"} {
		r, _ := c.do("GET", "/cas/"+c.put("<script>alert(1)</script>"+mime, mime), "")
		if !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") || r.Header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" {
			t.Errorf("%s: %v", mime, r.Header)
		}
	}
}

// TestErrorsNameNoPaths checks that whoever stores a content does not learn where.
func TestErrorsNameNoPaths(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "contents")
	dir, err := cas.OpenDir(folder, cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(principal.Unguarded(contents.New(&store{dir, map[cas.Ref]string{}, false}, contents.Options{MaxUpload: 1000}).Routes()))
	t.Cleanup(web.Close)
	c := client{t, web.URL}
	hash := c.put("x", "text/plain")
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, request := range [][]string{{"POST", "/cas", "y"}, {"GET", "/cas/" + hash, ""}} {
		r, body := c.do(request[0], request[1], request[2], "Content-Type", "text/plain")
		if r.StatusCode < 400 || strings.Contains(body, folder) {
			t.Errorf("%s: %d %s", request[0], r.StatusCode, body)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, false)
	hash := c.put("x", "text/plain")
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"unknown":      {"GET", "/cas/" + strings.Repeat("0", 64), "", nil, 404},
		"invalid hash": {"GET", "/cas/xyz", "", nil, 400},
		"no artifact":  {"GET", "/artifact/artifact_000000000000", "", nil, 404},
		"no meta":      {"GET", "/artifact/artifact_000000000000/meta", "", nil, 404},
		"too large":    {"POST", "/cas", strings.Repeat("x", 1001), []string{"Content-Type", "text/plain"}, 413},
		"invalid type": {"POST", "/cas", "x", []string{"Content-Type", "nonsense"}, 400},
		"delete":       {"DELETE", "/cas/" + hash, "", nil, 405},
		"a bad limit":  {"GET", "/artifacts?limit=many", "", nil, 400},
	} {
		r, body := c.do(tt.method, tt.path, tt.body, tt.headers...)
		if r.StatusCode != tt.status || strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %s %v, want %d", name, r.StatusCode, body, r.Header, tt.status)
		}
	}
	stream, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/cas", io.MultiReader(bytes.NewReader(make([]byte, 2000)))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	r, err := httpjsontest.Client.Do(stream)
	if err != nil || r.StatusCode != 413 {
		t.Errorf("a long stream: %v, %v", r, err)
	}
	_ = r.Body.Close()
}

func TestLists(t *testing.T) {
	t.Parallel()
	c := serve(t, false)
	if r, body := c.do("GET", "/artifacts?tag=a&tag=b&creator=ada&limit=7", ""); r.StatusCode != 200 || !strings.Contains(body, `"tags":["a","b"]`) || !strings.Contains(body, `"creator":"ada"`) || !strings.Contains(body, `"count":7`) {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	hash := c.put("y", "text/plain")
	if r, body := c.do("GET", "/artifact/"+hash+"/meta", ""); r.StatusCode != 200 || !strings.Contains(body, hash) || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", r.StatusCode, body)
	}
}
