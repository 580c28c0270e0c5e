package host

import (
	"context"
	"io"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// Contents is the content store for scripts. It finds what the principal
// of the context may read.
type Contents interface {
	// Put stores all of r, which has that MIME type.
	Put(ctx context.Context, r io.Reader, mime string) (Content, error)
	// Find returns the content that a hash or a unique prefix of one names.
	Find(ctx context.Context, hash string) (Content, error)
	// Artifact returns the content of an artifact, named by its id or hash.
	Artifact(ctx context.Context, id string) (Content, error)
	// Open opens a content for reading.
	Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error)
	// Folder is the folder with the contents as files; "" if they are not files.
	Folder() string
}

// Content is data stored under its hash.
type Content = cas.File

// Store returns the run's content store, or an error if there is none.
func (w *Services) Store() (Contents, error) {
	if w.Contents == nil {
		return nil, fault.New(fault.Unavailable, "this run has no content store").
			WithHint("run the script on a server, which has one in its data folder")
	}
	return w.Contents, nil
}

// Open opens a file for reading, named by a path that the run may read or by the hash of
// a content. The caller closes it.
func (w *Services) Open(ctx context.Context, name string) (File, error) {
	if _, err := cas.ParsePrefix(name); err != nil || strings.ContainsAny(strings.TrimPrefix(name, cas.Scheme+"//"), "./\\") {
		return w.Files.Open(name)
	}
	contents, err := w.Store()
	if err != nil {
		return nil, err
	}
	c, err := contents.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if c.Path == "" {
		return nil, fault.New(fault.Unavailable, "contents are not stored as files here").WithHint("write it to temp.path with cas.read first")
	}
	return w.Files.Open(c.Path)
}
