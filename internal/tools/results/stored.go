package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/store/db"
)

// handlePrefix begins the handles of stored results.
const handlePrefix = "$r"

// Stored is a stored result.
type Stored struct {
	Handle  string // "$r12"
	Source  string // the tool it came from
	Shape   string // its fields and types
	Size    int64  // in bytes
	Created time.Time
	Expires time.Time // extended when it is read
}

// Put stores a value for its owner, and deletes the owner's oldest results if there are
// too many.
func (s *Store) Put(ctx context.Context, owner, source string, value json.RawMessage) (Stored, error) {
	size := int64(len(value))
	if size > s.options.Bytes {
		return Stored{}, fault.New(fault.Limit, "a result of %d bytes is too large to store", size).
			WithHint("ask for less of it, or work on it in a script that returns only what is needed")
	}
	now := s.options.Clock.Now()
	stored := Stored{
		Source: source, Shape: redact.Cut(ShapeOf(value).String(), longestShape), Size: size, Created: now, Expires: now.Add(s.options.Age),
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		number, err := s.number(ctx, tx, owner)
		if err != nil {
			return err
		}
		stored.Handle = handlePrefix + strconv.FormatInt(number, 10)
		at := now.UnixMicro()
		if _, err := tx.Exec(ctx, `INSERT INTO kept_results (owner, number, source, shape, size, created, used, value)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, owner, number, source, stored.Shape, size, at, at, []byte(value)); err != nil {
			return err
		}
		return s.forget(ctx, tx, owner, now)
	})
	if err == nil && s.options.Flow != nil {
		err = s.options.Flow.Remember(ctx, flowName(owner, stored.Handle))
	}
	return stored, err
}

// flowName is the name under which the labels of a result are remembered.
func flowName(owner, handle string) string { return "result:" + owner + "/" + handle }

// number is the owner's next number.
func (s *Store) number(ctx context.Context, tx *db.Tx, owner string) (number int64, err error) {
	if _, err := tx.Exec(ctx, `INSERT INTO kept_result_numbers (owner, last) VALUES ($1, 1)
		ON CONFLICT (owner) DO UPDATE SET last = kept_result_numbers.last + 1`, owner); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT last FROM kept_result_numbers WHERE owner = $1`, owner).Scan(&number)
	return number, err
}

// forget deletes results that are too old, of all owners, and too many, of this owner.
func (s *Store) forget(ctx context.Context, tx *db.Tx, owner string, now time.Time) error {
	if _, err := tx.Exec(ctx, `DELETE FROM kept_results WHERE used < $1`, now.Add(-s.options.Age).UnixMicro()); err != nil {
		return err
	}
	type row struct{ number, size int64 }
	rows, err := db.All(ctx, tx, func(from db.Scanner) (r row, err error) {
		return r, from.Scan(&r.number, &r.size)
	}, `SELECT number, size FROM kept_results WHERE owner = $1 ORDER BY number DESC`, owner)
	if err != nil {
		return err
	}
	total := int64(0)
	for i, r := range rows {
		if total += r.size; i >= s.options.Count || total > s.options.Bytes {
			_, err := tx.Exec(ctx, `DELETE FROM kept_results WHERE owner = $1 AND number <= $2`, owner, r.number)
			return err
		}
	}
	return nil
}

const storedColumns = `number, source, shape, size, created, used`

func (s *Store) scan(from db.Scanner, more ...any) (k Stored, err error) {
	var number, created, used int64
	err = from.Scan(append([]any{&number, &k.Source, &k.Shape, &k.Size, &created, &used}, more...)...)
	k.Handle = handlePrefix + strconv.FormatInt(number, 10)
	k.Created, k.Expires = time.UnixMicro(created).UTC(), time.UnixMicro(used).UTC().Add(s.options.Age)
	return k, err
}

// List lists an owner's results, the newest first.
func (s *Store) List(ctx context.Context, owner string) (all []Stored, err error) {
	oldest := s.options.Clock.Now().Add(-s.options.Age).UnixMicro()
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(ctx, tx, func(from db.Scanner) (Stored, error) { return s.scan(from) },
			`SELECT `+storedColumns+` FROM kept_results WHERE owner = $1 AND used >= $2 ORDER BY number DESC`, owner, oldest)
		return err
	})
	return all, err
}

// get reads a result by its handle, and extends its time.
func (s *Store) get(ctx context.Context, owner, handle string) (value json.RawMessage, err error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(handle), handlePrefix)
	number, wrong := strconv.ParseInt(digits, 10, 64)
	if !ok || wrong != nil {
		return nil, fault.New(fault.InvalidParams, "%q is not the handle of a result", redact.Cut(handle, 40)).WithHint("handles look like $r12")
	}
	if s.options.Flow != nil {
		if err := s.options.Flow.Recall(ctx, flowName(owner, handlePrefix+strconv.FormatInt(number, 10))); err != nil {
			return nil, err
		}
	}
	now := s.options.Clock.Now()
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT value FROM kept_results WHERE owner = $1 AND number = $2 AND used >= $3`,
			owner, number, now.Add(-s.options.Age).UnixMicro()).Scan((*[]byte)(&value))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, s.missing(ctx, owner, handle)
	}
	if err != nil {
		return nil, err
	}
	return value, s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE kept_results SET used = $1 WHERE owner = $2 AND number = $3`, now.UnixMicro(), owner, number)
		return err
	})
}

func (s *Store) missing(ctx context.Context, owner, handle string) error {
	err := fault.New(fault.NotFound, "no result %s", redact.Cut(handle, 40))
	all, listErr := s.List(ctx, owner)
	if listErr != nil || len(all) == 0 {
		return err.WithHint("no results are stored; they expire after %s, call the tool again", s.options.Age)
	}
	names := make([]string, 0, 10)
	for _, k := range all[:min(len(all), 10)] {
		names = append(names, k.Handle)
	}
	return err.WithHint("stored: %s; results expire %s after they were last read", strings.Join(names, ", "), s.options.Age)
}
