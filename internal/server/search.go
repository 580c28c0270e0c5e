package server

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/embedding"
	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/tools/usage"
)

// openSearch opens what searches learn from calls, and the model of meaning if one is
// configured. Nothing is learned from our own tools: many of them call others.
func (srv *Server) openSearch(ctx context.Context) (err error) {
	srv.usage, err = usage.Open(ctx, srv.store, usage.Options{
		Off: !srv.config.Search.Learn, Log: srv.log,
		Ignore: func(ref tool.Ref) bool { return ref.Space == "" && srv.ownTools != nil && srv.ownTools.Has(ref.Name) },
	})
	if err != nil {
		return err
	}
	srv.closeLast.plain(srv.usage.Close)
	model := srv.config.Search.Embeddings
	if model.URL == "" {
		return nil
	}
	key, err := srv.secrets.Find(model.Key)
	if err != nil {
		return fault.Wrap(fault.Config, err, "search.embeddings.key").WithHint("%s", fault.HintOf(err))
	}
	from := srv.outbound()
	from.Loopback = true // the owner has configured it, and it may be on this machine or at an address of its own
	from.Allowed = append(slices.Clip(from.Allowed), model.Host())
	srv.meaning, err = embedding.Open(ctx, srv.store, embedding.Options{
		URL: model.URL, Model: model.Model, Key: key, QueryPrefix: model.QueryPrefix, ToolPrefix: model.ToolPrefix,
		Client: from.Client(), Log: srv.log,
	})
	srv.closeLast.plain(srv.meaning.Close)
	return err
}

// known returns what the search knows of a namespace: what its server says about itself,
// and the results of its tools so far.
func (srv *Server) known(manager *upstream.Manager) func(namespace string) catalog.Known {
	return func(namespace string) catalog.Known {
		return catalog.Known{
			Context: search.Context{Server: manager.Instructions(namespace), Fields: srv.results.Fields},
			Learned: srv.results.Changes(namespace),
		}
	}
}
