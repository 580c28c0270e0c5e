// Package apikey keeps the keys that open the doors, and the sessions of browsers
// that were begun with one. Only hashes are kept. Keys come from the configuration
// and from the database, which several nodes may share: each keeps what it has read
// and looks again when it is told of a change, and now and then in any case.
package apikey

import (
	"context"
	"embed"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// fresh is how long what was read is taken for what is, unless Options say
	// otherwise. A key that another process revoked without a word opens doors for
	// no longer.
	fresh = time.Second
	// stale is how long it is used when the database does not answer.
	stale = time.Minute
)

// Topic is where nodes tell each other that keys, or sessions, are others now.
const Topic = "keys"

// Options are a ring's choices. The zero value of each is sensible.
type Options struct {
	Fixed    []Key // those of the configuration
	Bus      *event.Bus
	OnChange func(ctx context.Context, action, name string) // told of keys that were made or revoked; may be nil
	Log      *slog.Logger
	Now      func() time.Time
	// MaxAge is how long what was read is taken for what is though nobody told of a
	// change; a second, which is for processes that cannot tell each other.
	MaxAge time.Duration
}

// Store is all keys. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options

	mu       sync.Mutex // guards what follows
	keys     map[Hash]*Key
	names    map[string]*Key
	version  [2]int64 // of the table: rows, and changes to them
	read     time.Time
	sessions map[Hash]session // those seen lately
	used     map[string]time.Time
	tallies  map[string]*tally
	watchers map[*func()]struct{}
	// strangers are keys nobody knows, for which the table was read since then.
	strangers struct {
		since time.Time
		looks int
	}

	reading sync.Mutex // held while the table is read; before mu
}

// Open makes the tables and reads the keys.
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
	if err := store.Migrate(ctx, "keyring", migrations); err != nil {
		return nil, err
	}
	r := &Store{
		db: store, options: o,
		version:  [2]int64{-1, -1},
		sessions: map[Hash]session{}, used: map[string]time.Time{}, tallies: map[string]*tally{},
		watchers: map[*func()]struct{}{},
	}
	return r, r.Refresh(ctx)
}

// HasKeys tells whether there is a key at all, though it may be over. While there is
// none everything is open, which is meant for a program that only its own machine
// can reach; once there was one, the doors stay shut.
func (r *Store) HasKeys(ctx context.Context) (bool, error) {
	if err := r.renew(ctx); err != nil {
		return true, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys) > 0, nil
}

// Authenticate is who asks with a token. fault.Denied when it is none of ours, or over.
func (r *Store) Authenticate(ctx context.Context, token string) (principal.Principal, error) {
	return r.find(ctx, HashOf(token))
}

// find looks a hash up. That how long it takes may tell something of the hash
// helps nobody: it does not lead back to a token.
func (r *Store) find(ctx context.Context, hash Hash) (principal.Principal, error) {
	if err := r.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	r.meet(ctx, hash)
	now := r.options.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.keys[hash]
	switch {
	case key == nil:
		return principal.Anonymous(), fault.New(fault.Denied, "Invalid API key")
	case key.Invalid(now) != "":
		return principal.Anonymous(), fault.New(fault.Denied, "the key %s is %s", key.Name, key.Invalid(now)).
			WithHint("ask for a new one: luanette key create")
	}
	r.used[key.Name] = now
	return key.Principal(), nil
}

// looks is how often in a second the table is read again for keys we do not know:
// enough for those that another process has just made, and little for those who
// guess.
const looks = 20

// meet reads the table again for a key that we do not know.
func (r *Store) meet(ctx context.Context, hash Hash) {
	now := r.options.Now()
	r.mu.Lock()
	known := r.keys[hash] != nil
	if now.Sub(r.strangers.since) > time.Second {
		r.strangers.since, r.strangers.looks = now, 0
	}
	if !known {
		r.strangers.looks++
	}
	many := r.strangers.looks > looks
	r.mu.Unlock()
	if known || many {
		return
	}
	if err := r.Refresh(ctx); err != nil {
		r.options.Log.WarnContext(ctx, "keys not read for one that is not known", "error", err)
	}
}

// Current is who somebody is now that began something earlier: with the rights
// of its key as it stands today. A key that is over, or gone, is fault.Denied.
// Those who came without a key of ours are as they were.
func (r *Store) Current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	if was.ID == "" {
		return principal.Local(), nil
	}
	name, ok := keyOf(was.ID)
	if !ok {
		if !was.Expires.IsZero() && was.ID != principal.LocalID {
			was.Expires = time.Time{} // a token that was good when it was shown
		}
		return was, nil
	}
	if err := r.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.good(name); err != nil {
		return principal.Anonymous(), err
	}
	return r.names[name].Principal(), nil
}

// Check says why somebody who was let in may not go on; nil while they may. It costs
// little, for it is asked before every call, and goes by what was heard last.
func (r *Store) Check(id string) error {
	name, ok := keyOf(id)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.good(name)
}

// good is the same for a key's name; mu is held.
func (r *Store) good(name string) error {
	key := r.names[name]
	if key == nil {
		return fault.New(fault.Denied, "the key %s is gone", name).WithHint("begin again with another key")
	}
	if over := key.Invalid(r.options.Now()); over != "" {
		return fault.New(fault.Denied, "the key %s is %s", name, over).WithHint("begin again with another key")
	}
	return nil
}

// renew reads the table again when what we know is not fresh. Who comes while
// somebody reads it goes on with what there is.
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
		return fault.Wrap(fault.Unavailable, err, "read keys").WithHint("try again when the database answers")
	}
	return nil
}

// Refresh reads the table now: somebody has changed it.
func (r *Store) Refresh(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.reread(ctx)
}

// reread brings what is known up to date and tells those who watch when that is
// another than before. reading is held.
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
	clear(r.sessions) // cheap to look up again, and some may have been ended elsewhere
	watchers := make([]func(), 0, len(r.watchers))
	for w := range r.watchers {
		watchers = append(watchers, *w)
	}
	r.mu.Unlock()
	if changed {
		for _, tell := range watchers {
			tell()
		}
	}
	return nil
}

// setKeys takes the keys that were read, those of the configuration first. mu is
// held.
func (r *Store) setKeys(list []Key) {
	r.keys, r.names = make(map[Hash]*Key, len(list)), make(map[string]*Key, len(list))
	for _, all := range [][]Key{r.options.Fixed, list} {
		for i := range all {
			if k := &all[i]; r.names[k.Name] == nil && r.keys[k.Hash] == nil {
				r.keys[k.Hash], r.names[k.Name] = k, k
			}
		}
	}
}

// Watch has changed called when keys were made or revoked, until stop is.
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
