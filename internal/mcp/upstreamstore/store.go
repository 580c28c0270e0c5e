// Package upstreamstore stores the upstreams that were added to or removed from running
// servers, in addition to those of the configuration. All nodes on a database connect
// accordingly, also after a restart. Settings that may be secret are encrypted.
package upstreamstore

import (
	"context"
	"embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
	"github.com/luanette/luanette/internal/store/sealed"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Topic is the topic on which nodes are notified of changes.
const Topic = "upstreams"

// Entry is one upstream that was added or removed.
type Entry struct {
	Name     string
	Removed  bool              // an upstream was disabled, or one of the configuration was removed
	Settings upstream.Settings // of one that was added
	Guarded  bool              // added by an organisation: never in a private network
	Changed  time.Time
	By       string
	Err      error // set if Settings could not be read
}

// Disabled reports whether it is an upstream that was added, and then disabled.
func (e *Entry) Disabled() bool { return e != nil && e.Removed && e.Settings.URL != "" }

// Store stores the entries in a database.
type Store struct {
	db      *db.DB
	secrets secret.Box
}

// Open migrates the tables and returns the store.
func Open(ctx context.Context, database *db.DB, box secret.Box) (*Store, error) {
	if err := database.Migrate(ctx, "wanted", Migrations); err != nil { // the name from before the package was called upstreamstore
		return nil, err
	}
	return &Store{database, box}, nil
}

const columns = `name, removed, sealed, settings, changed, changed_by`

// scan reads an entry. If its settings cannot be decoded it sets Err.
func (s *Store) scan(row db.Scanner) (*Entry, error) {
	var w Entry
	var sealed bool
	var settings []byte
	var changed int64
	if err := row.Scan(&w.Name, &w.Removed, &sealed, &settings, &changed, &w.By); err != nil {
		return nil, err
	}
	w.Changed = time.UnixMicro(changed).UTC()
	text := json.RawMessage(settings)
	if sealed {
		w.Err = s.secrets.Open(settings, &text, sealedAs, w.Name)
	}
	if w.Err == nil {
		w.Err = w.decode(text)
	}
	return &w, nil
}

// guarded is the key of Entry.Guarded beside those of the settings.
const guarded = "guarded"

// decode reads the settings. What only the configuration may say, such as a command, is refused.
func (e *Entry) decode(text json.RawMessage) error {
	var stored upstream.Change
	if err := json.Unmarshal(text, &stored); err != nil {
		return fault.Wrap(fault.Internal, err, "read the stored upstream %s", e.Name).WithHint("remove it and add it again")
	}
	e.Guarded = string(stored[guarded]) == "true"
	delete(stored, guarded)
	read, _, err := stored.Apply(upstream.Settings{}, nil)
	if err == nil {
		err = read.CheckAdded()
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "read the stored upstream %s", e.Name).WithHint("remove it and add it again")
	}
	e.Settings = read
	return nil
}

// encode is the opposite of decode.
func (e *Entry) encode() (json.RawMessage, error) {
	object := tagged.Object(e.Settings)
	if e.Guarded {
		object[guarded] = true
	}
	return json.Marshal(object)
}

// sealedAs is the purpose that encrypted settings are bound to.
const sealedAs = "upstream"

// All returns all entries, sorted by name.
func (s *Store) All(ctx context.Context) (all []*Entry, err error) {
	all, err = db.Find(ctx, s.db, s.scan, `SELECT `+columns+` FROM wanted_upstreams ORDER BY name`)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the stored upstreams")
	}
	return all, nil
}

// Stamp changes whenever an entry changes.
type Stamp struct{ count, changes int64 }

// Stamp reads the stamp of the stored entries, which costs less than to read them.
func (s *Store) Stamp(ctx context.Context) (stamp Stamp, err error) {
	err = s.db.QueryRow(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(changed % 1000000007), 0) AS BIGINT) FROM wanted_upstreams`).
		Scan(&stamp.count, &stamp.changes)
	return stamp, err
}

// StampOf returns the stamp that the store has while these are its entries.
func StampOf(all []*Entry) (stamp Stamp) {
	for _, entry := range all {
		stamp.count++
		stamp.changes += entry.Changed.UnixMicro() % 1000000007
	}
	return stamp
}

// Change replaces the entry of a name by the result of next and notifies the other
// nodes. A nil entry means that there is none. Change sets By and Changed. It may call
// next again if another node changes the same entry.
func (s *Store) Change(ctx context.Context, name, by string, next func(now *Entry) (*Entry, error)) error {
	return s.change(ctx, name, by, func(_ *db.Tx, now *Entry) (*Entry, error) { return next(now) })
}

// ChangeAmong is Change that also gives next all entries whose names have the same ending,
// in one transaction: several nodes do not exceed a number of them together.
func (s *Store) ChangeAmong(ctx context.Context, name, by, ending string, next func(now *Entry, among []*Entry) (*Entry, error)) error {
	return s.change(ctx, name, by, func(tx *db.Tx, now *Entry) (*Entry, error) {
		among, err := s.find(ctx, tx, `name LIKE '%' || $1`, ending)
		if err != nil {
			return nil, err
		}
		// LIKE of SQLite does not distinguish upper and lower case.
		return next(now, slices.DeleteFunc(among, func(e *Entry) bool { return !strings.HasSuffix(e.Name, ending) }))
	})
}

func (s *Store) find(ctx context.Context, tx *db.Tx, where, value string) ([]*Entry, error) {
	found, err := db.All(ctx, tx, s.scan, `SELECT `+columns+` FROM wanted_upstreams WHERE `+where, value)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the stored upstream %s", value)
	}
	return found, nil
}

func (s *Store) change(ctx context.Context, name, by string, next func(tx *db.Tx, now *Entry) (*Entry, error)) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		found, err := s.find(ctx, tx, `name = $1`, name)
		if err != nil {
			return err
		}
		var now *Entry
		if len(found) > 0 {
			now = found[0]
		}
		want, err := next(tx, now)
		switch {
		case err != nil:
			return err
		case same(now, want):
			return nil
		case want == nil:
			_, err = tx.Exec(ctx, `DELETE FROM wanted_upstreams WHERE name = $1`, name)
		default:
			err = s.write(ctx, tx, *want, name, by)
		}
		if err != nil {
			return err
		}
		return tx.Notify(Topic, name)
	})
}

func same(now, want *Entry) bool {
	if now == nil || want == nil {
		return now == want
	}
	return now.Err == nil && now.Removed == want.Removed && now.Guarded == want.Guarded && tagged.Same(now.Settings, want.Settings, "")
}

func (s *Store) write(ctx context.Context, tx *db.Tx, w Entry, name, by string) error {
	text, err := w.encode()
	if err != nil {
		return err
	}
	settings, sealed := []byte(text), !tagged.Same(w.Settings, w.Settings.Hidden(), "")
	if sealed {
		if settings, err = s.secrets.Seal(text, sealedAs, name); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO wanted_upstreams (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (name) DO UPDATE SET removed = excluded.removed, sealed = excluded.sealed, settings = excluded.settings,
			changed = excluded.changed, changed_by = excluded.changed_by`,
		name, w.Removed, sealed, settings, time.Now().UnixMicro(), by)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "store the upstream %s", name)
	}
	return nil
}

// SameOrigin reports whether two URLs belong to the same server, so that headers for
// one may be sent to the other.
func SameOrigin(a, b string) bool {
	one, err := url.Parse(a)
	if err != nil {
		return false
	}
	other, err := url.Parse(b)
	return err == nil && one.Scheme == other.Scheme && one.Host == other.Host
}

// Personal lists the tables with changes by people, which stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "wanted_upstreams", Where: "changed_by = FULLNAME OR OWNER(changed_by)", Hidden: []string{"settings"}, Set: "changed_by = PSEUDONYM"},
	}
}

// Sealed is the column with the encrypted settings.
func Sealed() sealed.Column {
	return sealed.Column{Table: "wanted_upstreams", Name: "settings", Where: "sealed", Of: []string{"name"}, About: func(of []string) []string {
		return []string{sealedAs, of[0]}
	}}
}
