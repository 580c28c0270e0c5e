// Package contents serves artifacts and stored contents over HTTP, with ranges and
// caching, and stores uploaded contents.
package contents

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/store/cas"
)

// Store is where contents and artifacts are.
type Store interface {
	Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error)
	Artifacts(ctx context.Context, q hootenanny.Search) (hootenanny.ArtifactList, error)
	Content(ctx context.Context, name string) (hootenanny.Content, error)
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	PutContent(ctx context.Context, r io.Reader, mime string) (hootenanny.StoredContent, error)
}

// Options limit what the server accepts.
type Options struct {
	Browsers  netguard.Browsers
	MaxUpload int64 // bytes
}

// Server answers /artifact, /artifacts and /cas.
type Server struct {
	store   Store
	options Options
}

// New returns a server of the contents of store.
func New(store Store, o Options) *Server { return &Server{store, o} }

// Routes are the server's paths and the scope that each requires.
func (s *Server) Routes() []principal.Route {
	route := func(pattern string, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.MCP, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.sameOrigin(w, r) {
				serve(w, r)
			}
		})}
	}
	return []principal.Route{
		route("GET /artifact/{id}", s.artifact),
		route("GET /artifact/{id}/meta", s.meta),
		route("GET /artifacts", unrestricted(s.list)),
		route("POST /cas", unrestricted(s.put)).Reads("a content"),
		route("GET /cas/{hash}", s.content),
	}
}

// unrestricted refuses keys that are limited to some tools. These may fetch contents
// by name, but neither list nor store any.
func unrestricted(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if who := principal.Of(r.Context()); len(who.Tools) > 0 {
			writeError(w, fault.New(fault.Denied, "%s is limited to some tools", who.Title()).
				WithHint("it may only fetch contents by name: /artifact/{id} and /cas/{hash}"))
			return
		}
		serve(w, r)
	}
}

// sameOrigin refuses requests from pages of other origins and requests with an unknown
// Host header. It reports whether the request may go on.
func (s *Server) sameOrigin(w http.ResponseWriter, r *http.Request) bool {
	err := s.options.Browsers.Refusal(r)
	if err != nil {
		writeError(w, err)
	}
	return err == nil
}

func (s *Server) artifact(w http.ResponseWriter, r *http.Request) {
	view, err := s.store.Artifact(r.Context(), r.PathValue("id"))
	if err != nil {
		writeError(w, err)
		return
	}
	c, err := s.store.Content(r.Context(), view.Hash)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("X-Artifact-Id", view.ID)
	serveFile(w, r, s.store.Open, c)
}

func (s *Server) content(w http.ResponseWriter, r *http.Request) {
	c, err := s.store.Content(r.Context(), r.PathValue("hash"))
	if err != nil {
		writeError(w, err)
		return
	}
	serveFile(w, r, s.store.Open, c)
}

// opener opens a content.
type opener func(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)

// serveFile sends a content. A content never changes, so clients may cache it forever. Its
// MIME type comes from the client that stored it: the headers stop browsers from
// guessing another type and from running it.
func serveFile(w http.ResponseWriter, r *http.Request, open opener, c cas.File) {
	header := w.Header()
	header.Set("Content-Type", c.MIME)
	header.Set("Etag", `"`+c.Hash.String()+`"`)
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	header.Set("X-Content-Hash", c.Hash.String())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	if !showsInline(c.MIME) {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": c.Hash.Short()}))
	}
	if c.Path != "" {
		if file, err := os.Open(c.Path); err == nil {
			defer func() { _ = file.Close() }()
			http.ServeContent(w, r, "", time.Time{}, file)
			return
		}
	}
	copyFile(w, r, open, c)
}

// showsInline reports whether a browser may display the type: types without scripts.
func showsInline(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	family, _, _ := strings.Cut(kind, "/")
	return family == "audio" || family == "video" || kind == "text/plain" || kind == "application/json" ||
		family == "image" && kind != "image/svg+xml"
}

// copyFile sends a content that is not a file, without ranges.
func copyFile(w http.ResponseWriter, r *http.Request, open opener, c cas.File) {
	body, err := open(r.Context(), c.Hash)
	if err != nil {
		writeError(w, err)
		return
	}
	defer func() { _ = body.Close() }()
	w.Header().Set("Content-Length", strconv.FormatInt(c.Size, 10))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.Copy(w, body) // the client may have disconnected
}

func (s *Server) meta(w http.ResponseWriter, r *http.Request) {
	view, err := s.store.Artifact(r.Context(), r.PathValue("id"))
	writeJSON(w, http.StatusOK, view, err)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := hootenanny.Search{Tags: query["tag"], Creator: query.Get("creator"), Vibe: query.Get("vibe"), Cursor: query.Get("cursor"), Limit: 100}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			writeError(w, fault.New(fault.InvalidParams, "limit: %q is not valid", text).WithHint("use 1 to 200"))
			return
		}
		q.Limit = n
	}
	list, err := s.store.Artifacts(r.Context(), q)
	writeJSON(w, http.StatusOK, list, err)
}

// put stores the body of a request; its MIME type is the Content-Type header.
func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > s.options.MaxUpload {
		writeError(w, s.tooLarge())
		return
	}
	stored, err := s.store.PutContent(r.Context(), http.MaxBytesReader(w, r.Body, s.options.MaxUpload), r.Header.Get("Content-Type"))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = s.tooLarge()
	}
	if err == nil {
		w.Header().Set("Location", "/cas/"+stored.Hash)
	}
	writeJSON(w, http.StatusCreated, stored, err)
}

func (s *Server) tooLarge() error {
	return fault.New(fault.Limit, "the content is larger than %d bytes", s.options.MaxUpload).WithHint("raise music.upload_mb")
}

func writeJSON(w http.ResponseWriter, status int, body any, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// writeError sends an error as JSON, without the headers of a content.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		status = http.StatusBadRequest
	case fault.NotFound:
		status = http.StatusNotFound
	case fault.Denied:
		status = http.StatusForbidden
	case fault.Conflict:
		status = http.StatusConflict
	case fault.Limit:
		status = http.StatusRequestEntityTooLarge
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
	}
	shown := fault.From(err)
	if cause := withoutPath(err); cause != nil {
		shown = &fault.Error{Code: fault.CodeOf(err), Msg: "the store of contents: " + cause.Error(), Hint: fault.HintOf(err)}
	}
	for _, name := range []string{"Etag", "Cache-Control", "Content-Disposition", "Content-Length"} {
		w.Header().Del(name)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": shown}) // the client may have disconnected
}

// withoutPath returns what went wrong with a file of the server, without its path; nil if
// nothing did.
func withoutPath(err error) error {
	var file *fs.PathError
	var files *os.LinkError
	switch {
	case errors.As(err, &file):
		return file.Err
	case errors.As(err, &files):
		return files.Err
	}
	return nil
}
