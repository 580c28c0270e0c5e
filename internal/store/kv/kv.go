// Package kv stores small JSON values of scripts under keys, with an optional lifetime.
// Every script of every principal has a space of its own.
package kv

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// The limits of a space.
const (
	maxKey   = 512      // bytes of a key
	maxValue = 1 << 20  // bytes of a value
	maxKeys  = 10_000   // keys of a space
	maxBytes = 64 << 20 // bytes of all values of a space
)

// swapAge is how long the outcome of a job's Swap is stored. Jobs that take longer do not
// occur.
const swapAge = 90 * 24 * time.Hour

// Space names the values of one script of one principal.
type Space struct {
	Owner  string // the principal's id
	Script string // name of the script; "" for code without a name
}

// Entry is one value with its key.
type Entry struct {
	Key     string
	Value   json.RawMessage
	Expires time.Time // zero means never
}

// Store holds the values of all spaces. It is safe for concurrent use, also of several
// processes on one database: lifetimes are measured by the clock of the database.
type Store struct{ db *db.DB }

// Open opens the store in a database, migrates its tables and removes what has expired.
func Open(ctx context.Context, database *db.DB) (*Store, error) {
	if err := database.Migrate(ctx, "kv", Migrations); err != nil {
		return nil, err
	}
	s := &Store{database}
	return s, s.write(ctx, func(tx *db.Tx, now time.Time) error {
		_, err := tx.Exec(ctx, "DELETE FROM kv WHERE expires > 0 AND expires <= $1", now.UnixMicro())
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM kv_swaps WHERE made < $1", now.Add(-swapAge).UnixMicro())
		}
		return err
	})
}

// Get returns the value of a key; ok is false if there is none.
func (s *Store) Get(ctx context.Context, space Space, key string) (value json.RawMessage, ok bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		value, err = read(ctx, tx, space, key, now)
		return err
	})
	return value, value != nil, problem(err, "read", key)
}

// read returns the value of a key; nil if there is none.
func read(ctx context.Context, tx *db.Tx, space Space, key string, now time.Time) (value []byte, err error) {
	err = tx.QueryRow(ctx, "SELECT value FROM kv WHERE owner = $1 AND script = $2 AND name = $3 AND (expires = 0 OR expires > $4)",
		space.Owner, space.Script, key, now.UnixMicro()).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return value, err
}

// Set stores a value. With a positive lifetime it is removed after that time.
func (s *Store) Set(ctx context.Context, space Space, key string, value json.RawMessage, lifetime time.Duration) error {
	if err := Check(key, value); err != nil {
		return err
	}
	err := s.write(ctx, func(tx *db.Tx, now time.Time) error {
		return put(ctx, tx, space, newEntry(key, value, lifetime, now), now)
	})
	return problem(err, "store", key)
}

func newEntry(key string, value json.RawMessage, lifetime time.Duration, now time.Time) Entry {
	e := Entry{Key: key, Value: value}
	if lifetime > 0 {
		e.Expires = now.Add(lifetime)
	}
	return e
}

// put stores a value, unless that would exceed the limits of the space.
func put(ctx context.Context, tx *db.Tx, space Space, e Entry, now time.Time) error {
	if _, err := tx.Exec(ctx, "DELETE FROM kv WHERE owner = $1 AND script = $2 AND (name = $3 OR expires > 0 AND expires <= $4)",
		space.Owner, space.Script, e.Key, now.UnixMicro()); err != nil {
		return err
	}
	var keys, bytes int64
	if err := tx.QueryRow(ctx, "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM kv WHERE owner = $1 AND script = $2", space.Owner, space.Script).Scan(&keys, &bytes); err != nil {
		return err
	}
	if keys >= maxKeys || bytes+int64(len(e.Value)) > maxBytes {
		return fault.New(fault.Limit, "the script stores %d values with %d bytes; %d values with %d bytes are allowed", keys, bytes, maxKeys, maxBytes).
			WithHint("delete what is not needed any more, give values a lifetime with ttl_ms, or store large data with cas.store")
	}
	expires := int64(0)
	if !e.Expires.IsZero() {
		expires = e.Expires.UnixMicro()
	}
	_, err := tx.Exec(ctx, "INSERT INTO kv (owner, script, name, size, expires, value) VALUES ($1, $2, $3, $4, $5, $6)",
		space.Owner, space.Script, e.Key, len(e.Value), expires, []byte(e.Value))
	return err
}

// Delete removes a value. It returns false if there was none.
func (s *Store) Delete(ctx context.Context, space Space, key string) (removed bool, err error) {
	err = s.write(ctx, func(tx *db.Tx, now time.Time) error {
		value, err := read(ctx, tx, space, key, now)
		if removed = value != nil; err != nil {
			return err
		}
		return remove(ctx, tx, space, key)
	})
	return removed, problem(err, "delete", key)
}

func remove(ctx context.Context, tx *db.Tx, space Space, key string) error {
	_, err := tx.Exec(ctx, "DELETE FROM kv WHERE owner = $1 AND script = $2 AND name = $3", space.Owner, space.Script, key)
	return err
}

// List returns the entries whose keys begin with prefix, sorted by key.
func (s *Store) List(ctx context.Context, space Space, prefix string) (entries []Entry, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		entries, err = db.All(ctx, tx, scan, `SELECT name, value, expires FROM kv WHERE owner = $1 AND script = $2 AND substr(name, 1, $3) = $4
			AND (expires = 0 OR expires > $5) ORDER BY name`, space.Owner, space.Script, utf8.RuneCountInString(prefix), prefix, now.UnixMicro())
		return err
	})
	return entries, problem(err, "list", prefix)
}

func scan(row db.Scanner) (e Entry, err error) {
	var value []byte
	var expires int64
	err = row.Scan(&e.Key, &value, &expires)
	if e.Value = value; expires > 0 {
		e.Expires = time.UnixMicro(expires)
	}
	return e, err
}

// write runs f in a transaction, with the time of the database.
func (s *Store) write(ctx context.Context, f func(tx *db.Tx, now time.Time) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		return f(tx, now)
	})
}

// Check returns why a value cannot be stored.
func Check(key string, value json.RawMessage) error {
	switch {
	case key == "" || len(key) > maxKey || !utf8.ValidString(key):
		return fault.New(fault.InvalidParams, "a key is text of 1 to %d bytes", maxKey)
	case len(value) > maxValue:
		return fault.New(fault.Limit, "the value of %q has %d bytes, %d are allowed", key, len(value), maxValue).
			WithHint("store large data with cas.store and only its hash here")
	}
	return nil
}

// problem explains an error of the database.
func problem(err error, doing, key string) error {
	if known := (*fault.Error)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.Internal, err, "%s the value of %q", doing, key)
}

// Change is a conditional change of one value.
type Change struct {
	Old, New json.RawMessage // nil means that there is no value
	Lifetime time.Duration   // of the new value; 0 means no limit
	// Token identifies the change, if it is not "": making it again returns the first
	// outcome and changes nothing. A job that was interrupted repeats its last effect.
	Token string
}

// Swap makes a change if the value is the old one, and reports whether it was.
func (s *Store) Swap(ctx context.Context, space Space, key string, c Change) (swapped bool, err error) {
	if err := Check(key, c.New); err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *db.Tx, now time.Time) error {
		var known bool
		var err error
		if swapped, known, err = outcomeOf(ctx, tx, c.Token); known || err != nil {
			return err
		}
		value, err := read(ctx, tx, space, key, now)
		if err != nil {
			return err
		}
		if swapped = Equal(value, c.Old); swapped && c.New == nil {
			err = remove(ctx, tx, space, key)
		} else if swapped {
			err = put(ctx, tx, space, newEntry(key, c.New, c.Lifetime, now), now)
		}
		if err == nil && c.Token != "" {
			_, err = tx.Exec(ctx, "INSERT INTO kv_swaps (token, swapped, made) VALUES ($1, $2, $3)", c.Token, number(swapped), now.UnixMicro())
		}
		return err
	})
	return swapped, problem(err, "compare and set", key)
}

// outcomeOf returns the outcome of a change that was made before.
func outcomeOf(ctx context.Context, tx *db.Tx, token string) (swapped, known bool, err error) {
	if token == "" {
		return false, false, nil
	}
	var n int64
	err = tx.QueryRow(ctx, "SELECT swapped FROM kv_swaps WHERE token = $1", token).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return n == 1, err == nil, err
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Equal reports whether two values are the same: the order of fields and the spelling of
// numbers do not matter. nil is equal to nil only.
func Equal(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// canonical returns a value with sorted fields and shortest numbers.
func canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return raw
	}
	text, err := json.Marshal(shortened(v))
	if err != nil {
		return raw
	}
	return text
}

// shortened replaces the numbers in v by their shortest spelling; whole numbers keep all
// digits.
func shortened(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shortened(v[k])
		}
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return v
		}
		if f, err := v.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return v
}

// Personal lists the tables with values that scripts of a person stored.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "kv", Where: "OWNER(owner)"},
	}
}
