package host

import (
	"context"
	"io"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// Contents is the store of contents as scripts may use it. To know a hash is to
// be allowed to read what it names.
type Contents interface {
	// Put keeps all of r, which is of that MIME type.
	Put(ctx context.Context, r io.Reader, mime string) (Content, error)
	// Find is the content that a hash or a unique beginning of one names.
	Find(ctx context.Context, hash string) (Content, error)
	// Artifact is the content of an artifact, named by its id or hash.
	Artifact(ctx context.Context, id string) (Content, error)
	// Open reads a content.
	Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error)
	// Folder is where contents are files; "" when they are not.
	Folder() string
}

// Content is something kept under its hash.
type Content struct {
	Hash cas.Ref
	Size int64
	MIME string
	Path string // of its file; "" when it has none
}

// Store is the run's store of contents, or why there is none.
func (w *Services) Store() (Contents, error) {
	if w.Contents == nil {
		return nil, fault.New(fault.Unavailable, "there is no store of contents here").
			WithHint("run the script on a server, which keeps one in its data folder")
	}
	return w.Contents, nil
}

// Open opens a file for reading that is named by a path the run may read, or by
// the hash of a content. The caller closes it.
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
		return nil, fault.New(fault.Unavailable, "contents are not files here").WithHint("write it to temp.path with cas.read first")
	}
	return w.Files.Open(c.Path)
}
