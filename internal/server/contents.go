package server

import (
	"context"
	"io"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// openContents opens the store of contents and what is known of them.
func (srv *Server) openContents(ctx context.Context) (contentStore, error) {
	data, err := filepath.Abs(srv.config.Data)
	if err != nil {
		return contentStore{}, err
	}
	inDatabase, folder := srv.config.ContentLocation(srv.store.Kind(), data)
	files, err := cas.OpenDir(folder, cas.DirOptions{})
	if err != nil {
		return contentStore{}, fault.Wrap(fault.Config, err, "open the folder of contents").
			WithHint("choose a folder you may write to, with blobs or --data")
	}
	c := contentStore{blobs: files, files: files, data: data}
	if inDatabase {
		if c.shared, err = cas.OpenDatabase(ctx, srv.store, files); err != nil {
			return contentStore{}, err
		}
		c.blobs = c.shared
	}
	c.store, err = artifact.Open(ctx, srv.store, c.blobs, artifact.Options{Events: srv.bus})
	return c, err
}

// contentStore is the store as scripts use it: with the files that contents are.
type contentStore struct {
	store  *artifact.Store
	blobs  cas.Store
	files  *cas.Dir      // contents as files: all of them, or those met so far
	shared *cas.Database // nil when all of them are files
	data   string        // the data folder, as an absolute path
}

func (c contentStore) Put(ctx context.Context, r io.Reader, mime string) (host.Content, error) {
	kept, err := c.store.StoreContent(ctx, r, mime)
	if err != nil {
		return host.Content{}, err
	}
	return c.content(ctx, kept)
}

func (c contentStore) Find(ctx context.Context, hash string) (host.Content, error) {
	found, err := c.store.Find(ctx, hash)
	if err != nil {
		return host.Content{}, err
	}
	return c.content(ctx, found)
}

func (c contentStore) Artifact(ctx context.Context, id string) (host.Content, error) {
	ref, err := c.store.Resolve(ctx, id)
	if err != nil {
		return host.Content{}, err
	}
	a, err := c.store.Get(ctx, ref)
	if err != nil {
		return host.Content{}, err
	}
	return c.content(ctx, artifact.Content{Hash: a.Hash, Size: a.Size, MIME: a.MIME})
}

func (c contentStore) Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error) {
	return c.blobs.Open(ctx, hash)
}

func (c contentStore) Folder() string { return c.files.Folder() }

// content has its file, which is fetched from the database if need be.
func (c contentStore) content(ctx context.Context, of artifact.Content) (host.Content, error) {
	if c.shared != nil {
		if err := c.shared.Fetch(ctx, of.Hash); err != nil {
			return host.Content{}, err
		}
	}
	return host.Content{Hash: of.Hash, Size: of.Size, MIME: of.MIME, Path: c.files.Path(of.Hash)}, nil
}
