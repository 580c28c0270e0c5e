package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

const columns = `id, run, owner, name, hash, language, subject, space, state, plan, digests, certain, complete, output, kept, outcome, created, expires, decided, decided_by`

func scan(row db.Scanner) (a Approval, err error) {
	var plan, output, outcome []byte
	var digests string
	var created, expires, decided int64
	err = row.Scan(&a.ID, &a.Key, &a.Owner, &a.Name, &a.Hash, &a.Language, &a.Subject, &a.Space, &a.State, &plan, &digests, &a.Certain, &a.Complete,
		&output, &a.Resume, &outcome, &created, &expires, &decided, &a.By)
	if err != nil {
		return a, err
	}
	a.Created, a.Expires, a.Outcome = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC(), outcome
	if decided != 0 {
		a.Decided = time.UnixMicro(decided).UTC()
	}
	if err := json.Unmarshal(plan, &a.Plan); err != nil {
		return a, err
	}
	for i, digest := range strings.Fields(digests) {
		if i < len(a.Plan) {
			a.Plan[i].Digest = digest
		}
	}
	if len(output) > 0 {
		err = json.Unmarshal(output, &a.Output)
	}
	return a, err
}

// insert stores a request. If the run already has a pending one, insert returns that
// instead.
func (o *Store) insert(ctx context.Context, a Approval) (before *Approval, err error) {
	plan, err := json.Marshal(append([]host.Planned{}, a.Plan...))
	if err != nil {
		return nil, err
	}
	output, err := json.Marshal(append([]host.OutputLine{}, a.Output...))
	if err != nil {
		return nil, err
	}
	digests := make([]string, len(a.Plan))
	for i, p := range a.Plan {
		digests[i] = p.Digest
	}
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		before = nil
		found, err := scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state = 'pending'`, a.Key))
		if err == nil {
			before = &found
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO approvals (`+columns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, NULL, $16, $17, 0, '')`,
			a.ID, a.Key, a.Owner, a.Name, a.Hash, a.Language, a.Subject, a.Space, a.State, plan, strings.Join(digests, " "), a.Certain, a.Complete,
			output, a.Resume, a.Created.UnixMicro(), a.Expires.UnixMicro())
		return err
	})
	return before, err
}

// settle stores a decision, and the rule that it creates, if any. It reports whether
// the request was still pending. The run continues in the process that stored the
// decision.
func (o *Store) settle(ctx context.Context, a *Approval, r *Rule) (done bool, err error) {
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `UPDATE approvals SET state = $2, decided = $3, decided_by = $4, carrier = $5, carried = $6 WHERE id = $1 AND state = 'pending'`,
			a.ID, a.State, a.Decided.UnixMicro(), a.By, o.process, a.Decided.Add(lease).UnixMicro())
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if done = n > 0; err != nil || !done {
			return err
		}
		if err := tx.Notify(Topic, a.ID); err != nil || r == nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO approval_rules (id, scope, subject, allow, created, made_by) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (scope, subject) DO UPDATE SET allow = excluded.allow, created = excluded.created, made_by = excluded.made_by`,
			r.ID, r.Scope, r.Subject, r.Allow, a.Decided.UnixMicro(), r.By)
		return err
	})
	return done, err
}

func (o *Store) withdraw(ctx context.Context, run string) ([]Approval, error) {
	return o.change(ctx, `UPDATE approvals SET state = 'withdrawn', decided = $2 WHERE run = $1 AND state = 'pending' RETURNING `+columns, run, o.now().UnixMicro())
}

// expire denies the requests whose time is over, and deletes old decisions.
func (o *Store) expire(ctx context.Context, now time.Time) (over []Approval, err error) {
	pending, old := 0, 0
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(CASE WHEN state = 'pending' AND expires <= $1 THEN 1 END), count(CASE WHEN decided > 0 AND decided <= $2 THEN 1 END)
			FROM approvals`, now.UnixMicro(), now.Add(-o.options.Keep).UnixMicro()).Scan(&pending, &old)
	})
	if err != nil || pending+old == 0 {
		return nil, err
	}
	if old > 0 {
		err = o.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM approvals WHERE decided > 0 AND decided <= $1`, now.Add(-o.options.Keep).UnixMicro())
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return o.change(ctx, `UPDATE approvals SET state = 'denied', decided = $1, decided_by = 'timeout' WHERE state = 'pending' AND expires <= $1 RETURNING `+columns, now.UnixMicro())
}

func (o *Store) change(ctx context.Context, query string, args ...any) (changed []Approval, err error) {
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		changed, err = db.All(ctx, tx, scan, query, args...)
		if err != nil || len(changed) == 0 {
			return err
		}
		return tx.Notify(Topic, "")
	})
	return changed, err
}

// decidedElsewhere returns the approvals that callers of this process wait for and
// that are no longer pending.
func (o *Store) decidedElsewhere(ctx context.Context) (decided []Approval, err error) {
	o.mu.Lock()
	ids := make([]string, 0, len(o.waiting))
	for id := range o.waiting {
		ids = append(ids, id)
	}
	o.mu.Unlock()
	if len(ids) == 0 {
		return nil, nil
	}
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		still, err := db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) },
			`SELECT id FROM approvals WHERE state = 'pending'`)
		if err != nil {
			return err
		}
		decided = nil
		for _, id := range without(ids, still) {
			a, err := scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE id = $1`, id))
			if errors.Is(err, sql.ErrNoRows) {
				a, err = Approval{ID: id, State: Withdrawn}, nil
			}
			if err != nil {
				return err
			}
			decided = append(decided, a)
		}
		return nil
	})
	return decided, err
}

func without(all, some []string) (rest []string) {
	out := make(map[string]bool, len(some))
	for _, one := range some {
		out[one] = true
	}
	for _, one := range all {
		if !out[one] {
			rest = append(rest, one)
		}
	}
	return rest
}

func (o *Store) load(ctx context.Context, id string) (a Approval, err error) {
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		a, err = scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE id = $1`, id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return a, fault.New(fault.NotFound, "no approval %s", id).WithHint("approval_list lists the approvals")
	}
	return a, err
}

// shown reports whether the principal of ctx may see all approvals, as an administrator,
// and those without an owner, as the local owner. Everyone may see their own.
func shown(ctx context.Context, owner string) (all, unowned bool) {
	who := principal.Of(ctx)
	isLocal := who.ID == principal.LocalID
	return who.Admin() && (owner == who.ID || isLocal && owner == ""), isLocal
}

// Get returns an approval that owner may see.
func (o *Store) Get(ctx context.Context, owner, id string) (Approval, error) {
	a, err := o.load(ctx, id)
	if all, unowned := shown(ctx, owner); err == nil && !all && a.Owner != owner && (a.Owner != "" || !unowned) {
		return Approval{}, fault.New(fault.NotFound, "no approval %s", id).WithHint("approval_list lists the approvals")
	}
	return a, err
}

// List returns a user's approvals in a state, newest first. An empty state means any.
func (o *Store) List(ctx context.Context, owner string, state State, limit int) (list []Approval, err error) {
	mine := "owner = $1"
	switch all, unowned := shown(ctx, owner); {
	case all:
		mine = "(owner = $1 OR owner <> $1)"
	case unowned:
		mine = "(owner = '' OR owner = $1)"
	}
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM approvals
			WHERE `+mine+` AND ($2 = '' OR state = $2) ORDER BY created DESC, id LIMIT $3`, owner, string(state), limit)
		return err
	})
	return list, err
}

// PendingOf returns the approval that a run waits for; ok is false if it waits for none.
func (o *Store) PendingOf(ctx context.Context, run string) (a Approval, ok bool, err error) {
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		a, err = scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state = 'pending' ORDER BY created LIMIT 1`, run))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Approval{}, false, nil
	}
	return a, err == nil, err
}

func (o *Store) ofRun(ctx context.Context, run string) (list []Approval, err error) {
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state <> 'pending' ORDER BY created`, run)
		return err
	})
	return list, err
}

// Rules returns the remembered decisions, oldest first.
func (o *Store) Rules(ctx context.Context) (rules []Rule, err error) {
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		rules, err = db.All(ctx, tx, func(row db.Scanner) (r Rule, err error) {
			var created int64
			err = row.Scan(&r.ID, &r.Scope, &r.Subject, &r.Allow, &created, &r.By)
			r.Created = time.UnixMicro(created).UTC()
			return r, err
		}, `SELECT id, scope, subject, allow, created, made_by FROM approval_rules ORDER BY created, id`)
		return err
	})
	return rules, err
}

// Forget deletes a remembered decision.
func (o *Store) Forget(ctx context.Context, id string) error {
	return o.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `DELETE FROM approval_rules WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fault.New(fault.NotFound, "no remembered decision %s", id).WithHint("approval_list lists the remembered decisions")
	})
}

// remembered returns the remembered decision. Deny takes precedence over allow.
func (o *Store) remembered(ctx context.Context, subject, space, hash string) (host.Decision, error) {
	var said, allowed int
	err := o.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*), count(CASE WHEN allow THEN 1 END) FROM approval_rules
			WHERE scope = 'tool' AND subject = $1 OR scope = 'namespace' AND subject = $2 OR scope = 'script' AND subject = $3`,
			subject, space, hash).Scan(&said, &allowed)
	})
	switch {
	case err != nil:
		return host.Deny, fault.Wrap(fault.Internal, err, "read the remembered decisions")
	case said == 0:
		return host.Ask, nil
	case allowed < said:
		return host.Deny, nil
	default:
		return host.Allow, nil
	}
}
