package script

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/results"
)

// Results is the store of large results for scripts.
type Results struct{ *results.Store }

// Slice returns a part of a stored result and the number of items.
func (s Results) Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (json.RawMessage, int, error) {
	part, err := s.Store.Slice(ctx, owner, handle, pointer, skip, count)
	return part.Value, part.Total, err
}

// Keep stores a result and returns its handle.
func (s Results) Keep(ctx context.Context, owner, source string, value json.RawMessage) (string, error) {
	stored, err := s.Store.Put(ctx, owner, source, value)
	return stored.Handle, err
}

// List returns the stored results of an owner.
func (s Results) List(ctx context.Context, owner string) ([]host.StoredResult, error) {
	all, err := s.Store.List(ctx, owner)
	list := make([]host.StoredResult, len(all))
	for i, k := range all {
		list[i] = host.StoredResult{Handle: k.Handle, Source: k.Source, Shape: k.Shape, Bytes: k.Size, Expires: k.Expires}
	}
	return list, err
}
