package config

import (
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Values of blobs other than the path of a folder.
const (
	BlobsInFolder   = "folder"
	BlobsInDatabase = "database"
)

// checkBlobs accepts the known values and absolute paths.
func checkBlobs(where string) error {
	if where == "" || where == BlobsInFolder || where == BlobsInDatabase || filepath.IsAbs(where) {
		return nil
	}
	return fault.New(fault.Config, "blobs: %q is neither %s nor %s nor the absolute path of a folder", where, BlobsInFolder, BlobsInDatabase).
		WithHint("omit it: contents are stored in the data folder, or in the database with Postgres")
}

// ContentsFolder is the name of the contents' folder in a data folder and in a backup.
const ContentsFolder = "cas"

// ContentLocation reports whether contents are stored in the database, and returns their
// folder otherwise. It is a subfolder of data unless the configuration names another.
func (c *Config) ContentLocation(kind db.Kind, data string) (inDatabase bool, folder string) {
	inDatabase = c.Blobs == BlobsInDatabase || c.Blobs == "" && kind == db.Postgres
	if filepath.IsAbs(c.Blobs) {
		return inDatabase, c.Blobs
	}
	return inDatabase, filepath.Join(data, ContentsFolder)
}
