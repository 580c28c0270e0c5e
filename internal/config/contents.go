package config

import (
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Where contents may be kept, other than in a folder that is named.
const (
	BlobsInFolder   = "folder"
	BlobsInDatabase = "database"
)

// checkBlobs knows a folder by its path.
func checkBlobs(where string) error {
	if where == "" || where == BlobsInFolder || where == BlobsInDatabase || filepath.IsAbs(where) {
		return nil
	}
	return fault.New(fault.Config, "blobs: %q is neither %s nor %s nor the whole path of a folder", where, BlobsInFolder, BlobsInDatabase).
		WithHint("omit it: contents are stored in the data folder, or in the database with Postgres")
}

// ContentsFolder is where contents are in a data folder, and in a backup.
const ContentsFolder = "cas"

// ContentLocation is where contents are: in the database, or else in a folder, which
// is that of the data folder data unless another is named.
func (c *Config) ContentLocation(kind db.Kind, data string) (inDatabase bool, folder string) {
	inDatabase = c.Blobs == BlobsInDatabase || c.Blobs == "" && kind == db.Postgres
	if filepath.IsAbs(c.Blobs) {
		return inDatabase, c.Blobs
	}
	return inDatabase, filepath.Join(data, ContentsFolder)
}
