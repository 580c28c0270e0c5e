package server

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// contentColumns are the columns with hashes of contents. TestEveryHashIsKnown fails when one
// is missing here.
func contentColumns() []cas.Column {
	return slices.Concat(publish.Contents(), job.Contents(), approval.Contents(), share.Contents(), hootenanny.StoredContents())
}

// openContents opens the store of contents and artifacts.
func (srv *Server) openContents(ctx context.Context) error {
	data, err := filepath.Abs(srv.config.Data)
	if err != nil {
		return err
	}
	inDatabase, folder := srv.config.ContentLocation(srv.store.Kind(), data)
	srv.contents, err = artifact.OpenFiles(ctx, srv.store, artifact.FilesOptions{
		Folder: folder, InDatabase: inDatabase, Options: artifact.Options{Events: srv.bus, Shares: srv.shares, Quota: srv.storageQuota, Columns: contentColumns()},
	})
	if err == nil {
		srv.shares.Register(principal.Artifact, srv.contents.SharedArtifact)
	}
	return err
}

// collectContents removes contents that nobody needs, while ctx lasts.
func (srv *Server) collectContents(ctx context.Context) {
	if srv.options.Jobs {
		srv.contents.Run(ctx, srv.log)
	}
}

// storageQuota returns how many bytes the contents of an organisation may have.
func (srv *Server) storageQuota(org string) int64 {
	if srv.orgs == nil { // the music backend has no organisations
		return 0
	}
	return srv.orgs.StorageLimit(org) << 20
}

// stored returns how many MiB the contents of an organisation have.
func (srv *Server) stored(ctx context.Context, org string) (*quota.Used, error) {
	bytes, err := srv.contents.Storage(ctx, org)
	return &quota.Used{Used: float64(bytes) / (1 << 20), Limit: float64(srv.orgs.StorageLimit(org))}, err
}
