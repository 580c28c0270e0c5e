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
	"github.com/luanette/luanette/internal/store/personal"
)

// tokenPrefix makes tokens recognizable to people and to secret scanners.
const tokenPrefix = "lnt_"

const columns = "name, hash, rights, created, expires, revoked, used"

func scan(row db.Scanner) (k Key, err error) {
	var hash []byte
	var rights string
	err = row.Scan(&k.Name, &hash, &rights, db.Micros(&k.Created), db.Micros(&k.Expires), db.Micros(&k.Revoked), db.Micros(&k.Used))
	if err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	if err := json.Unmarshal([]byte(rights), &k.Rights); err != nil {
		return k, fmt.Errorf("read the rights of key %s: %w", k.Name, err)
	}
	return k, nil
}

// load reads the table if its version differs from known, else only the version.
func (s *Store) load(ctx context.Context) (version [2]int64, list []Key, err error) {
	s.mu.Lock()
	known := s.version
	s.mu.Unlock()
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT count(*), CAST(coalesce(sum(version), 0) AS BIGINT) FROM access_keys").Scan(&version[0], &version[1])
		if err != nil || version == known {
			return err
		}
		list, err = db.All(ctx, tx, scan, "SELECT "+columns+" FROM access_keys ORDER BY created, owner, name")
		return err
	})
	return version, list, err
}

// Create creates a key. The token is returned here and never again.
func (s *Store) Create(ctx context.Context, k Key) (_ Key, token string, err error) {
	now := s.options.Now()
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
	if slices.ContainsFunc(s.options.Fixed, func(f Key) bool { return f.ref() == k.ref() }) {
		return k, "", k.taken()
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO access_keys (owner, name, hash, rights, created, expires) VALUES ($1, $2, $3, $4, $5, $6)",
			k.ref().owner, k.Name, k.Hash[:], string(rights), db.UnixMicro(k.Created), db.UnixMicro(k.Expires))
		if err != nil {
			return err
		}
		return tx.Notify(Topic, k.ID())
	})
	if errors.Is(err, db.ErrUnique) {
		return k, "", k.taken()
	}
	if err == nil {
		err = s.refreshOwn(ctx)
	}
	if err != nil {
		return k, "", err
	}
	s.publish(ctx, Created{Name: k.Name, Scopes: k.Scopes}, k.ID())
	return k, token, nil
}

// taken refuses the name of a key. Only the owner of the other one is told of it.
func (k *Key) taken() error {
	return fault.New(fault.Conflict, "a key %s exists or existed", k.Name).
		WithHint("choose another name: what a key created belongs to its name, even after it is revoked")
}

// List returns all keys, those of the configuration first, then by age.
func (s *Store) List(ctx context.Context) (list []Key, err error) {
	list, err = db.Find(ctx, s.db, scan, "SELECT "+columns+" FROM access_keys ORDER BY created, owner, name")
	if err != nil {
		return nil, err
	}
	list = slices.Concat(s.options.Fixed, list)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		if at := s.used[list[i].Hash]; at.After(list[i].Used) {
			list[i].Used = at.UTC()
		}
	}
	return list, nil
}

// Find returns the key that somebody names by its ID or name, among those that are theirs to
// name.
func (s *Store) Find(ctx context.Context, named string, theirs func(Key) bool) (Key, error) {
	list, err := s.List(ctx)
	if err != nil {
		return Key{}, err
	}
	list = slices.DeleteFunc(list, func(k Key) bool { return !theirs(k) })
	var found []Key
	var ids, known []string
	for _, k := range list {
		switch {
		case k.ID() == named:
			return k, nil
		case k.Name == named:
			found, ids = append(found, k), append(ids, k.ID())
		}
		if k.Revoked.IsZero() && !k.Fixed {
			known = append(known, k.ID())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Key{}, fault.New(fault.Conflict, "%d keys are called %s", len(found), named).WithHint("name one of them: %s", strings.Join(ids, ", "))
	case len(known) > 0:
		return Key{}, fault.New(fault.NotFound, "no key %s", named).WithHint("there are: %s", strings.Join(known, ", "))
	}
	return Key{}, fault.New(fault.NotFound, "no key %s", named).WithHint("there are none; `luanette key create NAME` makes one")
}

// Revoke revokes the key that its ID or name names, and ends its browser sessions. The key stays
// listed.
func (s *Store) Revoke(ctx context.Context, named string) (Key, error) {
	key, err := s.Find(ctx, named, func(Key) bool { return true })
	if err != nil {
		return key, err
	}
	if key.Fixed {
		return key, fault.New(fault.Conflict, "the key %s comes from the configuration", named).
			WithHint("remove it from luanette.toml or the environment")
	}
	if key.Revoked.IsZero() {
		key.Revoked = s.options.Now().UTC().Truncate(time.Microsecond)
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE token = $1", key.Hash[:]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE access_keys SET revoked = $2, version = version + 1 WHERE hash = $1 AND revoked = 0", key.Hash[:], db.UnixMicro(key.Revoked)); err != nil {
			return err
		}
		return tx.Notify(Topic, key.ID())
	})
	if err == nil {
		err = s.refreshOwn(ctx)
	}
	if err == nil {
		s.publish(ctx, Revoked{Name: key.Name}, key.ID())
	}
	return key, err
}

// refreshOwn reads the keys again after a change by this node.
func (s *Store) refreshOwn(ctx context.Context) error { return s.Refresh(context.WithoutCancel(ctx)) }

// Personal lists the tables with people's keys, and how often they were used.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "access_sessions", Where: "token IN (SELECT hash FROM access_keys WHERE OWNER(owner))", Hidden: []string{"hash", "token"}},
		{Name: "access_use", Where: "OWNER(principal)"},
		{Name: "access_keys", Where: "OWNER(owner)", Hidden: []string{"hash"}},
	}
}
