// Package contents is the door for contents over HTTP: artifacts and what is kept
// under a hash, fetched with ranges and never twice, and contents sent to be kept.
package contents

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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
	Keep(ctx context.Context, r io.Reader, mime string) (hootenanny.Stored, error)
}

// Options say what is let in.
type Options struct {
	Browsers  netguard.Browsers
	MaxUpload int64 // bytes of a content that is sent
}

// Server is the door.
type Server struct {
	store   Store
	options Options
}

// New makes the door.
func New(store Store, o Options) *Server { return &Server{store, o} }

// Routes are the paths of this door, with what each needs.
func (f *Server) Routes() []principal.Route {
	route := func(pattern string, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.MCP, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f.sameOrigin(w, r) {
				serve(w, r)
			}
		})}
	}
	return []principal.Route{
		route("GET /artifact/{id}", f.artifact),
		route("GET /artifact/{id}/meta", f.meta),
		route("GET /artifacts", unrestricted(f.list)),
		route("POST /cas", unrestricted(f.put)),
		route("GET /cas/{hash}", f.content),
	}
}

// unrestricted keeps out who is here for some tools only: they fetch what those name, and
// neither look around nor leave anything.
func unrestricted(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if who := principal.Of(r.Context()); len(who.Tools) > 0 {
			writeError(w, fault.New(fault.Denied, "%s is for some tools only", who.Title()).
				WithHint("it can fetch what they name, at /artifact/{id} and /cas/{hash}"))
			return
		}
		serve(w, r)
	}
}

// sameOrigin keeps out pages of other sites, and names of ours that are not.
func (f *Server) sameOrigin(w http.ResponseWriter, r *http.Request) bool {
	err := f.options.Browsers.Refusal(r)
	if err != nil {
		writeError(w, err)
	}
	return err == nil
}

func (f *Server) artifact(w http.ResponseWriter, r *http.Request) {
	view, err := f.store.Artifact(r.Context(), r.PathValue("id"))
	if err != nil {
		writeError(w, err)
		return
	}
	c, err := f.store.Content(r.Context(), view.Hash)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("X-Artifact-Id", view.ID)
	f.serve(w, r, c)
}

func (f *Server) content(w http.ResponseWriter, r *http.Request) {
	c, err := f.store.Content(r.Context(), r.PathValue("hash"))
	if err != nil {
		writeError(w, err)
		return
	}
	f.serve(w, r, c)
}

// serve sends a content. It never changes, so that whoever has it need not ask
// again. What it says it is comes from whoever stored it: browsers are neither to
// guess nor to run it.
func (f *Server) serve(w http.ResponseWriter, r *http.Request, c hootenanny.Content) {
	head := w.Header()
	head.Set("Content-Type", c.MIME)
	head.Set("Etag", `"`+c.Hash.String()+`"`)
	head.Set("Cache-Control", "private, max-age=31536000, immutable")
	head.Set("X-Content-Hash", c.Hash.String())
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	if !showsInline(c.MIME) {
		head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": c.Hash.Short()}))
	}
	if c.Path != "" {
		if file, err := os.Open(c.Path); err == nil {
			defer func() { _ = file.Close() }()
			http.ServeContent(w, r, "", time.Time{}, file)
			return
		}
	}
	f.copy(w, r, c)
}

// showsInline tells whether a browser may show it in place: what cannot do anything.
func showsInline(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	family, _, _ := strings.Cut(kind, "/")
	return family == "audio" || family == "video" || kind == "text/plain" || kind == "application/json" ||
		family == "image" && kind != "image/svg+xml"
}

// copy sends a content that is no file, whole.
func (f *Server) copy(w http.ResponseWriter, r *http.Request, c hootenanny.Content) {
	body, err := f.store.Open(r.Context(), c.Hash)
	if err != nil {
		writeError(w, err)
		return
	}
	defer func() { _ = body.Close() }()
	w.Header().Set("Content-Length", strconv.FormatInt(c.Size, 10))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.Copy(w, body) // the client may be gone; nobody is left to tell
}

func (f *Server) meta(w http.ResponseWriter, r *http.Request) {
	view, err := f.store.Artifact(r.Context(), r.PathValue("id"))
	writeJSON(w, http.StatusOK, view, err)
}

func (f *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := hootenanny.Search{Tags: query["tag"], Creator: query.Get("creator"), Vibe: query.Get("vibe"), Cursor: query.Get("cursor"), Limit: 100}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			writeError(w, fault.New(fault.InvalidParams, "limit is %q", text).WithHint("give 1 to 200"))
			return
		}
		q.Limit = n
	}
	list, err := f.store.Artifacts(r.Context(), q)
	writeJSON(w, http.StatusOK, list, err)
}

// overwrite stores the body of a request, which is of the type its header says.
func (f *Server) put(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > f.options.MaxUpload {
		writeError(w, f.tooLarge())
		return
	}
	kept, err := f.store.Keep(r.Context(), http.MaxBytesReader(w, r.Body, f.options.MaxUpload), r.Header.Get("Content-Type"))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = f.tooLarge()
	}
	if err == nil {
		w.Header().Set("Location", "/cas/"+kept.Hash)
	}
	writeJSON(w, http.StatusCreated, kept, err)
}

func (f *Server) tooLarge() error {
	return fault.New(fault.Limit, "the content is larger than %d bytes", f.options.MaxUpload).WithHint("raise hoot.upload_mb")
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
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; nobody is left to tell
}

// writeError answers with what went wrong.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		status = http.StatusBadRequest
	case fault.NotFound:
		status = http.StatusNotFound
	case fault.Denied:
		status = http.StatusForbidden
	case fault.Limit:
		status = http.StatusRequestEntityTooLarge
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
	}
	for _, name := range []string{"Etag", "Cache-Control", "Content-Disposition", "Content-Length"} {
		w.Header().Del(name)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": fault.From(err)}) // the client may be gone
}
