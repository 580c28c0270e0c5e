package server

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/tools/usage"
)

// openUsage opens what searches learn from calls. Nothing is learned from our own tools:
// many of them call others.
func (srv *Server) openUsage(ctx context.Context) (err error) {
	srv.usage, err = usage.Open(ctx, srv.store, usage.Options{
		Off: !srv.config.Search.Learn, Log: srv.log,
		Ignore: func(ref tool.Ref) bool { return ref.Space == "" && srv.ownTools != nil && srv.ownTools.Has(ref.Name) },
	})
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
