package authserver

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// limit is how many attempts of a kind one address or person has in a period, on all nodes
// together.
type limit struct {
	kind   string
	most   int
	period time.Duration
}

var (
	registrations  = limit{"registrations of an address", 20, time.Minute}
	devices        = limit{"devices of an address", 20, time.Minute}
	personGuesses  = limit{"wrong codes of a person", 10, deviceTime}
	addressGuesses = limit{"wrong codes of an address", 50, deviceTime} // of several people
)

// maxSpent is how many rows are remembered that have no attempt left.
const maxSpent = 10_000

// attempts counts attempts in the database. It remembers who has none left, so that a
// flood of them is refused without it.
type attempts struct {
	db *db.DB

	mu    sync.Mutex
	spent map[string]time.Time // by row: until when
}

// row returns where attempts of the present period are counted, and when that ends. It is a
// hash, which leads back to no address.
func (l limit) row(who string, now time.Time) (row string, end time.Time) {
	begin := now.UTC().Truncate(l.period)
	return string(hashOf(l.kind + "\n" + who + "\n" + begin.Format(time.RFC3339))), begin.Add(l.period)
}

// add counts an attempt, and reports whether it is one too many.
func (a *attempts) add(ctx context.Context, l limit, who string, now time.Time) (tooMany bool, err error) {
	row, end := l.row(who, now)
	if a.isSpent(row, now) {
		return true, nil
	}
	var count int
	err = a.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM as_attempts WHERE expires <= $1", now.UnixMicro()); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `INSERT INTO as_attempts (id, count, expires) VALUES ($1, 1, $2)
			ON CONFLICT (id) DO UPDATE SET count = as_attempts.count + 1 RETURNING count`, []byte(row), end.UnixMicro()).Scan(&count)
	})
	if err == nil && count >= l.most {
		a.spend(row, end)
	}
	return count > l.most, err
}

// exhausted reports whether no attempt is left.
func (a *attempts) exhausted(ctx context.Context, l limit, who string, now time.Time) (bool, error) {
	row, end := l.row(who, now)
	if a.isSpent(row, now) {
		return true, nil
	}
	var count int
	err := a.db.QueryRow(ctx, "SELECT count FROM as_attempts WHERE id = $1", []byte(row)).Scan(&count)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil && count >= l.most {
		a.spend(row, end)
	}
	return count >= l.most, err
}

func (a *attempts) isSpent(row string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Before(a.spent[row])
}

// spend remembers that no attempt is left until a time.
func (a *attempts) spend(row string, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.spent == nil || len(a.spent) >= maxSpent {
		a.spent = map[string]time.Time{}
	}
	a.spent[row] = until
}
