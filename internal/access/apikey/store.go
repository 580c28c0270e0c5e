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
func (r *Store) HasKeys(ctx context.Context) (bool, error) {
	if err := r.renew(ctx); err != nil {
		return true, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys) > 0, nil
}

// Authenticate returns the principal of a token. The error is fault.Denied if the token
// is unknown, expired or revoked.
func (r *Store) Authenticate(ctx context.Context, token string) (principal.Principal, error) {
	return r.find(ctx, HashOf(token))
}

// find looks a hash up. Its timing may reveal something about the hash, but not about
// the token.
func (r *Store) find(ctx context.Context, hash Hash) (principal.Principal, error) {
	if hash == r.options.Owner && hash != (Hash{}) {
		return principal.Local(), nil
	}
	if err := r.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	r.rereadForUnknown(ctx, hash)
	now := r.options.Now()
	r.mu.Lock()
	key := r.keys[hash]
	if key != nil && key.Invalid(now) == "" {
		r.used[key.Hash] = now
	}
	r.mu.Unlock()
	switch {
	case key == nil:
		return principal.Anonymous(), fault.New(fault.Denied, "Invalid API key")
	case key.Invalid(now) != "":
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is %s", key.Name, key.Invalid(now)).
			WithHint("ask for a new one: luanette key create")
	}
	return r.principal(key)
}

// principal returns what a valid key may do now.
func (r *Store) principal(key *Key) (principal.Principal, error) {
	switch p := key.Principal(); {
	case key.Person == "":
		return p, nil
	case r.options.People == nil:
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is of a person, and people cannot sign in here", key.Name).
			WithHint("configure an identity provider: docs/people.md")
	default:
		return r.options.People.Restrict(p, key.Person)
	}
}

// maxUnknownReads is how often per second the table is read again for unknown keys. It
// is enough for keys that another process has just created, and cheap when keys are
// guessed.
const maxUnknownReads = 20

// rereadForUnknown reads the table again for an unknown key.
func (r *Store) rereadForUnknown(ctx context.Context, hash Hash) {
	now := r.options.Now()
	r.mu.Lock()
	known := r.keys[hash] != nil
	if now.Sub(r.unknownReads.since) > time.Second {
		r.unknownReads.since, r.unknownReads.looks = now, 0
	}
	if !known {
		r.unknownReads.looks++
	}
	many := r.unknownReads.looks > maxUnknownReads
	r.mu.Unlock()
	if known || many {
		return
	}
	if err := r.Refresh(ctx); err != nil {
		r.options.Log.WarnContext(ctx, "keys not read for one that is not known", "error", err)
	}
}

// Current returns a stored principal, for which work goes on, with the rights that its key
// has now. If the key is invalid, deleted or has lost the scopes for tools, the error is
// fault.Denied. A principal that is neither a key nor a person is returned unchanged, unless
// its person was blocked.
func (r *Store) Current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	who, err := r.current(ctx, was)
	if err == nil && !who.May(principal.MCP, who.Org) && !who.May(principal.Chat, who.Org) {
		return principal.Anonymous(), fault.New(fault.Denied, "%s may not call tools any more", who.Title()).WithHint("ask an administrator")
	}
	return who, err
}

func (r *Store) current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	if was.ID == "" {
		return principal.Local(), nil
	}
	at, ok := refOf(&was)
	if !ok {
		if r.options.People != nil && isPerson(was.ID) {
			return r.options.People.Current(ctx, was)
		}
		if !was.Expires.IsZero() && was.ID != principal.LocalID {
			was.Expires = time.Time{} // the token was valid when the request came
		}
		if was.IsGuest() {
			if err := r.renew(ctx); err != nil {
				return principal.Anonymous(), err
			}
		}
		return was, r.Check(was)
	}
	if err := r.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	key, err := r.valid(at)
	if err != nil {
		return principal.Anonymous(), err
	}
	who, err := r.principal(key)
	who.Person = was.Person
	return who, err
}

// Check returns an error if the key of an authenticated principal is not valid any more.
// It uses the cached keys, because it runs before every call.
func (r *Store) Check(who principal.Principal) error {
	if at, ok := refOf(&who); ok {
		key, err := r.valid(at)
		if err == nil && key.Person != "" {
			_, err = r.principal(key)
		}
		return err
	}
	if who.IsGuest() && !who.Keyless {
		return r.checkGuests()
	}
	if r.options.People != nil && (isPerson(who.ID) || strings.HasPrefix(who.ID, principal.TokenPrefix)) {
		return r.options.People.Check(who.ID)
	}
	return nil
}

// checkGuests returns an error if guests have no rights any more.
func (r *Store) checkGuests() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.options.NoGuests && len(r.keys) == 0 {
		return nil
	}
	return fault.New(fault.Denied, "guests may not use this server any more: it requires keys").WithHint("start it again with a key")
}

// CheckID is Check for the owner of something that is stored by the ID of a principal.
func (r *Store) CheckID(id string) error { return r.Check(principal.Principal{ID: id}) }

// valid returns a key, if it is valid.
func (r *Store) valid(at ref) (*Key, error) {
	r.mu.Lock()
	key := r.names[at]
	r.mu.Unlock()
	if key == nil {
		return nil, fault.New(fault.Denied, "the key %s was deleted", at.name).WithHint("use another key")
	}
	if over := key.Invalid(r.options.Now()); over != "" {
		return nil, fault.New(fault.Denied, "the key %s is %s", at.name, over).WithHint("use another key")
	}
	return key, nil
}

// renew reads the table again when the cached keys are too old. Callers that come while
// it is being read use the cached keys.
func (r *Store) renew(ctx context.Context) error {
	now := time.Now()
	r.mu.Lock()
	age := now.Sub(r.read)
	r.mu.Unlock()
	if age < r.options.MaxAge {
		return nil
	}
	if !r.reading.TryLock() {
		if age < stale {
			return nil
		}
		r.reading.Lock()
	}
	defer r.reading.Unlock()
	if err := r.reread(context.WithoutCancel(ctx)); err != nil {
		if age < stale {
			r.options.Log.WarnContext(ctx, "keys not read, using those of before", "error", err)
			return nil
		}
		return fault.Wrap(fault.Unavailable, err, "read keys").WithHint("try again when the database is reachable")
	}
	return nil
}

// Refresh reads the table now.
func (r *Store) Refresh(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.reread(ctx)
}

// reread updates the cached keys and calls the watchers if they changed. reading is
// held.
func (r *Store) reread(ctx context.Context) error {
	began := time.Now()
	version, list, err := r.load(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	changed := version != r.version
	if changed {
		r.setKeys(list)
		r.version = version
	}
	r.read = began
	clear(r.sessions) // other nodes may have ended some
	watchers := make([]func(), 0, len(r.watchers))
	for w := range r.watchers {
		watchers = append(watchers, *w)
	}
	r.mu.Unlock()
	if changed {
		for _, notify := range watchers {
			notify()
		}
	}
	return nil
}

// setKeys replaces the cached keys, those of the configuration first; mu is held.
func (r *Store) setKeys(list []Key) {
	r.keys, r.names = make(map[Hash]*Key, len(list)), make(map[ref]*Key, len(list))
	for _, all := range [][]Key{r.options.Fixed, list} {
		for i := range all {
			if k := &all[i]; r.names[k.ref()] == nil && r.keys[k.Hash] == nil {
				r.keys[k.Hash], r.names[k.ref()] = k, k
			}
		}
	}
}

// Watch calls changed after keys were created or revoked, until stop is called.
func (r *Store) Watch(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[&changed] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, &changed)
	}
}
