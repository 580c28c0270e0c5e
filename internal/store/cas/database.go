package cas

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// partSize is the size of the part of a content in one row, which bounds the memory of
// reads and writes.
const partSize = 1 << 20

// Database is a Store in a database. It is safe for concurrent use.
type Database struct {
	db   *db.DB
	near *Dir
}

// OpenDatabase opens the store of a database, and creates or updates its tables. The
// folder may be removed at any time: missing files are fetched again.
func OpenDatabase(ctx context.Context, database *db.DB, near *Dir) (*Database, error) {
	return &Database{database, near}, database.Migrate(ctx, MigrationSet, Migrations)
}

// Put stores all of r, in the folder and in the database.
func (s *Database) Put(ctx context.Context, r io.Reader) (Ref, int64, error) {
	ref, size, err := s.near.Put(ctx, r)
	if err != nil {
		return Ref{}, 0, err
	}
	if _, err := s.Stat(ctx, ref); err == nil {
		return ref, size, nil
	} else if fault.CodeOf(err) != fault.NotFound {
		return Ref{}, 0, err
	}
	if err := s.upload(ctx, ref, size); err != nil {
		return Ref{}, 0, fmt.Errorf("store content %s: %w", ref.Short(), err)
	}
	return ref, size, nil
}

// upload writes the parts and, with the last of them, that they are complete. Parts that
// a dead process left are valid for the next one.
func (s *Database) upload(ctx context.Context, ref Ref, size int64) (err error) {
	r, err := s.near.Open(ctx, ref)
	if fault.CodeOf(err) == fault.NotFound {
		return ErrRemoved // Follow did it, for another node
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	part := make([]byte, partSize)
	for place, left := 0, size; place == 0 || left > 0; place++ {
		n, err := io.ReadFull(r, part[:min(left, partSize)])
		if err != nil {
			return err
		}
		left -= int64(n)
		if err := s.write(ctx, ref, place, part[:n], size, left == 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *Database) write(ctx context.Context, ref Ref, place int, part []byte, size int64, last bool) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO blob_parts (hash, place, data) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", ref.String(), place, part)
		if err == nil && last {
			_, err = tx.Exec(ctx, "INSERT INTO blobs (hash, size) VALUES ($1, $2) ON CONFLICT DO NOTHING", ref.String(), size)
		}
		return err
	})
}

// Open opens the file of ref's content, which is fetched if necessary.
func (s *Database) Open(ctx context.Context, ref Ref) (io.ReadCloser, error) {
	if err := s.Fetch(ctx, ref); err != nil {
		return nil, err
	}
	return s.near.Open(ctx, ref)
}

// Fetch ensures that the content of ref is a file in the folder.
func (s *Database) Fetch(ctx context.Context, ref Ref) error {
	if _, err := s.near.Stat(ctx, ref); err == nil {
		return nil
	}
	size, err := s.Stat(ctx, ref)
	if err != nil {
		return err
	}
	got, _, err := s.near.Put(ctx, &download{ctx: ctx, store: s, ref: ref, left: size})
	if err == nil && got != ref {
		err = fault.New(fault.Internal, "the content %s is damaged in the database", ref.Short()).
			WithHint("restore the database from a backup, or store the content again")
	}
	return err
}

// Stat returns the size of ref's content.
func (s *Database) Stat(ctx context.Context, ref Ref) (size int64, err error) {
	err = s.db.QueryRow(ctx, "SELECT size FROM blobs WHERE hash = $1", ref.String()).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		err = fault.New(fault.NotFound, "no content with hash %s", ref).
			WithHint("check the hash, or store the content again: the same content gets the same hash")
	}
	return size, err
}

// Match returns refs that begin with prefix.
func (s *Database) Match(ctx context.Context, prefix string, limit int) (refs []Ref, err error) {
	return db.Find(ctx, s.db, func(row db.Scanner) (ref Ref, err error) {
		var hash string
		if err := row.Scan(&hash); err != nil {
			return Ref{}, err
		}
		return Parse(hash)
	}, "SELECT hash FROM blobs WHERE hash >= $1 AND hash < $2 ORDER BY hash LIMIT $3", prefix, prefix+"g", limit)
}

// Has reports whether the database has ref's content.
func (s *Database) Has(ctx context.Context, tx *db.Tx, ref Ref) (has bool, err error) {
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = $1)", ref.String()).Scan(&has)
	return has, err
}

// Remove removes ref's content from the database in tx, and its file from the folder at
// once. Other nodes remove theirs after the commit: see Follow.
func (s *Database) Remove(ctx context.Context, tx *db.Tx, ref Ref) error {
	for _, table := range []string{TableBlobs, TableParts} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE hash = $1", ref.String()); err != nil {
			return err
		}
	}
	if err := tx.Notify(topicRemoved, ref.String()); err != nil {
		return err
	}
	return s.near.Remove(ctx, tx, ref)
}

// download reads the parts of a content, one after the other. It holds ctx because it
// lives no longer than one Fetch.
type download struct {
	ctx   context.Context
	store *Database
	ref   Ref
	left  int64
	place int
	part  bytes.Reader
}

func (d *download) Read(p []byte) (int, error) {
	if d.part.Len() > 0 {
		return d.part.Read(p)
	}
	if d.left <= 0 {
		return 0, io.EOF
	}
	var data []byte
	err := d.store.db.QueryRow(d.ctx, "SELECT data FROM blob_parts WHERE hash = $1 AND place = $2", d.ref.String(), d.place).Scan(&data)
	if err != nil {
		return 0, err
	}
	if len(data) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	d.part.Reset(data)
	d.left -= int64(len(data))
	d.place++
	return d.part.Read(p)
}

var _ Store = (*Database)(nil)

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
		hashes, err := db.All(ctx, tx, db.Column[string],
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
