package artifact

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Files is the store for callers that need contents as files: scripts and programs.
// Contents that are stored in the database are copied to the folder on first use.
type Files struct {
	*Store
	folder *cas.Dir      // contents as files: all of them, or those used so far
	shared *cas.Database // nil if all contents are files
}

// FilesOptions say where contents are stored.
type FilesOptions struct {
	Folder     string
	InDatabase bool // contents are in the database, and the folder is a cache
	Options
}

// OpenFiles opens the store of a database and its folder.
func OpenFiles(ctx context.Context, database *db.DB, o FilesOptions) (*Files, error) {
	folder, err := cas.OpenDir(o.Folder, cas.DirOptions{})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "open the folder of contents").
			WithHint("choose a folder you may write to, with blobs or --data")
	}
	f := &Files{folder: folder}
	var blobs cas.Store = folder
	if o.InDatabase {
		if f.shared, err = cas.OpenDatabase(ctx, database, folder); err != nil {
			return nil, err
		}
		blobs = f.shared
	}
	f.Store, err = Open(ctx, database, blobs, o.Options)
	return f, err
}

// PutFile stores all of r.
func (f *Files) PutFile(ctx context.Context, r io.Reader, mime string) (cas.File, error) {
	stored, err := f.StoreContent(ctx, r, mime)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, stored)
}

// FindFile returns the content that a hash, a unique prefix of one, or an artifact's id
// names.
func (f *Files) FindFile(ctx context.Context, name string) (cas.File, error) {
	found, err := f.Find(ctx, name)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, found)
}

// ArtifactFile returns the content of an artifact, named by its id or hash.
func (f *Files) ArtifactFile(ctx context.Context, id string) (cas.File, error) {
	ref, err := f.Resolve(ctx, id)
	if err != nil {
		return cas.File{}, err
	}
	a, err := f.Get(ctx, ref)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, Content{Hash: a.Hash, Size: a.Size, MIME: a.MIME})
}

// Folder is the folder of the files.
func (f *Files) Folder() string { return f.folder.Folder() }

// file returns the content with its file, which is fetched from the database if
// necessary.
func (f *Files) file(ctx context.Context, c Content) (cas.File, error) {
	if f.shared != nil {
		if err := f.shared.Fetch(ctx, c.Hash); err != nil {
			return cas.File{}, err
		}
	}
	return cas.File{Hash: c.Hash, Size: c.Size, MIME: c.MIME, Path: f.folder.Path(c.Hash)}, nil
}
