package quota

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// portions is into how many portions what is left of a quota is divided. A node takes one
// at a time, so several nodes exceed no quota, and leave little of it unused: at most this
// part for each node that has nothing more to do.
const portions = 500

// keepDays is how long the use of a day is stored.
const keepDays = 30

// What is counted, a day.
const (
	Calls = "calls"       // of upstreams' tools
	Jobs  = "jobs"        // started
	CPU   = "cpu_seconds" // of scripts; counted in nanoseconds
)

// Storage is the quota of what is stored, which is counted where it is stored.
const Storage = "storage_mb"

// nouns are the counted things in error messages.
var nouns = map[string]string{Calls: "tool calls", Jobs: "jobs", CPU: "CPU seconds of scripts"}

// Limits are how much of what organisations may use a day, by their names and what is
// counted. Zero is no limit.
type Limits = map[string]map[string]int64

// Orgs counts what organisations use against their quotas, on all nodes of a database. It
// is safe for concurrent use.
type Orgs struct {
	// Stored returns how much an organisation stores, with its quota; nil if that is not
	// counted.
	Stored func(ctx context.Context, org string) (*Used, error)

	db     *db.DB
	limits atomic.Pointer[Limits]
	now    func() time.Time

	mu     sync.Mutex
	leases map[account]*lease
}

// account is one thing that is counted for an organisation.
type account struct{ org, kind string }

// lease is what this node has taken of a quota and not used yet.
type lease struct {
	mu    sync.Mutex
	day   int64
	left  int64     // negative if more was used than taken
	empty time.Time // when nothing was left of the quota
}

// OpenOrgs opens the quotas of organisations. What has no limit is not counted.
func OpenOrgs(ctx context.Context, store *db.DB, limits Limits, now func() time.Time) (*Orgs, error) {
	if err := store.Migrate(ctx, "quota", Migrations); err != nil {
		return nil, err
	}
	o := &Orgs{db: store, now: now, leases: map[account]*lease{}}
	o.limits.Store(&limits)
	return o, nil
}

// Set changes the quotas. What was used today stays counted.
func (o *Orgs) Set(ctx context.Context, limits Limits) error {
	o.limits.Store(&limits)
	return o.Close(ctx) // the next use takes a portion of what is left now
}

// most is how much of a thing an organisation may use a day; 0 is no limit.
func (o *Orgs) most(a account) int64 {
	return min((*o.limits.Load())[a.org][a.kind], math.MaxInt64/a.unit()) * a.unit()
}

// StorageLimit returns how many MiB an organisation may store; 0 is no limit.
func (o *Orgs) StorageLimit(org string) int64 { return (*o.limits.Load())[org][Storage] }

const dayLength = 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64(dayLength.Seconds()) }

func endOf(day int64) time.Time { return time.Unix((day+1)*int64(dayLength.Seconds()), 0).UTC() }

// Spend counts a call of an organisation, or refuses it if none is left for the day.
func (o *Orgs) Spend(ctx context.Context, org string) error {
	a := account{org, Calls}
	most := o.most(a)
	if most <= 0 {
		return nil
	}
	l, now := o.lease(a), o.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := o.fill(ctx, a, l, now, most, 1); err != nil {
		return err
	}
	l.left--
	return nil
}

// Unspend takes back that a call was counted.
func (o *Orgs) Unspend(org string) {
	a := account{org, Calls}
	if o.most(a) <= 0 {
		return
	}
	l, today := o.lease(a), dayOf(o.now())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.day == today { // else it was a call of yesterday
		l.left++
	}
}

// fill makes a node have something left of a quota: if it has nothing, it takes a portion,
// of at least a size. The error refuses what was asked for. l.mu is held.
func (o *Orgs) fill(ctx context.Context, a account, l *lease, now time.Time, most, least int64) error {
	if today := dayOf(now); l.day != today || l.left <= 0 && !l.emptyAt(now) {
		if l.day != today {
			l.day, l.left = today, 0
		}
		taken, err := o.take(ctx, a, today, most, least-l.left)
		if err != nil {
			return err
		}
		l.left += taken
		if l.left <= 0 {
			l.empty = now
		}
	}
	if l.left <= 0 {
		return a.refusal(most, now)
	}
	return nil
}

// askAgain is how long a node refuses by itself what nothing was left for. Another node may
// have given back a portion meanwhile.
const askAgain = time.Second

func (l *lease) emptyAt(now time.Time) bool {
	return dayOf(l.empty) == dayOf(now) && now.Sub(l.empty) < askAgain
}

func (a account) refusal(most int64, now time.Time) error {
	return principal.Exceeded{What: nouns[a.kind], Of: "the organisation " + a.org, Most: int(most / a.unit()), Per: "day", After: endOf(dayOf(now)).Sub(now)}.Fault()
}

func (o *Orgs) lease(a account) *lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.leases[a]
	if l == nil {
		l = &lease{}
		o.leases[a] = l
	}
	return l
}

// SpendJob counts a job of the caller's organisation in the transaction that stores it, or
// refuses it if none is left for the day. It is exact on all nodes.
func (o *Orgs) SpendJob(ctx context.Context, tx *db.Tx) error {
	a := account{principal.Of(ctx).ActingOrg(), Jobs}
	most, now := o.most(a), o.now()
	if a.org == "" || most <= 0 {
		return nil
	}
	used, err := a.used(ctx, tx, dayOf(now))
	if err != nil {
		return err
	}
	if used >= most {
		return a.refusal(most, now)
	}
	return a.add(ctx, tx, dayOf(now), 1)
}

// take takes a portion of what is left of a quota, of at least a size as long as there is
// so much.
func (o *Orgs) take(ctx context.Context, a account, day, most, least int64) (portion int64, err error) {
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		used, err := a.used(ctx, tx, day)
		left := max(most-used, 0)
		portion = min(left, left/portions+least)
		if err != nil || portion == 0 {
			return err
		}
		return a.add(ctx, tx, day, portion)
	})
	return portion, err
}

// used returns what is stored of a day.
func (a account) used(ctx context.Context, tx *db.Tx, day int64) (used int64, err error) {
	err = tx.QueryRow(ctx, "SELECT used FROM quota_orgs WHERE org = $1 AND kind = $2 AND day = $3", a.org, a.kind, day).Scan(&used)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return used, err
}

// add stores that more was used, and with the first use of a day forgets days long ago.
func (a account) add(ctx context.Context, tx *db.Tx, day, more int64) error {
	var used int64
	err := tx.QueryRow(ctx, `INSERT INTO quota_orgs (org, kind, day, used) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org, kind, day) DO UPDATE SET used = quota_orgs.used + excluded.used RETURNING used`, a.org, a.kind, day, more).Scan(&used)
	if err == nil && used == more {
		_, err = tx.Exec(ctx, "DELETE FROM quota_orgs WHERE org = $1 AND kind = $2 AND day < $3", a.org, a.kind, day-keepDays)
	}
	return err
}

// Run waits until ctx ends, and then gives back what this node has not used.
func (o *Orgs) Run(ctx context.Context) {
	<-ctx.Done()
	_ = o.Close(context.WithoutCancel(ctx)) // an error loses a small part of a day's quota
}

// Close gives back what this node has taken and not used.
func (o *Orgs) Close(ctx context.Context) error {
	o.mu.Lock()
	leases := maps.Clone(o.leases)
	o.mu.Unlock()
	var failed error
	for a, l := range leases {
		failed = errors.Join(failed, o.giveBack(ctx, a, l))
	}
	return failed
}

func (o *Orgs) giveBack(ctx context.Context, a account, l *lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.empty = time.Time{}
	if l.left == 0 {
		return nil
	}
	err := o.db.Exec(ctx, "UPDATE quota_orgs SET used = used - $4 WHERE org = $1 AND kind = $2 AND day = $3", a.org, a.kind, l.day, l.left)
	l.left = 0
	return err
}
