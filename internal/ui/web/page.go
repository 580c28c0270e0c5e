package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
)

// built is the page as `make web` writes it. In a program built without the page, the
// folder holds only a README.
//
//go:embed all:dist
var built embed.FS

// policy allows the page to load its own files only. The editor needs inline style
// attributes.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageRoutes are the routes of the web page's files. They require no key: the files
// contain no data, and the page must load before a user can log in.
func PageRoutes() (list []principal.Route) {
	page := Page()
	for _, pattern := range []string{"GET /{$}", "GET /icon.svg", "GET /assets/"} {
		list = append(list, principal.Route{Pattern: pattern, Handler: page})
	}
	return list
}

// Page serves the web page at "/" and its files.
func Page() http.Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the folder is embedded under this name
	}
	return &page{files: files}
}

// page serves files, compressed if the client accepts gzip and the file gets smaller.
type page struct {
	files   fs.FS
	gzipped sync.Map // name to []byte, compressed on first use
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	content, err := fs.ReadFile(p.files, name)
	switch {
	case err == nil && name != "README":
	case name == "index.html":
		header.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(notBuilt))
		return
	default:
		http.NotFound(w, r)
		return
	}
	header.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") { // their names change with their content
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Vary", "Accept-Encoding")
	if small := p.compressed(name, content); small != nil && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
			header.Set("Content-Type", kind)
		}
		content = small
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// compressed returns a file in gzip, or nil if that is not smaller.
func (p *page) compressed(name string, content []byte) []byte {
	if known, ok := p.gzipped.Load(name); ok {
		return known.([]byte)
	}
	var buffer bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression) // BestCompression is a valid level
	_, _ = zip.Write(content)                                    // writes to a buffer do not fail
	_ = zip.Close()
	made := buffer.Bytes()
	if len(made) >= len(content) {
		made = nil
	}
	p.gzipped.Store(name, made)
	return made
}

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for name := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(name), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

const notBuilt = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Luanette</title>
<p>Luanette is running. This program was built without its web page.
To include the page, run <code>make web build</code> in the source folder.
<p><code>luanette hud</code> shows the same in a terminal, and MCP clients connect to <code>/mcp</code>.

</html>
`
