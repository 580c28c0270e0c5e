package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFilesAreCompressed(t *testing.T) {
	t.Parallel()
	script := strings.Repeat("let x = 1;\n", 1000)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, script) // writes to a buffer do not fail
	_ = zip.Close()
	p := &page{files: fstest.MapFS{
		"index.html":        {Data: []byte("<!doctype html>")},
		"assets/page.js.gz": {Data: packed.Bytes()},
	}}
	for range 2 { // from the files, then from the cache
		r := httptest.NewRequest("GET", "/assets/page.js", nil)
		r.Header.Set("Accept-Encoding", "br, gzip;q=0.8")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Content-Type"), "javascript") || w.Body.Len() > len(script)/10 {
			t.Fatalf("%v, %d bytes", w.Header(), w.Body.Len())
		}
		whole, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(whole); err != nil || string(got) != script {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	r := httptest.NewRequest("GET", "/assets/page.js", nil)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	w = httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Code != http.StatusNotModified {
		t.Errorf("a known file: status %d", w.Code)
	}
	for _, header := range []string{"", "gzip;q=0", "br"} {
		r := httptest.NewRequest("GET", "/assets/page.js", nil)
		r.Header.Set("Accept-Encoding", header)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Header().Get("Content-Encoding") != "" || w.Body.String() != script || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %v, %d bytes", header, w.Header(), w.Body.Len())
		}
	}
}

// TestPageIsBuilt checks that the committed files are the page: everything that index.html
// loads is there.
func TestPageIsBuilt(t *testing.T) {
	t.Parallel()
	page := Page()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	index := get("/").Body.String()
	for _, name := range []string{"assets/index.js", "assets/index.css", "icon.svg"} {
		if !strings.Contains(index, "./"+name) {
			t.Errorf("index.html does not load %s: run make web", name)
		}
		if w := get("/" + name); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes: run make web", name, w.Code, w.Body.Len())
		}
	}
}

// TestPageIsSmall keeps what a browser loads before it shows something below 54 KB,
// compressed, and all pages together below 180 KB. The editor, and the highlighter, which
// has the grammars of the editor, are not counted, nor are the pages that clients show. Both leave room for a few more pages, not
// for another library: the heaviest, for Markdown and charts, load only where they are shown.
func TestPageIsSmall(t *testing.T) {
	t.Parallel()
	const mostFirst, mostTotal = 54 << 10, 180 << 10
	first, total := 0, 0
	err := fs.WalkDir(built, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.ContainsFunc([]string{"editor", "codemirror", "highlight", "apps/"}, func(part string) bool { return strings.Contains(path, part) }) {
			return err
		}
		content, err := fs.ReadFile(built, path)
		if err != nil {
			return err
		}
		total += len(content)
		if strings.Contains(path, "/index.") {
			first += len(content)
		}
		return nil
	})
	if err != nil || first < mostFirst/10 || first > mostFirst {
		t.Errorf("the first page has %d bytes compressed, at most %d are allowed (%v)", first, mostFirst, err)
	}
	if total < first || total > mostTotal {
		t.Errorf("all pages have %d bytes compressed, at most %d are allowed", total, mostTotal)
	}
}
