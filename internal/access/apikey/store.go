// Package apikey stores API keys, and the browser sessions that were started with one.
// Only hashes are stored. Keys come from the configuration and from the database, which
// several nodes may share: each caches the keys and reads them again when it is notified
// of a change, and periodically.
package apikey

import (
	"context"
	"embed"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

const (
	// fresh is how long the cached keys are used, unless Options.MaxAge is set. It bounds
	// how long a key works that another process revoked without a notification.
	fresh = time.Second
	// stale is how long they are used while the database is unreachable.
	stale = time.Minute
)

// Topic is where nodes notify each other that keys or sessions have changed.
const Topic = "keys"

// Options are a store's options. The zero value is ready to use.
type Options struct {
	Fixed    []Key // from the configuration
	Owner    Hash  // of the owner's secret, which is no key; zero: there is none
	Bus      *event.Bus
	OnChange func(ctx context.Context, action, name string) // called after a key was created or revoked; may be nil
	People   People                                         // nil: nobody signs in, and keys of people are refused
	NoGuests bool                                           // requests need a key or token although there may be no key
	Log      *slog.Logger
	Now      func() time.Time
	// MaxAge is how long the cached keys are used without a notification of a change. Zero
	// means a second, for processes that cannot notify each other.
	MaxAge time.Duration
}

// People are principals without a key, and own some. All errors are fault.Denied if
// somebody may not do anything any more.
type People interface {
	// Restrict limits a key to what its person may do now.
	Restrict(key principal.Principal, person string) (principal.Principal, error)
	// Current returns a stored principal with the rights of now.
	Current(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Check checks the ID of a principal. It is fast, and may be late by a second.
	Check(id string) error
}

// isPerson reports whether a principal's ID is that of a person.
func isPerson(id string) bool { return strings.HasPrefix(id, principal.PersonPrefix) }

// Store has all keys. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options

	mu       sync.Mutex // guards what follows
	keys     map[Hash]*Key
	names    map[ref]*Key
	version  [2]int64 // of the table: its rows, and the changes to them
	read     time.Time
	sessions map[Hash]session // used recently
	used     map[Hash]time.Time
	tallies  map[string]*tally
	watchers map[*func()]struct{}
	// unknownReads counts unknown keys for which the table was read in the current
	// second.
	unknownReads struct {
		since time.Time
		looks int
	}

	reading sync.Mutex // held while the table is read; before mu
}

// Open creates the tables and reads the keys.
func Open(ctx context.Context, store *db.DB, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxAge <= 0 {
		o.MaxAge = fresh
	}
	if err := store.Migrate(ctx, "keyring", Migrations); err != nil {
		return nil, err
	}
	r := &Store{
		db: store, options: o,
		version:  [2]int64{-1, -1},
		sessions: map[Hash]session{}, used: map[Hash]time.Time{}, tallies: map[string]*tally{},
		watchers: map[*func()]struct{}{},
	}
	return r, r.Refresh(ctx)
}

// HasKeys reports whether any key exists, valid or not. Without keys no authentication
// is needed, which is meant for a server that only its own machine can reach. Once a
// key was created, authentication stays on, even if all keys are revoked.
func (s *Store) HasKeys(ctx context.Context) (bool, error) {
	if err := s.renew(ctx); err != nil {
		return true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) > 0, nil
}

// Authenticate returns the principal of a token. The error is fault.Denied if the token
// is unknown, expired or revoked.
func (s *Store) Authenticate(ctx context.Context, token string) (principal.Principal, error) {
	return s.find(ctx, HashOf(token))
}

// find looks a hash up. Its timing may reveal something about the hash, but not about
// the token.
func (s *Store) find(ctx context.Context, hash Hash) (principal.Principal, error) {
	if hash == s.options.Owner && hash != (Hash{}) {
		return principal.Local(), nil
	}
	if err := s.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	s.rereadForUnknown(ctx, hash)
	now := s.options.Now()
	s.mu.Lock()
	key := s.keys[hash]
	if key != nil && key.Invalid(now) == "" {
		s.used[key.Hash] = now
	}
	s.mu.Unlock()
	switch {
	case key == nil:
		return principal.Anonymous(), fault.New(fault.Denied, "Invalid API key")
	case key.Invalid(now) != "":
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is %s", key.Name, key.Invalid(now)).
			WithHint("ask for a new one: luanette key create")
	}
	return s.principal(key)
}

// principal returns what a valid key may do now.
func (s *Store) principal(key *Key) (principal.Principal, error) {
	switch p := key.Principal(); {
	case key.Person == "":
		return p, nil
	case s.options.People == nil:
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is of a person, and people cannot sign in here", key.Name).
			WithHint("configure an identity provider: docs/people.md")
	default:
		return s.options.People.Restrict(p, key.Person)
	}
}

// maxUnknownReads is how often per second the table is read again for unknown keys. It
// is enough for keys that another process has just created, and cheap when keys are
// guessed.
const maxUnknownReads = 20

// rereadForUnknown reads the table again for an unknown key.
func (s *Store) rereadForUnknown(ctx context.Context, hash Hash) {
	now := s.options.Now()
	s.mu.Lock()
	known := s.keys[hash] != nil
	if now.Sub(s.unknownReads.since) > time.Second {
		s.unknownReads.since, s.unknownReads.looks = now, 0
	}
	if !known {
		s.unknownReads.looks++
	}
	many := s.unknownReads.looks > maxUnknownReads
	s.mu.Unlock()
	if known || many {
		return
	}
	if err := s.Refresh(ctx); err != nil {
		s.options.Log.WarnContext(ctx, "keys not read for one that is not known", "error", err)
	}
}

// Current returns a stored principal, for which work goes on, with the rights that its key
// has now. If the key is invalid, deleted or has lost the scopes for tools, the error is
// fault.Denied. A principal that is neither a key nor a person is returned unchanged, unless
// its person was blocked.
func (s *Store) Current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	who, err := s.current(ctx, was)
	who = who.InSet(was.Set)
	if err == nil && !who.May(principal.MCP, who.Org) && !who.May(principal.Chat, who.Org) {
		return principal.Anonymous(), fault.New(fault.Denied, "%s may not call tools any more", who.Title()).WithHint("ask an administrator")
	}
	return who, err
}

func (s *Store) current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	if was.ID == "" {
		return principal.Local(), nil
	}
	at, ok := refOf(&was)
	if !ok {
		if s.options.People != nil && isPerson(was.ID) {
			return s.options.People.Current(ctx, was)
		}
		if !was.Expires.IsZero() && was.ID != principal.LocalID {
			was.Expires = time.Time{} // the token was valid when the request came
		}
		if was.IsGuest() {
			if err := s.renew(ctx); err != nil {
				return principal.Anonymous(), err
			}
		}
		return was, s.Check(was)
	}
	if err := s.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	key, err := s.valid(at)
	if err != nil {
		return principal.Anonymous(), err
	}
	who, err := s.principal(key)
	who.Person = was.Person
	return who, err
}

// Check returns an error if the key of an authenticated principal is not valid any more.
// It uses the cached keys, because it runs before every call.
func (s *Store) Check(who principal.Principal) error {
	if at, ok := refOf(&who); ok {
		key, err := s.valid(at)
		if err == nil && key.Person != "" {
			_, err = s.principal(key)
		}
		return err
	}
	if who.IsGuest() && !who.Keyless {
		return s.checkGuests()
	}
	if s.options.People != nil && (isPerson(who.ID) || strings.HasPrefix(who.ID, principal.TokenPrefix)) {
		return s.options.People.Check(who.ID)
	}
	return nil
}

// checkGuests returns an error if guests have no rights any more.
func (s *Store) checkGuests() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.options.NoGuests && len(s.keys) == 0 {
		return nil
	}
	return fault.New(fault.Denied, "guests may not use this server any more: it requires keys").WithHint("start it again with a key")
}

// CheckID is Check for the owner of something that is stored by the ID of a principal.
func (s *Store) CheckID(id string) error { return s.Check(principal.Principal{ID: id}) }

// valid returns a key, if it is valid.
func (s *Store) valid(at ref) (*Key, error) {
	s.mu.Lock()
	key := s.names[at]
	s.mu.Unlock()
	if key == nil {
		return nil, fault.New(fault.Denied, "the key %s was deleted", at.name).WithHint("use another key")
	}
	if over := key.Invalid(s.options.Now()); over != "" {
		return nil, fault.New(fault.Denied, "the key %s is %s", at.name, over).WithHint("use another key")
	}
	return key, nil
}

// renew reads the table again when the cached keys are too old. Callers that come while
// it is being read use the cached keys.
func (s *Store) renew(ctx context.Context) error {
	now := time.Now()
	s.mu.Lock()
	age := now.Sub(s.read)
	s.mu.Unlock()
	if age < s.options.MaxAge {
		return nil
	}
	if !s.reading.TryLock() {
		if age < stale {
			return nil
		}
		s.reading.Lock()
	}
	defer s.reading.Unlock()
	if err := s.reread(context.WithoutCancel(ctx)); err != nil {
		if age < stale {
			s.options.Log.WarnContext(ctx, "keys not read, using those of before", "error", err)
			return nil
		}
		return fault.Wrap(fault.Unavailable, err, "read keys").WithHint("try again when the database is reachable")
	}
	return nil
}

// Refresh reads the table now.
func (s *Store) Refresh(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.reread(ctx)
}

// reread updates the cached keys and calls the watchers if they changed. reading is
// held.
func (s *Store) reread(ctx context.Context) error {
	began := time.Now()
	version, list, err := s.load(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	changed := version != s.version
	if changed {
		s.setKeys(list)
		s.version = version
	}
	s.read = began
	clear(s.sessions) // other nodes may have ended some
	watchers := make([]func(), 0, len(s.watchers))
	for w := range s.watchers {
		watchers = append(watchers, *w)
	}
	s.mu.Unlock()
	if changed {
		for _, notify := range watchers {
			notify()
		}
	}
	return nil
}

// setKeys replaces the cached keys, those of the configuration first; mu is held.
func (s *Store) setKeys(list []Key) {
	s.keys, s.names = make(map[Hash]*Key, len(list)), make(map[ref]*Key, len(list))
	for _, all := range [][]Key{s.options.Fixed, list} {
		for i := range all {
			if k := &all[i]; s.names[k.ref()] == nil && s.keys[k.Hash] == nil {
				s.keys[k.Hash], s.names[k.ref()] = k, k
			}
		}
	}
}

// Watch calls changed after keys were created or revoked, until stop is called.
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
