package cas

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// topicRemoved is the topic on which a node tells the others which content it removed.
const topicRemoved = "contents.removed"

// settled is the age of a file in the folder at which it is no longer being stored.
const settled = 24 * time.Hour

// Follow removes from the folder what other nodes remove from the database, until ctx
// ends.
func (s *Database) Follow(ctx context.Context) error {
	return s.db.Listen(ctx, topicRemoved, func(n db.Notification) {
		ref, err := Parse(n.Payload)
		if err != nil {
			return // some may have been missed: Sweep finds them
		}
		if _, err := s.Stat(ctx, ref); fault.CodeOf(err) == fault.NotFound {
			_ = s.near.Remove(ctx, nil, ref) // likewise
		}
	})
}

// Sweep removes files from the folder that the database does not have: of contents that
// other nodes removed while this one did not run.
func (s *Database) Sweep(ctx context.Context) error {
	s.near.Sweep()
	folders, err := os.ReadDir(s.near.objects())
	for _, folder := range folders {
		if err == nil {
			err = s.sweepFolder(ctx, folder.Name(), time.Now().Add(-settled))
		}
	}
	return err
}

// sweepFolder is Sweep for the files whose hashes begin with prefix, and that were stored
// before a time.
func (s *Database) sweepFolder(ctx context.Context, prefix string, before time.Time) error {
	files, err := os.ReadDir(filepath.Join(s.near.objects(), prefix))
	if err != nil || len(files) == 0 {
		return err
	}
	known := map[string]bool{}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		hashes, err := db.All(ctx, tx, func(row db.Scanner) (hash string, err error) { return hash, row.Scan(&hash) },
			"SELECT hash FROM blobs WHERE hash >= $1 AND hash < $2", prefix, prefix+"g")
		for _, hash := range hashes {
			known[hash] = true
		}
		return err
	})
	for _, file := range files {
		ref, unnamed := Parse(prefix + file.Name())
		info, gone := file.Info()
		if err != nil || unnamed != nil || gone != nil || known[ref.String()] || info.ModTime().After(before) {
			continue
		}
		err = s.near.Remove(ctx, nil, ref)
	}
	return err
}
