package server

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/search"
)

// fieldsOf returns the field names of a tool's results, from its output schema or from
// results seen before.
func (srv *Server) fieldsOf(ctx context.Context, ref tool.Ref) []string {
	info, ok := srv.catalog.Find(ctx, ref)
	if !ok {
		return nil
	}
	if info.Output != nil {
		return search.FieldNames(info.Output)
	}
	return srv.results.Fields(ref)
}
