package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
)

// built is the page as `make web` writes it. It is committed, so that `go install` has
// it too.
//
//go:embed all:dist
var built embed.FS

// policy allows the page to load its own files only. The editor needs inline style
// attributes.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Apps are the Apps of our own, NAME.html each.
func Apps() fs.FS {
	files, err := fs.Sub(built, "dist/apps")
	if err != nil {
		panic(err) // the folder is embedded under this name
	}
	return files
}

// PageRoutes are the routes of the web page's files. They require no key: the files
// contain no data, and the page must load before a user can log in.
func PageRoutes() (list []principal.Route) {
	page := Page()
	for _, pattern := range []string{"GET /{$}", "GET /icon.svg", "GET /assets/"} {
		list = append(list, principal.Route{Pattern: pattern, Scope: principal.Open, AnyOrigin: true, Handler: page})
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

// page serves files, those that are stored with gzip as they are if the client accepts it.
type page struct {
	files fs.FS
	known sync.Map // name to *asset, made on first use
}

// asset is a file of the page.
type asset struct {
	content []byte
	gzipped []byte // nil if it is stored as it is
	tag     string // of the content, so that browsers need not load it again
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
	file, err := p.asset(name)
	if err != nil || name == "README" || path.Ext(name) == ".gz" {
		http.NotFound(w, r)
		return
	}
	header.Set("Cache-Control", "no-cache") // names do not change with the content: ask again, by tag
	header.Set("Vary", "Accept-Encoding")
	content, tag := file.content, file.tag
	if file.gzipped != nil && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
			header.Set("Content-Type", kind)
		}
		content, tag = file.gzipped, file.tag+"-gzip"
	}
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// asset returns a file.
func (p *page) asset(name string) (*asset, error) {
	if known, ok := p.known.Load(name); ok {
		return known.(*asset), nil
	}
	file := &asset{}
	stored, err := fs.ReadFile(p.files, name+".gz")
	if err == nil {
		file.gzipped = stored
		file.content, err = unzip(stored)
	} else {
		stored, err = fs.ReadFile(p.files, name)
		file.content = stored
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(stored)
	file.tag = hex.EncodeToString(sum[:8])
	p.known.Store(name, file)
	return file, nil
}

func unzip(gzipped []byte) ([]byte, error) {
	from, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(from)
}

// compressed serves answers with gzip to clients that accept it: lists of numbers shrink
// to a tenth.
func compressed(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r) {
			return serve(w, r)
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		if err := serve(zipped{ResponseWriter: w, zip: zip}, r); err != nil {
			w.Header().Del("Content-Encoding")
			return err
		}
		_ = zip.Close() // the client may have disconnected
		return nil
	}
}

// zipped is an answer whose body is compressed.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z zipped) Write(body []byte) (int, error) { return z.zip.Write(body) }

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
