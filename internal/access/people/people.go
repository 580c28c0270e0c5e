// Package people stores who may use the server: persons, how providers identify them,
// their roles in organisations, and their browser sessions. A person is found by issuer,
// tenant and subject, never by an email address, which providers let people change and
// reuse.
package people

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Topic is where nodes notify each other of changes.
const Topic = "people"

// Person is somebody who has signed in.
type Person struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Email       string       `json:"email,omitempty"`
	Verified    bool         `json:"email_verified,omitempty"` // by the provider
	Created     time.Time    `json:"created"`
	Seen        time.Time    `json:"seen"` // when they last signed in
	Blocked     time.Time    `json:"blocked,omitzero"`
	Memberships []Membership `json:"memberships"`
}

// Membership is the roles of a person in an organisation; an empty one is the server
// itself.
type Membership struct {
	Org    string   `json:"org"`
	Roles  []string `json:"roles"`
	Source string   `json:"source"` // the provider that gave them, or "admin"
}

// Identity is how a provider identifies a person.
type Identity struct{ Issuer, Tenant, Subject string }

// Options are the options of a Store.
type Options struct {
	Roles Roles // nil: the standard ones
	// Key encrypts the tokens of providers that sessions keep.
	Key func() (secret.Text, error)
	// OnBlock is called in the transaction that blocks a person, to end what else acts for
	// them.
	OnBlock  func(ctx context.Context, tx *db.Tx, person string) error
	Now      func() time.Time
	Log      *slog.Logger
	Interval time.Duration // how often changes of other processes are looked for; zero: a second
}

// Store has all people. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	box     secret.Box
	now     atomic.Pointer[snapshot]

	mu       sync.Mutex
	watchers map[*func()]struct{}
}

// snapshot is the people as they were last read, for checks that run before every call.
type snapshot struct {
	version [2]int64
	people  map[string]Person
	tokens  map[string]error // why tokens of issuers are refused, by the ID of their principal
}

// Open creates the tables and reads the people.
func Open(ctx context.Context, store *db.DB, o Options) (*Store, error) {
	if err := store.Migrate(ctx, "people", Migrations); err != nil {
		return nil, err
	}
	if o.Roles == nil {
		o.Roles = Standard()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	s := &Store{
		db: store, options: o, watchers: map[*func()]struct{}{},
		box: secret.Box{Key: sync.OnceValues(o.Key), RecoveryHint: "sign in again"},
	}
	s.now.Store(&snapshot{version: [2]int64{-1, -1}})
	return s, s.Refresh(ctx)
}

// Run follows changes of other processes until ctx ends, and deletes ended sessions.
func (s *Store) Run(ctx context.Context) {
	s.db.Poll(ctx, Topic, s.options.Interval, s.options.Log, s.Refresh)
}

// Refresh reads the people again if they changed.
func (s *Store) Refresh(ctx context.Context) error {
	before := s.now.Load()
	var fresh snapshot
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		if err := tx.QueryRow(ctx, "SELECT count(*), CAST(coalesce(sum(version), 0) AS BIGINT) FROM people").Scan(&fresh.version[0], &fresh.version[1]); err != nil || fresh.version == before.version {
			return err
		}
		if fresh.people, err = load(ctx, tx); err == nil {
			fresh.tokens, err = refusedTokens(ctx, tx)
		}
		return err
	})
	if err != nil || fresh.version == before.version {
		return err
	}
	s.now.Store(&fresh)
	for _, notify := range s.watching() {
		notify()
	}
	return nil
}

func (s *Store) watching() (list []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		list = append(list, *w)
	}
	return list
}

// Watch calls changed after people changed or sessions ended, until stop is called.
func (s *Store) Watch(changed func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[&changed] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, &changed)
	}
}

// load reads all people.
func load(ctx context.Context, tx *db.Tx) (map[string]Person, error) {
	list, err := db.All(ctx, tx, scan, "SELECT "+columns+" FROM people ORDER BY created, id")
	if err != nil {
		return nil, err
	}
	all := make(map[string]Person, len(list))
	for _, p := range list {
		all[p.ID] = p
	}
	members, err := db.All(ctx, tx, scanMember, "SELECT person, org, roles, source FROM people_members ORDER BY org")
	for _, m := range members {
		if p, ok := all[m.person]; ok {
			p.Memberships = append(p.Memberships, m.Membership)
			all[m.person] = p
		}
	}
	return all, err
}

const columns = "id, name, email, created, seen, blocked, verified"

func scan(row db.Scanner) (p Person, err error) {
	return p, row.Scan(&p.ID, &p.Name, &p.Email, db.Micros(&p.Created), db.Micros(&p.Seen), db.Micros(&p.Blocked), &p.Verified)
}

type member struct {
	person string
	Membership
}

func scanMember(row db.Scanner) (m member, err error) {
	var roles string
	if err := row.Scan(&m.person, &m.Org, &roles, &m.Source); err != nil {
		return m, err
	}
	return m, json.Unmarshal([]byte(roles), &m.Roles)
}

// List returns all people, by age.
func (s *Store) List(ctx context.Context) (list []Person, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		all, err := load(ctx, tx)
		list = nil // the function may run again
		for _, p := range all {
			list = append(list, p)
		}
		return err
	})
	slices.SortFunc(list, func(a, b Person) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return list, err
}

// Known returns a person as they were last read; the zero Person if there is none.
func (s *Store) Known(person string) Person { return s.now.Load().people[person] }

// PersonOf returns the person that a principal is; empty for keys and others.
func PersonOf(p principal.Principal) string {
	person, _, _ := principal.SplitPersonID(p.ID)
	return person
}

// errBlocked refuses a person who may not use the server any more.
func errBlocked(name string) error {
	return fault.New(fault.Denied, "%s may not use this server any more", name).WithHint("ask an administrator")
}

func errNoRole(name string) error {
	return fault.New(fault.Denied, "%s has no role here any more", name).WithHint("ask an administrator")
}

// principal returns what a person may do in an organisation.
func (s *Store) principal(p Person, org string) (principal.Principal, error) {
	if !p.Blocked.IsZero() {
		return principal.Anonymous(), errBlocked(p.Name)
	}
	at := slices.IndexFunc(p.Memberships, func(m Membership) bool { return m.Org == org })
	if at < 0 {
		return principal.Anonymous(), errNoRole(p.Name)
	}
	rights := s.options.Roles.rights(p.Memberships[at].Roles)
	return principal.Principal{
		ID: principal.PersonID(p.ID, org), Name: p.Name, Org: org, User: p.ID,
		Scopes: rights.Scopes, Tools: rights.Tools, Set: rights.Set, Limits: rights.Limits,
	}, nil
}

// Principal returns what a person may do in an organisation now. The error is
// fault.Denied if they may not do anything.
func (s *Store) Principal(ctx context.Context, person, org string) (who principal.Principal, err error) {
	var all map[string]Person
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = one(ctx, tx, person)
		return err
	})
	if err != nil {
		return principal.Anonymous(), err
	}
	p, ok := all[person]
	if !ok {
		return principal.Anonymous(), errUnknown(person)
	}
	return s.principal(p, org)
}

func errUnknown(person string) *fault.Error { return fault.New(fault.Denied, "no person %s", person) }

// one reads one person.
func one(ctx context.Context, tx *db.Tx, person string) (map[string]Person, error) {
	list, err := db.All(ctx, tx, scan, "SELECT "+columns+" FROM people WHERE id = $1", person)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	members, err := db.All(ctx, tx, scanMember, "SELECT person, org, roles, source FROM people_members WHERE person = $1 ORDER BY org", person)
	for _, m := range members {
		list[0].Memberships = append(list[0].Memberships, m.Membership)
	}
	return map[string]Person{person: list[0]}, err
}

// Current returns a stored principal of a person with at most the rights that the person
// has now. The error is fault.Denied if the person may not do anything any more.
func (s *Store) Current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	now, err := s.Principal(ctx, PersonOf(was), was.Org)
	if err != nil {
		return now, err
	}
	now.Scopes, now.Person, now.Grant, now.Client = Limit(was.Scopes, now), was.Person, was.Grant, was.Client
	return now, nil
}

// Restrict returns the person whose key it is, with what the key permits of what the person may
// do now. It uses the people as they were last read, because it runs with every request.
func (s *Store) Restrict(key principal.Principal, person string) (principal.Principal, error) {
	p, ok := s.now.Load().people[person]
	if !ok {
		return principal.Anonymous(), errUnknown(person)
	}
	now, err := s.principal(p, key.Org)
	if err != nil {
		return now, err
	}
	who := now.ByKey(key.Name).InSet(key.Set)
	who.Scopes, who.Namespaces, who.KeyLimits, who.Expires = Limit(key.Scopes, now), key.Namespaces, key.Limits, key.Expires
	switch {
	case key.Set != "" && key.Set != who.Set:
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is for a set of tools that %s may not use", key.Name, p.Name)
	case len(key.Tools) == 0:
	case len(now.Tools) == 0:
		who.Tools = key.Tools
	default:
		who.Tools = slices.DeleteFunc(slices.Clone(key.Tools), func(t string) bool { return !slices.Contains(now.Tools, t) })
		if len(who.Tools) == 0 {
			return principal.Anonymous(), fault.New(fault.Denied, "the key %s is for tools that %s may not use", key.Name, p.Name)
		}
	}
	return who, nil
}

// Check returns an error if the person with a principal's ID was blocked or has no role
// any more, or if a token of an issuer names somebody who was blocked. It uses the people
// as they were last read, because it runs before every call.
func (s *Store) Check(id string) error {
	if strings.HasPrefix(id, principal.TokenPrefix) {
		return s.now.Load().tokens[id]
	}
	person, org, _ := principal.SplitPersonID(id)
	p, ok := s.now.Load().people[person]
	switch {
	case !ok:
		return errUnknown(id)
	case !p.Blocked.IsZero():
		return errBlocked(p.Name)
	case !p.in(org):
		return errNoRole(p.Name)
	}
	return nil
}
