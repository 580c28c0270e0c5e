package kv

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

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
