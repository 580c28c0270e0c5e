package db

import (
	"context"
	"errors"
	"strings"
)

// ErrUnwritable is wrapped by errors of Write whose cause is the disk: it is full, fails
// or is read-only. The transaction was rolled back; the same write may succeed later.
var ErrUnwritable = errors.New("the database cannot be written")

// unwritable marks an error as ErrUnwritable without changing its text.
type unwritable struct{ error }

func (u unwritable) Unwrap() error        { return u.error }
func (u unwritable) Is(target error) bool { return target == ErrUnwritable }

// noteWrite remembers that a write failed because of the disk. One that succeeds proves
// nothing: it may have changed nothing, or fit into the last free page.
func (d *DB) noteWrite(err error) {
	if errors.Is(err, ErrUnwritable) {
		d.unwritable.Store(true)
	}
}

// CheckReadable returns why nothing can be read, or nil.
func (d *DB) CheckReadable(ctx context.Context) error {
	var one int
	return d.Read(ctx, func(tx *Tx) error { return tx.QueryRow(ctx, "SELECT 1").Scan(&one) })
}

// CheckWritable returns why nothing can be written, or nil. It writes only if a write
// failed because of the disk, to find out whether there is space again.
func (d *DB) CheckWritable(ctx context.Context) error {
	if !d.unwritable.Load() {
		return nil
	}
	err := d.Write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE space_check (filler TEXT)"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO space_check (filler) VALUES ($1)", filler); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP TABLE space_check")
		return err
	})
	if err == nil {
		d.unwritable.Store(false)
	}
	return err
}

// filler needs some pages of its own.
var filler = strings.Repeat("no space? ", 6000)
