package cas

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/store/db"
)

// The tables, for packages that fill a database.
const (
	MigrationSet = "blobs" // name of the set of migrations, from before the package was called cas
	TableBlobs   = "blobs"
	TableParts   = "blob_parts"
)

// FillDatabase inserts a content of a known hash and size into a database that is being
// filled.
func FillDatabase(ctx context.Context, f *db.Filling, hash string, size int64, r io.Reader) error {
	place, left := int64(0), size
	err := f.Load(ctx, db.Table{Name: TableParts, Columns: []string{"hash", "place", "data"}}, func() ([]any, error) {
		if left == 0 && place > 0 {
			return nil, nil
		}
		part := make([]byte, min(left, partSize))
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		left -= int64(len(part))
		place++
		return []any{hash, place - 1, part}, nil
	})
	if err != nil {
		return err
	}
	done := false
	return f.Load(ctx, db.Table{Name: TableBlobs, Columns: []string{"hash", "size"}}, func() ([]any, error) {
		if done {
			return nil, nil
		}
		done = true
		return []any{hash, size}, nil
	})
}
