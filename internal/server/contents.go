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
	srv.contents, err = artifact.OpenFiles(ctx, srv.store, artifact.FilesOptions{
		Folder: folder, InDatabase: inDatabase, Options: artifact.Options{Events: srv.bus, Quota: srv.storageQuota},
	})
	return err
}

// storageQuota returns how many bytes the contents of an organisation may have.
func (srv *Server) storageQuota(org string) int64 { return srv.config.Orgs[org].Quota.StorageMB << 20 }
