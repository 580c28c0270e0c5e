package app

import (
	"context"
	"io"
	"path/filepath"

	"github.com/luanette/luanette/internal/artifact"
	"github.com/luanette/luanette/internal/cas"
	"github.com/luanette/luanette/internal/host"
)

// openContents opens the store of contents and what is known of them.
func (h *House) openContents(ctx context.Context) (contents, error) {
	data, err := filepath.Abs(h.config.Data)
	if err != nil {
		return contents{}, err
	}
	blobs, err := cas.OpenDir(filepath.Join(data, "cas"), cas.DirOptions{})
	if err != nil {
		return contents{}, err
	}
	store, err := artifact.Open(ctx, h.store, blobs, artifact.Options{Events: h.bus})
	return contents{store, blobs, data}, err
}

// contents is the store as scripts use it: with the files that contents are.
type contents struct {
	store *artifact.Store
	blobs *cas.Dir
	data  string // the data folder, as an absolute path
}

func (c contents) Put(ctx context.Context, r io.Reader, mime string) (host.Content, error) {
	kept, err := c.store.Keep(ctx, r, mime)
	return c.content(kept), err
}

func (c contents) Find(ctx context.Context, hash string) (host.Content, error) {
	found, err := c.store.Find(ctx, hash)
	return c.content(found), err
}

func (c contents) Artifact(ctx context.Context, id string) (host.Content, error) {
	ref, err := c.store.Resolve(ctx, id)
	if err != nil {
		return host.Content{}, err
	}
	a, err := c.store.Get(ctx, ref)
	return c.content(artifact.Content{Hash: a.Hash, Size: a.Size, MIME: a.MIME}), err
}

func (c contents) Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error) {
	return c.blobs.Open(ctx, hash)
}

func (c contents) Folder() string { return c.blobs.Folder() }

func (c contents) content(of artifact.Content) host.Content {
	return host.Content{Hash: of.Hash, Size: of.Size, MIME: of.MIME, Path: c.blobs.Path(of.Hash)}
}
