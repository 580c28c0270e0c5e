// Package upstreamstore keeps which upstreams people want beside those that the
// configuration names, and which of those they do not want: all nodes on a database
// bring their connections in line with it, and a restart forgets none of it. What
// may be secret of a server is encrypted.
package upstreamstore

import (
	"context"
	"embed"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Topic is where nodes tell each other that another upstream is wanted.
const Topic = "upstreams"

// Server is an upstream that was added while a node ran: reached over the network,
// never a command.
type Server struct {
	URL           string            `json:"url"`
	Transport     string            `json:"transport,omitempty"`
	Protocol      string            `json:"protocol,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Expose        []string          `json:"expose,omitempty"`
	AllowedTools  []string          `json:"allowed_tools,omitempty"`
	DisabledTools []string          `json:"disabled_tools,omitempty"`
	ReadOnly      bool              `json:"read_only,omitempty"`
	Timeout       time.Duration     `json:"timeout_ns,omitempty"`
}

// Equal tells whether nothing differs.
func (s Server) Equal(other Server) bool {
	return s.URL == other.URL && s.Transport == other.Transport && s.Protocol == other.Protocol && maps.Equal(s.Headers, other.Headers) &&
		slices.Equal(s.Expose, other.Expose) && slices.Equal(s.AllowedTools, other.AllowedTools) && slices.Equal(s.DisabledTools, other.DisabledTools) &&
		s.ReadOnly == other.ReadOnly && s.Timeout == other.Timeout
}

// Entry is what somebody wants of one upstream.
type Entry struct {
	Name    string
	Removed bool   // it is in the configuration, and not wanted
	Server  Server // what is wanted, when it is
	Changed time.Time
	By      string
	Err     error // why Server could not be read
}

// Store is the wishes of a database.
type Store struct {
	db      *db.DB
	secrets secret.Box
}

// Open brings the tables up to date.
func Open(ctx context.Context, database *db.DB, box secret.Box) (*Store, error) {
	if err := database.Migrate(ctx, "wanted", migrations); err != nil {
		return nil, err
	}
	return &Store{database, box}, nil
}

const columns = `name, removed, sealed, settings, changed, changed_by`

// scan reads a wish. One whose server cannot be read is there all the same.
func (s *Store) scan(row db.Scanner) (*Entry, error) {
	var w Entry
	var sealed bool
	var settings []byte
	var changed int64
	if err := row.Scan(&w.Name, &w.Removed, &sealed, &settings, &changed, &w.By); err != nil {
		return nil, err
	}
	w.Changed = time.UnixMicro(changed).UTC()
	if sealed {
		w.Err = s.secrets.Open(settings, &w.Server, sealedAs, w.Name)
	} else {
		w.Err = json.Unmarshal(settings, &w.Server)
	}
	return &w, nil
}

// sealedAs is what settings are sealed as.
const sealedAs = "upstream"

// All is every wish, sorted by name.
func (s *Store) All(ctx context.Context) (all []*Entry, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(ctx, tx, s.scan, `SELECT `+columns+` FROM wanted_upstreams ORDER BY name`)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read which upstreams are wanted")
	}
	return all, nil
}

// Fingerprint is another whenever a wish is.
func (s *Store) Fingerprint(ctx context.Context) (stamp [2]int64, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(changed % 1000000007), 0) AS BIGINT) FROM wanted_upstreams`).Scan(&stamp[0], &stamp[1])
	})
	return stamp, err
}

// Change makes of what is wanted under a name, nil for nothing, what next says, and
// tells the other nodes. By and Changed are seen to here. Next may be asked again
// when another node changes the same.
func (s *Store) Change(ctx context.Context, name, by string, next func(now *Entry) (*Entry, error)) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		found, err := db.All(ctx, tx, s.scan, `SELECT `+columns+` FROM wanted_upstreams WHERE name = $1`, name)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "read what is wanted of %s", name)
		}
		var now *Entry
		if len(found) > 0 {
			now = found[0]
		}
		want, err := next(now)
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
	return now.Err == nil && now.Removed == want.Removed && now.Server.Equal(want.Server)
}

func (s *Store) write(ctx context.Context, tx *db.Tx, w Entry, name, by string) error {
	settings, err := json.Marshal(w.Server)
	sealed := w.Server.secret()
	if sealed {
		settings, err = s.secrets.Seal(w.Server, sealedAs, name)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO wanted_upstreams (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (name) DO UPDATE SET removed = excluded.removed, sealed = excluded.sealed, settings = excluded.settings,
			changed = excluded.changed, changed_by = excluded.changed_by`,
		name, w.Removed, sealed, settings, time.Now().UnixMicro(), by)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "keep what is wanted of %s", name)
	}
	return nil
}
