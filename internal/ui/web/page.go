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

// built is the page as `make web` leaves it; a program built without it has only
// a README there.
//
//go:embed all:dist
var built embed.FS

// policy lets the page load nothing but itself and show nothing as markup that
// came from elsewhere. The editor gives one of its elements a style attribute.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageRoutes are the web page and what it consists of. They are open: it shows
// emptyText by itself, and has to load before somebody can log in.
func PageRoutes() (list []principal.Route) {
	page := Page()
	for _, pattern := range []string{"GET /{$}", "GET /icon.svg", "GET /assets/"} {
		list = append(list, principal.Route{Pattern: pattern, Handler: page})
	}
	return list
}

// Page serves the web page at "/" and what it consists of beside it.
func Page() http.Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the folder is embedded under this name
	}
	return &page{files: files}
}

// page serves the files; those that shrink are sent compressed to who can read
// that.
type page struct {
	files   fs.FS
	gzipped sync.Map // name to []byte, each made when it is first wanted
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

// compressed is a file in gzip, or nil when that makes it no smaller.
func (p *page) compressed(name string, content []byte) []byte {
	if known, ok := p.gzipped.Load(name); ok {
		return known.([]byte)
	}
	var small bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is one that there is
	_, _ = zip.Write(content)                                   // a buffer takes everything
	_ = zip.Close()
	made := small.Bytes()
	if len(made) >= len(content) {
		made = nil
	}
	p.gzipped.Store(name, made)
	return made
}

// acceptsGzip tells whether a client can read gzip.
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
<p>Luanette is running. This program was built without its web page:
<code>make web build</code> in its source folder makes one that has it.
<p>Meanwhile <code>luanette hud</code> shows the same in a terminal, and MCP clients connect to <code>/mcp</code>.
</html>
`
