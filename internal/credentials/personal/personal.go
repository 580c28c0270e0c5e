// Package personal stores secrets of single principals, such as their API keys for
// upstreams, and says who the owners of such values and of connections are. Values are
// encrypted, and only their names are ever shown.
package personal

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/sealed"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Topic is where nodes notify each other of changes.
const Topic = "personal"

// Limits of values.
const (
	maxValue  = 8 << 10 // bytes
	maxValues = 100     // of one owner
)

// Store stores the values. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	box     secret.Box
	options Options
	manager atomic.Pointer[upstream.Manager]
}

// Options are the options of a Store.
type Options struct {
	Owners Owners
	Key    func() (secret.Text, error) // encrypts the values
	Log    *slog.Logger
}

// Open creates the table.
func Open(ctx context.Context, store *db.DB, o Options) (*Store, error) {
	s := &Store{db: store, box: secret.Box{Key: o.Key, RecoveryHint: "set the values again"}, options: o}
	return s, store.Migrate(ctx, "personal", Migrations)
}

// Follow ends connections of a manager until ctx ends: those of owners whose values change,
// here or on other nodes, and those of owners who are gone when a watch tells of a change.
func (s *Store) Follow(ctx context.Context, manager *upstream.Manager, watches ...func(changed func()) (stop func())) {
	s.manager.Store(manager)
	for _, watch := range watches {
		defer watch(func() { manager.EndPeople(s.options.Owners.Gone) })()
	}
	if err := s.db.Listen(ctx, Topic, func(n db.Notification) { s.changed(n.Payload) }); err != nil && ctx.Err() == nil {
		s.options.Log.WarnContext(ctx, "changes of personal values on other nodes are not noticed", "error", err)
	}
	<-ctx.Done()
}

// changed ends the connections that use former values of an owner.
func (s *Store) changed(owner string) {
	if manager := s.manager.Load(); manager != nil {
		manager.RenewPerson(owner)
	}
}

// Value is a value without its text.
type Value struct {
	Name    string    `json:"name"`
	Updated time.Time `json:"updated"`
}

var validName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Set stores a value of an owner.
func (s *Store) Set(ctx context.Context, org, owner, name, text string) error {
	switch {
	case !validName().MatchString(name):
		return fault.New(fault.InvalidParams, "the name %q", name).WithHint("use up to 64 letters, digits and _, for example GITHUB_TOKEN")
	case text == "" || len(text) > maxValue || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fault.New(fault.InvalidParams, "the value of %s cannot be used", name).WithHint("a value is one line of 1 to %d bytes", maxValue)
	}
	sealed, err := s.box.Seal(text, about(org, owner, name)...)
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var others int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM personal_values WHERE owner = $1 AND name <> $2`, owner, name).Scan(&others); err != nil {
			return err
		}
		if others >= maxValues {
			return fault.New(fault.Limit, "you have %d values, which is the limit", others).WithHint("delete one that is not used any more")
		}
		_, err := tx.Exec(ctx, `INSERT INTO personal_values (owner, name, org, sealed, updated) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (owner, name) DO UPDATE SET org = excluded.org, sealed = excluded.sealed, updated = excluded.updated`,
			owner, name, org, sealed, time.Now().UnixMicro())
		return errors.Join(err, tx.Notify(Topic, owner))
	})
	if err == nil {
		s.changed(owner)
	}
	return err
}

// about is what a sealed value is bound to.
func about(org, owner, name string) []string { return []string{"personal_values", org, owner, name} }

// Get returns a value of an owner; fault.NotFound if there is none.
func (s *Store) Get(ctx context.Context, owner, name string) (secret.Text, error) {
	var org, text string
	var sealed []byte
	err := s.db.QueryRow(ctx, `SELECT org, sealed FROM personal_values WHERE owner = $1 AND name = $2`, owner, name).Scan(&org, &sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return secret.Text{}, unknown(name)
	case err != nil:
		return secret.Text{}, err
	}
	err = s.box.Open(sealed, &text, about(org, owner, name)...)
	return secret.New(text), err
}

func unknown(name string) error { return fault.New(fault.NotFound, "you have no value %s", name) }

// List returns the names of the values of an owner.
func (s *Store) List(ctx context.Context, owner string) (list []Value, err error) {
	return db.Find(ctx, s.db, scan, `SELECT name, updated FROM personal_values WHERE owner = $1 ORDER BY name`, owner)
}

func scan(row db.Scanner) (v Value, err error) {
	var updated int64
	err = row.Scan(&v.Name, &updated)
	v.Updated = time.UnixMicro(updated).UTC()
	return v, err
}

// Delete deletes a value of an owner.
func (s *Store) Delete(ctx context.Context, owner, name string) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM personal_values WHERE owner = $1 AND name = $2`, owner, name)
		if err != nil || n == 0 {
			return cmp.Or(err, unknown(name))
		}
		return tx.Notify(Topic, owner)
	})
	if err == nil {
		s.changed(owner)
	}
	return err
}

// Sealed is the column with the encrypted values.
func Sealed() sealed.Column {
	return sealed.Column{Table: "personal_values", Name: "sealed", Of: []string{"org", "owner", "name"}, About: func(of []string) []string { return about(of[0], of[1], of[2]) }}
}
