package server

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/delivery"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/usage"
)

// storage is what is stored.
type storage struct {
	contents *artifact.Files
	results  *results.Store
	usage    *usage.Store
	spending *spending.Store
	// deliveries are webhooks on their way.
	deliveries *delivery.Store
}

func openStorage(ctx context.Context, p *process, g *guards) (*storage, error) {
	s := &storage{}
	var err error
	if s.spending, err = spending.Open(ctx, p.store, spending.Options{Budgets: p.config.Chat.Budget}); err != nil {
		return nil, err
	}
	if s.deliveries, err = delivery.Open(ctx, p.store, delivery.Options{Log: p.log}); err != nil {
		return nil, err
	}
	if s.results, err = results.Open(ctx, p.store, results.Options{Log: p.log, Flow: g.policy}); err != nil {
		return nil, err
	}
	p.closeLast.plain("results", s.results.Close)
	if s.contents, err = openContents(ctx, p, g.shares, func(org string) int64 { return g.orgs.StorageLimit(org) << 20 }); err != nil {
		return nil, err
	}
	s.usage, err = openUsage(ctx, p)
	return s, err
}

// contentColumns are the columns with hashes of contents. TestEveryHashIsKnown fails when one
// is missing here.
func contentColumns() []cas.Column {
	return slices.Concat(publish.Contents(), job.Contents(), approval.Contents(), share.Contents(), hootenanny.StoredContents())
}

// openContents opens the store of contents and artifacts. The quota is how many bytes an
// organisation may have.
func openContents(ctx context.Context, p *process, shares *share.Store, quota func(org string) int64) (*artifact.Files, error) {
	data, err := filepath.Abs(p.config.Data)
	if err != nil {
		return nil, err
	}
	inDatabase, folder := p.config.ContentLocation(p.store.Kind(), data)
	contents, err := artifact.OpenFiles(ctx, p.store, artifact.FilesOptions{
		Folder: folder, InDatabase: inDatabase, Options: artifact.Options{Events: p.bus, Shares: shares, Quota: quota, Columns: contentColumns()},
	})
	if err == nil {
		shares.Register(principal.Artifact, contents.SharedArtifact)
	}
	return contents, err
}

// collectContents removes contents that nobody needs, while ctx lasts.
func (srv *Server) collectContents(ctx context.Context) {
	if srv.options.Jobs {
		srv.contents.Run(ctx, srv.log)
	}
}

// storedOf returns how many MiB the contents of an organisation have.
func storedOf(contents *artifact.Files, orgs *quota.Orgs) func(context.Context, string) (*quota.Used, error) {
	return func(ctx context.Context, org string) (*quota.Used, error) {
		bytes, err := contents.Storage(ctx, org)
		return &quota.Used{Used: float64(bytes) / (1 << 20), Limit: float64(orgs.StorageLimit(org))}, err
	}
}

// openUsage opens what searches learn from calls. Nothing is learned from our own tools:
// many of them call others.
func openUsage(ctx context.Context, p *process) (*usage.Store, error) {
	learned, err := usage.Open(ctx, p.store, usage.Options{
		Off: !p.config.Search.Learn, Log: p.log,
		Ignore: func(ref tool.Ref) bool { return ref.Space == "" && p.isOwn(ref.Name) },
	})
	if err == nil {
		p.closeLast.plain("what searches learned", learned.Close)
	}
	return learned, err
}
