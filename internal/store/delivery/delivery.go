// Package delivery sends webhooks that must arrive. A delivery is stored in the transaction
// of what it tells of (Add), and tried until its receiver accepts it or the tries are used
// up, which takes more than a day: across restarts, and on whichever node (Run).
package delivery

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Personal lists the tables with deliveries.
func Personal() []personal.Table {
	return []personal.Table{{Name: "deliveries", Where: "person = PERSON"}}
}

// Delivery is a webhook that is to be sent.
type Delivery struct {
	ID          string // by which receivers recognise one that comes again
	Kind        string // names its Channel
	Org, Person string // whose it is
	Topic       string // what it is about, by which Forget finds it
	URL         string
	Body        []byte // JSON
}

// Channel is how the deliveries of a kind are sent.
type Channel struct {
	Client *http.Client
	// Secret signs, whsec_ and base64; empty signs nothing. Header has further headers. Only
	// receivers that are Trusted get both, nil means all: what is signed for an address that
	// somebody else chose could be passed on.
	Secret  secret.Text
	Header  http.Header
	Trusted func(to *url.URL) bool
	// Wanted reports whether a delivery is still to be sent; nil means always.
	Wanted func(ctx context.Context, id string) (bool, error)
	// Ready reports whether a delivery may be sent, which a call of Wake announces; nil means
	// always.
	Ready func(id string) bool
}

// State is how far a delivery is.
type State string

const (
	Waiting   State = "waiting"
	Delivered State = "delivered"
	Failed    State = "failed" // all tries, or the receiver answered 410 Gone
)

// Try is one attempt to send a delivery.
type Try struct {
	At     time.Time `json:"at"`
	MS     int64     `json:"ms" doc:"how long it took"`
	Status int       `json:"status,omitempty" doc:"that the receiver answered"`
	Error  string    `json:"error,omitempty"`
}

// Status is what is known of a delivery.
type Status struct {
	ID      string     `json:"id" doc:"the header Webhook-Id"`
	Origin  string     `json:"origin" doc:"of the receiver"`
	Org     string     `json:"org"`
	Person  string     `json:"user_id"`
	State   State      `json:"state" doc:"waiting, delivered or failed"`
	Tries   []Try      `json:"tries"`
	Created time.Time  `json:"created_at"`
	Next    *time.Time `json:"next_at,omitempty" doc:"of the next try"`
	Ended   *time.Time `json:"ended_at,omitempty"`
}

// Pauses are the pauses between tries.
var Pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

// keep is how long a delivery that has ended is kept.
const keep = 7 * 24 * time.Hour

// Options are the options of a Store. The zero value of each field is usable.
type Options struct {
	Log   *slog.Logger
	Clock clock.Clock
}

// Store has the deliveries. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options

	mu       sync.Mutex
	channels map[string]Channel
	sending  map[string]*load   // tries under way, by origin
	wake     context.CancelFunc // ends the pause of Run
}

// Open opens the deliveries of a database and brings its tables up to date.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	s := &Store{db: database, options: o, channels: map[string]Channel{}, sending: map[string]*load{}, wake: func() {}}
	return s, database.Migrate(ctx, "delivery", Migrations)
}

// Register says how the deliveries of a kind are sent. Those of other kinds wait.
func (s *Store) Register(kind string, c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[kind] = c
}

// Add stores a delivery, in place of an earlier one with its ID, from which its receivers tell
// it by the number of the outcome after the ID. Once the transaction is
// committed, Wake sends it at once.
func (s *Store) Add(ctx context.Context, tx *db.Tx, d Delivery) error {
	to, err := url.Parse(d.URL)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "the address of a webhook")
	}
	now := s.now()
	_, err = tx.Exec(ctx, `INSERT INTO deliveries (id, kind, org, person, topic, url, origin, body, state, number, tries, created, next, ended)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', 0, '[]', $9, $9, 0)
		ON CONFLICT (id) DO UPDATE SET url = excluded.url, origin = excluded.origin, body = excluded.body, state = excluded.state,
			number = excluded.number, tries = excluded.tries, created = excluded.created, next = excluded.next, ended = excluded.ended, outcome = deliveries.outcome + 1`,
		d.ID, d.Kind, d.Org, d.Person, d.Topic, d.URL, to.Scheme+"://"+to.Host, d.Body, now.UnixMicro())
	return err
}

const columns = `id, origin, org, person, state, tries, created, next, ended`

func scanStatus(row db.Scanner) (s Status, err error) {
	var tries string
	var next, ended time.Time
	if err := row.Scan(&s.ID, &s.Origin, &s.Org, &s.Person, &s.State, &tries, db.Micros(&s.Created), db.Micros(&next), db.Micros(&ended)); err != nil {
		return s, err
	}
	if !next.IsZero() {
		s.Next = &next
	}
	if !ended.IsZero() {
		s.Ended = &ended
	}
	return s, json.Unmarshal([]byte(tries), &s.Tries)
}

// Get returns the status of a delivery.
func (s *Store) Get(ctx context.Context, id string) (Status, error) {
	status, err := scanStatus(s.db.QueryRow(ctx, `SELECT `+columns+` FROM deliveries WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = noDelivery(id)
	}
	return status, err
}

// List returns the latest deliveries of a kind and an organisation, in a state or, if that is
// empty, in all.
func (s *Store) List(ctx context.Context, kind, org string, state State, limit int) ([]Status, error) {
	return db.Find(ctx, s.db, scanStatus, `SELECT `+columns+` FROM deliveries WHERE kind = $1 AND org = $2 AND ($3 = '' OR state = $3)
		ORDER BY created DESC LIMIT $4`, kind, org, state, limit)
}

// Again sends a delivery that failed, or waits for its next try, now, with all its tries
// before it.
func (s *Store) Again(ctx context.Context, id string) error {
	n, err := s.db.Change(ctx, `UPDATE deliveries SET state = 'waiting', number = 0, next = $2, ended = 0 WHERE id = $1 AND state <> 'delivered'`, id, s.now().UnixMicro())
	if err == nil && n == 0 {
		err = noDelivery(id)
	}
	if err == nil {
		s.Wake()
	}
	return err
}

// Forget removes the deliveries of a person about a topic, or about all if it is nil. What was
// sent cannot be taken back.
func (s *Store) Forget(ctx context.Context, kind, org, person string, topic *string) error {
	return s.db.Exec(ctx, `DELETE FROM deliveries WHERE kind = $1 AND org = $2 AND person = $3 AND topic = coalesce($4, topic)`, kind, org, person, topic)
}

func noDelivery(id string) error {
	return fault.New(fault.NotFound, "%q has no webhook that waits or failed", id)
}

func (s *Store) now() time.Time { return s.options.Clock.Now().UTC() }
