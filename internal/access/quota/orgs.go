package quota

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// portions is into how many portions what is left of a quota is divided. A node takes one
// at a time, so several nodes exceed no quota, and leave little of it unused: at most this
// part for each node that has nothing more to do.
const portions = 500

// keepDays is how long the use of a day is stored.
const keepDays = 30

// What is counted, a day.
const (
	Calls = "calls" // of upstreams' tools
	Jobs  = "jobs"  // started
)

// nouns are the counted things in error messages.
var nouns = map[string]string{Calls: "tool calls", Jobs: "jobs"}

// Orgs counts what organisations use against their quotas, on all nodes of a database. It
// is safe for concurrent use.
type Orgs struct {
	db     *db.DB
	limits map[string]map[string]int64 // a day, by organisation and what is counted
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
	left  int64
	empty time.Time // when nothing was left of the quota
}

// OpenOrgs opens the quotas of organisations: how many calls and jobs a day each may have.
// Those without a limit, or with zero, are not counted.
func OpenOrgs(ctx context.Context, store *db.DB, limits map[string]map[string]int64, now func() time.Time) (*Orgs, error) {
	if err := store.Migrate(ctx, "quota", migrations); err != nil {
		return nil, err
	}
	return &Orgs{db: store, limits: limits, now: now, leases: map[account]*lease{}}, nil
}

const dayLength = 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64(dayLength.Seconds()) }

func endOf(day int64) time.Time { return time.Unix((day+1)*int64(dayLength.Seconds()), 0).UTC() }

// Spend counts a call of an organisation, or refuses it if none is left for the day.
func (o *Orgs) Spend(ctx context.Context, org string) error {
	a := account{org, Calls}
	most := o.limits[org][Calls]
	if most <= 0 {
		return nil
	}
	now := o.now()
	l := o.lease(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	if today := dayOf(now); l.day != today || l.left == 0 && !l.emptyAt(now) {
		taken, err := o.take(ctx, a, today, most)
		if err != nil {
			return err
		}
		l.day, l.left = today, taken
		if taken == 0 {
			l.empty = now
		}
	}
	if l.left == 0 {
		return a.refusal(most, now)
	}
	l.left--
	return nil
}

// askAgain is how long a node refuses by itself what nothing was left for. Another node may
// have given back a portion meanwhile.
const askAgain = time.Second

func (l *lease) emptyAt(now time.Time) bool {
	return dayOf(l.empty) == dayOf(now) && now.Sub(l.empty) < askAgain
}

func (a account) refusal(most int64, now time.Time) error {
	return principal.Exceeded{What: nouns[a.kind], Of: "the organisation " + a.org, Most: int(most), Per: "day", After: endOf(dayOf(now)).Sub(now)}.Fault()
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
	most, now := o.limits[a.org][Jobs], o.now()
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

// take takes a portion of what is left of a quota.
func (o *Orgs) take(ctx context.Context, a account, day, most int64) (portion int64, err error) {
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		used, err := a.used(ctx, tx, day)
		left := max(most-used, 0)
		portion = min(left, left/portions+1)
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
	if l.left == 0 {
		return nil
	}
	err := o.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE quota_orgs SET used = used - $4 WHERE org = $1 AND kind = $2 AND day = $3", a.org, a.kind, l.day, l.left)
		return err
	})
	l.left = 0
	return err
}

// OrgUsage is how much of its quotas an organisation has used today.
type OrgUsage struct {
	Org    string    `json:"org"`
	Calls  Used      `json:"calls"` // with up to 0.2 % of the limit that each node has taken and not used yet
	Jobs   Used      `json:"jobs"`
	Renews time.Time `json:"renews"`
}

// Used is how much of a quota is used. What has no limit is not counted.
type Used struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit,omitempty"`
}

// Usage returns today's use of an organisation, on all nodes.
func (o *Orgs) Usage(ctx context.Context, org string) (OrgUsage, error) {
	day, limits := dayOf(o.now()), o.limits[org]
	u := OrgUsage{Org: org, Calls: Used{Limit: limits[Calls]}, Jobs: Used{Limit: limits[Jobs]}, Renews: endOf(day)}
	err := o.db.Read(ctx, func(tx *db.Tx) (err error) {
		if u.Calls.Used, err = (account{org, Calls}).used(ctx, tx, day); err == nil {
			u.Jobs.Used, err = account{org, Jobs}.used(ctx, tx, day)
		}
		return err
	})
	return u, err
}

// Routes are the routes of the API.
func (o *Orgs) Routes() []principal.Route {
	return []principal.Route{{Pattern: "GET /api/v1/orgs/{org}/usage", Scope: principal.Org, Handler: http.HandlerFunc(o.serveUsage)}}
}

func (o *Orgs) serveUsage(w http.ResponseWriter, r *http.Request) {
	u, err := o.Usage(r.Context(), r.PathValue("org"))
	if err != nil {
		httpjson.JSON(w, httpjson.StatusOf(err), map[string]any{"error": fault.From(err)})
		return
	}
	httpjson.JSON(w, http.StatusOK, u)
}
