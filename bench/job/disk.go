package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/store/db"
)

// commits stores rows one by one, each on disk before the next: the lower bound for
// anything durable.
func (b bench) commits(ctx context.Context, folder string, r round) error {
	return b.store(ctx, folder, func(d *db.DB) error {
		write := func(statement string, args ...any) error {
			return d.Write(ctx, func(tx *db.Tx) error {
				_, err := tx.Exec(ctx, statement, args...)
				return err
			})
		}
		if err := write("CREATE TABLE bare (id BIGINT PRIMARY KEY, data BYTEA)"); err != nil {
			return err
		}
		row := make([]byte, 100)
		return r.timed(func() error {
			for i := range r.times {
				if err := write("INSERT INTO bare (id, data) VALUES ($1, $2)", i, row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// syncs writes and syncs pages to the disk.
func syncs(_ context.Context, folder string, r round) (err error) {
	f, err := os.Create(filepath.Join(folder, "page"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page := make([]byte, 4096)
	return r.timed(func() error {
		for range r.times {
			if _, err := f.Write(page); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
}
