// Package share stores what owners share with others of their organisation, and tells
// what somebody may do with a thing of somebody else. A share never gives the rights or
// logins of the owner: whoever uses a shared thing acts as themselves.
package share

import (
	"cmp"
	"context"
	"embed"
	"log/slog"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Finder finds a thing by the name that the caller has for it, whoever owns it. The error
// is fault.NotFound if there is none.
type Finder func(ctx context.Context, id string) (principal.Thing, error)

// Options are the options of a Store.
type Options struct {
	People *people.Store // nil if nobody can sign in
	Events *event.Bus    // may be nil
	Clock  clock.Clock   // nil: the machine's
	Log    *slog.Logger
}

// Store stores the shares. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	finders map[principal.Kind]Finder
}

// Open creates the table.
func Open(ctx context.Context, store *db.DB, o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{store, o, map[principal.Kind]Finder{}}, store.Migrate(ctx, "share", Migrations)
}

// Register lets things of a kind be shared. It must be called before the routes are served.
func (s *Store) Register(kind principal.Kind, find Finder) { s.finders[kind] = find }

// Share is what a recipient may do with a thing.
type Share struct {
	ID      string          `json:"id"`
	Kind    principal.Kind  `json:"kind"`
	Thing   string          `json:"thing"`
	Title   string          `json:"title,omitempty"` // of the thing
	To      string          `json:"to"`              // person:ID, role:NAME or org
	ToName  string          `json:"to_name"`
	May     principal.Level `json:"may"`
	Owner   string          `json:"owner"` // name of whose thing it is
	By      string          `json:"by"`    // name of who shares it
	Created time.Time       `json:"created"`

	org, owner, maker string
	name              string // of the thing in the table
}

const columns = "id, org, kind, thing, recipient, may, owner, maker, created"

// scan reads a share, with the names of today.
func (s *Store) scan(row db.Scanner) (one Share, err error) {
	var created int64
	err = row.Scan(&one.ID, &one.org, &one.Kind, &one.name, &one.To, &one.May, &one.owner, &one.maker, &created)
	one.Created = time.UnixMicro(created).UTC()
	if one.Thing = one.name; one.Kind == principal.Artifact {
		one.Thing, _, _ = strings.Cut(one.name, " ") // the hash, without whose artifact it is
	}
	one.ToName, one.Owner, one.By = s.recipientName(one.To, one.org), s.NameOf(one.owner), s.NameOf(one.maker)
	return one, err
}

// list reads the shares that a condition selects, the oldest first.
func (s *Store) list(ctx context.Context, where string, args ...any) (list []Share, err error) {
	return db.Find(ctx, s.db, s.scan, "SELECT "+columns+" FROM shares WHERE "+where+" ORDER BY created, id", args...)
}

// orgOf returns the organisation in which the things of an owner can be shared. That of a
// person is part of their ID; in chats people without one have a default.
func orgOf(o principal.Owner) string {
	if _, org, ok := principal.SplitPersonID(o.ID); ok {
		return org
	}
	return o.Org
}

// owns reports whether p is the owner of a thing itself.
func owns(p principal.Principal, kind principal.Kind, o principal.Owner) bool {
	org := orgOf(o)
	if kind == principal.Conversation {
		return chatsAs(p, o.ID, org)
	}
	return p.ID == cmp.Or(o.ID, principal.LocalID) && (p.Person == "" || p.Person == o.Person) && (p.Org == "" || org == "" || p.Org == org)
}

// chatsAs reports whether p chats as the owner of a conversation: the person, one of the
// person's keys, or a key that chats for everybody. Nobody else shares it, not even an
// administrator: they could read it then.
func chatsAs(p principal.Principal, owner, org string) bool {
	return p.Person == "" && p.May(principal.Chat, org) && (p.Org == "" || p.Org == org) && (p.User == "" || principal.PersonID(p.User, org) == owner)
}

// administers reports whether p is an administrator of an organisation, or of the server.
func administers(p principal.Principal, org string) bool {
	return p.Person == "" && (p.Admin() || p.Org != "" && p.Org == org && p.May(principal.Org, org))
}
