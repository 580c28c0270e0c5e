package server

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/results"
)

// scriptResults is the store of results as scripts see it.
type scriptResults struct{ *results.Store }

func (s scriptResults) Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (json.RawMessage, int, error) {
	part, err := s.Store.Slice(ctx, owner, handle, pointer, skip, count)
	return part.Value, part.Total, err
}

func (s scriptResults) Keep(ctx context.Context, owner, source string, value json.RawMessage) (string, error) {
	kept, err := s.Store.Put(ctx, owner, source, value)
	return kept.Handle, err
}

func (s scriptResults) List(ctx context.Context, owner string) ([]host.StoredResult, error) {
	all, err := s.Store.List(ctx, owner)
	list := make([]host.StoredResult, len(all))
	for i, k := range all {
		list[i] = host.StoredResult{Handle: k.Handle, Source: k.Source, Shape: k.Shape, Bytes: k.Size, Expires: k.Expires}
	}
	return list, err
}

// fieldsOf are the names of the fields a tool's results have, by its own word or
// by what was seen of them.
func (srv *Server) fieldsOf(ctx context.Context, ref tool.Ref) []string {
	info, ok := srv.catalog.Find(ctx, ref)
	if !ok {
		return nil
	}
	if info.Output != nil {
		return results.FieldNames(info.Output)
	}
	learned, ok := srv.results.Learned(ref)
	if !ok {
		return nil
	}
	return results.FieldNames(learned.Schema)
}
