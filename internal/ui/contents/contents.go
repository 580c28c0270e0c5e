// Package contents serves artifacts and stored contents over HTTP, with ranges and
// caching, and stores uploaded contents.
package contents

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Store is where contents and artifacts are.
type Store interface {
	Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error)
	Artifacts(ctx context.Context, q artifact.Query) (hootenanny.ArtifactList, error)
	Content(ctx context.Context, name string) (cas.File, error)
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	PutContent(ctx context.Context, r io.Reader, mime string) (hootenanny.StoredContent, error)
}

// Options limit what the server accepts.
type Options struct {
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
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.MCP, Write: withoutPaths(serve)}
	}
	put := route("POST /cas", unrestricted(s.put)).Reads("a content")
	put.MaxBody = s.options.MaxUpload
	return []principal.Route{
		route("GET /artifact/{id}", s.artifact),
		route("GET /artifact/{id}/meta", s.meta),
		route("GET /artifacts", unrestricted(s.list)),
		put,
		route("GET /cas/{hash}", s.content),
	}
}

// unrestricted refuses keys that are limited to some tools. These may fetch contents
// by name, but neither list nor store any.
func unrestricted(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if who := principal.Of(r.Context()); len(who.Tools) > 0 {
			return fault.New(fault.Denied, "%s is limited to some tools", who.Title()).
				WithHint("it may only fetch contents by name: /artifact/{id} and /cas/{hash}")
		}
		return serve(w, r)
	}
}

func (s *Server) artifact(w http.ResponseWriter, r *http.Request) error {
	view, err := s.store.Artifact(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	c, err := s.store.Content(r.Context(), view.Hash)
	if err != nil {
		return err
	}
	w.Header().Set("X-Artifact-Id", view.ID)
	return serveFile(w, r, s.store.Open, c)
}

func (s *Server) content(w http.ResponseWriter, r *http.Request) error {
	c, err := s.store.Content(r.Context(), r.PathValue("hash"))
	if err != nil {
		return err
	}
	return serveFile(w, r, s.store.Open, c)
}

// opener opens a content.
type opener func(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)

// serveFile sends a content. A content never changes, so clients may cache it forever. Its
// MIME type comes from the client that stored it: the headers stop browsers from
// guessing another type and from running it.
func serveFile(w http.ResponseWriter, r *http.Request, open opener, c cas.File) error {
	if c.Path != "" {
		if file, err := os.Open(c.Path); err == nil {
			defer func() { _ = file.Close() }()
			setHeader(w.Header(), c)
			http.ServeContent(w, r, "", time.Time{}, file)
			return nil
		}
	}
	body, err := open(r.Context(), c.Hash)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	setHeader(w.Header(), c)
	w.Header().Set("Content-Length", strconv.FormatInt(c.Size, 10)) // not a file: no ranges
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, body) // the client may have disconnected
	}
	return nil
}

func setHeader(header http.Header, c cas.File) {
	header.Set("Content-Type", c.MIME)
	header.Set("Etag", `"`+c.Hash.String()+`"`)
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	header.Set("X-Content-Hash", c.Hash.String())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	if !showsInline(c.MIME) {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": c.Hash.Short()}))
	}
}

// showsInline reports whether a browser may display the type: types without scripts.
func showsInline(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	family, _, _ := strings.Cut(kind, "/")
	return family == "audio" || family == "video" || kind == "text/plain" || kind == "application/json" ||
		family == "image" && kind != "image/svg+xml"
}

func (s *Server) meta(w http.ResponseWriter, r *http.Request) error {
	view, err := s.store.Artifact(r.Context(), r.PathValue("id"))
	return sent(w, view, err)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	list, err := s.store.Artifacts(r.Context(), artifact.Query{
		Tags: query["tag"], Creator: query.Get("creator"), Vibe: query.Get("vibe"), Cursor: query.Get("cursor"), Limit: limit,
	})
	return sent(w, list, err)
}

// limitOf is how many artifacts a request asks for.
func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 200 {
		return 0, fault.New(fault.InvalidParams, "limit: %q is not valid", text).WithHint("use 1 to 200")
	}
	return n, nil
}

// put stores the body of a request; its MIME type is the Content-Type header.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	large := &http.MaxBytesError{Limit: s.options.MaxUpload}
	if r.ContentLength > s.options.MaxUpload {
		return s.tooLarge(large)
	}
	stored, err := s.store.PutContent(r.Context(), r.Body, r.Header.Get("Content-Type"))
	if errors.As(err, &large) {
		return s.tooLarge(err)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/cas/"+stored.Hash)
	httpjson.JSON(w, http.StatusCreated, stored)
	return nil
}

func (s *Server) tooLarge(cause error) error {
	return fault.Wrap(fault.Limit, cause, "the content is larger than %d bytes", s.options.MaxUpload).WithHint("raise music.upload_mb")
}

// sent sends a body as JSON.
func sent(w http.ResponseWriter, body any, err error) error {
	if err == nil {
		httpjson.JSON(w, http.StatusOK, body)
	}
	return err
}

// withoutPaths hides where files of the server are from those who read errors.
func withoutPaths(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		cause := err
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			cause = file.Err
		}
		if files := (*os.LinkError)(nil); errors.As(err, &files) {
			cause = files.Err
		}
		if cause == err { //nolint:errorlint // the same, not alike
			return err
		}
		return &fault.Error{Code: fault.CodeOf(err), Msg: "the store of contents: " + cause.Error(), Hint: fault.HintOf(err)}
	}
}
