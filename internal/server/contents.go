package server

import (
	"context"
	"path/filepath"

	"github.com/luanette/luanette/internal/store/artifact"
)

// openContents opens the store of contents and artifacts.
func (srv *Server) openContents(ctx context.Context) error {
	data, err := filepath.Abs(srv.config.Data)
	if err != nil {
		return err
	}
	inDatabase, folder := srv.config.ContentLocation(srv.store.Kind(), data)
	srv.contents, err = artifact.OpenFiles(ctx, srv.store, artifact.FilesOptions{Folder: folder, InDatabase: inDatabase, Events: srv.bus})
	return err
}
