package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/store/db"
)

// commits are rows that our database stores one by one, each on disk before the
// next: what nothing that is durable can be cheaper than.
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

// syncs is what the disk needs.
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
