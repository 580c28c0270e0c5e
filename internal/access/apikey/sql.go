package apikey

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// tokenPrefix makes tokens recognizable to people and to secret scanners.
const tokenPrefix = "lnt_"

const columns = "name, hash, rights, created, expires, revoked, used"

func scan(row db.Scanner) (k Key, err error) {
	var hash []byte
	var rights string
	var created, expires, revoked, used int64
	if err := row.Scan(&k.Name, &hash, &rights, &created, &expires, &revoked, &used); err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	k.Created, k.Expires, k.Revoked, k.Used = moment(created), moment(expires), moment(revoked), moment(used)
	if err := json.Unmarshal([]byte(rights), &k.Rights); err != nil {
		return k, fmt.Errorf("read the rights of key %s: %w", k.Name, err)
	}
	return k, nil
}

func moment(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// load reads the table if its version differs from known, else only the version.
func (r *Store) load(ctx context.Context) (version [2]int64, list []Key, err error) {
	r.mu.Lock()
	known := r.version
	r.mu.Unlock()
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT count(*), CAST(coalesce(sum(version), 0) AS BIGINT) FROM access_keys").Scan(&version[0], &version[1])
		if err != nil || version == known {
			return err
		}
		list, err = db.All(ctx, tx, scan, "SELECT "+columns+" FROM access_keys ORDER BY created, name")
		return err
	})
	return version, list, err
}

// Create creates a key. The token is returned here and never again.
func (r *Store) Create(ctx context.Context, k Key) (_ Key, token string, err error) {
	now := r.options.Now()
	k.Created, k.Revoked, k.Used, k.Fixed = now.UTC().Truncate(time.Microsecond), time.Time{}, time.Time{}, false
	if err := k.Check(); err != nil {
		return k, "", err
	}
	if k.Invalid(now) != "" {
		return k, "", fault.New(fault.InvalidParams, "the key would have expired at %s already", k.Expires.Format(time.RFC3339))
	}
	token = tokenPrefix + rand.Text()
	k.Hash = HashOf(token)
	rights, err := json.Marshal(k.Rights)
	if err != nil {
		return k, "", err
	}
	taken := fault.New(fault.Conflict, "a key %s exists or existed", k.Name).
		WithHint("choose another name: what a key created belongs to its name, even after it is revoked")
	if slices.ContainsFunc(r.options.Fixed, func(f Key) bool { return f.Name == k.Name }) {
		return k, "", taken
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO access_keys (name, hash, rights, created, expires) VALUES ($1, $2, $3, $4, $5)",
			k.Name, k.Hash[:], string(rights), micros(k.Created), micros(k.Expires))
		if err != nil {
			return err
		}
		return tx.Notify(Topic, k.Name)
	})
	if errors.Is(err, db.ErrUnique) {
		return k, "", taken
	}
	if err == nil {
		err = r.refreshOwn(ctx)
	}
	if err != nil {
		return k, "", err
	}
	r.publish(ctx, Created{Name: k.Name, Scopes: k.Scopes}, k.Name)
	return k, token, nil
}

// List returns all keys, those of the configuration first, then by age.
func (r *Store) List(ctx context.Context) (list []Key, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scan, "SELECT "+columns+" FROM access_keys ORDER BY created, name")
		return err
	})
	if err != nil {
		return nil, err
	}
	list = slices.Concat(r.options.Fixed, list)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		if at := r.used[list[i].Name]; at.After(list[i].Used) {
			list[i].Used = at.UTC()
		}
	}
	return list, nil
}

// Revoke revokes a key and ends its browser sessions. The key stays listed.
func (r *Store) Revoke(ctx context.Context, name string) (Key, error) {
	for _, k := range r.options.Fixed {
		if k.Name == name {
			return k, fault.New(fault.Conflict, "the key %s comes from the configuration", name).
				WithHint("remove it from luanette.toml or the environment")
		}
	}
	var key Key
	var known []string
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		list, err := db.All(ctx, tx, scan, "SELECT "+columns+" FROM access_keys ORDER BY name")
		if err != nil {
			return err
		}
		for _, k := range list {
			if k.Name == name {
				key = k
			}
			if k.Revoked.IsZero() {
				known = append(known, k.Name)
			}
		}
		if key.Name == "" || !key.Revoked.IsZero() {
			return nil
		}
		key.Revoked = r.options.Now().UTC().Truncate(time.Microsecond)
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE token = $1", key.Hash[:]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE access_keys SET revoked = $2, version = version + 1 WHERE name = $1", name, micros(key.Revoked)); err != nil {
			return err
		}
		return tx.Notify(Topic, name)
	})
	if err == nil && key.Name == "" {
		missing := fault.New(fault.NotFound, "no key %s", name).WithHint("there are none; `luanette key create NAME` makes one")
		if len(known) > 0 {
			missing = missing.WithHint("there are: %s", strings.Join(known, ", "))
		}
		err = missing
	}
	if err == nil {
		err = r.refreshOwn(ctx)
	}
	if err == nil {
		r.publish(ctx, Revoked{Name: name}, name)
	}
	return key, err
}

// refreshOwn reads the keys again after a change by this node.
func (r *Store) refreshOwn(ctx context.Context) error { return r.Refresh(context.WithoutCancel(ctx)) }

// keyOf returns the name of the key in a principal's ID, if it has one.
func keyOf(id string) (string, bool) { return strings.CutPrefix(id, idPrefix) }
