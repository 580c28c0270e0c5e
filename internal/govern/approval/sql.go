package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

const columns = `id, run, owner, name, hash, language, subject, space, state, plan, digests, certain, complete, output, kept, outcome, created, expires, decided, decided_by, asker, org, role, needed, incomplete, undoes`

func scan(row db.Scanner) (a Approval, err error) {
	var plan, output, outcome []byte
	var digests, asker string
	var created, expires, decided int64
	err = row.Scan(&a.ID, &a.Key, &a.Owner, &a.Name, &a.Hash, &a.Language, &a.Subject, &a.Space, &a.State, &plan, &digests, &a.Certain, &a.Complete,
		&output, &a.Resume, &outcome, &created, &expires, &decided, &a.By, &asker, &a.Org, &a.Role, &a.Needed, &a.Incomplete, &a.Undoes)
	if err != nil {
		return a, err
	}
	a.Created, a.Expires, a.Outcome = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC(), outcome
	if decided != 0 {
		a.Decided = time.UnixMicro(decided).UTC()
	}
	if a.Asker, err = readParty(asker, a.Owner); err != nil {
		return a, err
	}
	if err := json.Unmarshal(plan, &a.Plan); err != nil {
		return a, err
	}
	for i, digest := range strings.Fields(digests) {
		if i < len(a.Plan) {
			a.Plan[i].Digest = strings.ReplaceAll(digest, "+", " ")
		}
	}
	if len(output) > 0 {
		err = json.Unmarshal(output, &a.Output)
	}
	return a, err
}

// storedPlan returns a plan as it is stored, with the digests of its entries.
func storedPlan(entries []host.Planned) (plan []byte, digests string, err error) {
	list := make([]string, len(entries))
	for i, p := range entries {
		list[i] = strings.ReplaceAll(p.Digest, " ", "+")
	}
	plan, err = json.Marshal(append([]host.Planned{}, entries...))
	return plan, strings.Join(list, " "), err
}

// storePlan replaces the plan of a request that is still as a shows it.
func (s *Store) storePlan(ctx context.Context, a *Approval, p host.Plan) error {
	plan, digests, err := storedPlan(p.Entries)
	if err != nil {
		return err
	}
	return s.db.Exec(ctx, `UPDATE approvals SET plan = $2, digests = $3, certain = $4, complete = $5, incomplete = $6 WHERE id = $1 AND state = 'pending'`,
		a.ID, plan, digests, p.Certain, p.Incomplete == "", p.Incomplete)
}

// insert stores a request. If the run already has a pending one, insert returns that
// instead.
func (s *Store) insert(ctx context.Context, a Approval) (before *Approval, err error) {
	plan, digests, err := storedPlan(a.Plan)
	if err != nil {
		return nil, err
	}
	output, err := json.Marshal(append([]host.OutputLine{}, a.Output...))
	if err != nil {
		return nil, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		before = nil
		found, err := scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state = 'pending'`, a.Key))
		if err == nil {
			before = &found
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO approvals (`+columns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, NULL, $16, $17, 0, '', $18, $19, $20, $21, $22, $23)`,
			a.ID, a.Key, a.Owner, a.Name, a.Hash, a.Language, a.Subject, a.Space, a.State, plan, digests, a.Certain, a.Complete,
			output, a.Resume, a.Created.UnixMicro(), a.Expires.UnixMicro(), a.Asker.text(), a.Org, a.Role, a.Needed, a.Incomplete, a.Undoes)
		if err != nil {
			return err
		}
		return s.addNotice(ctx, tx, &a)
	})
	return before, err
}

// close stores that an approval is decided. carrier is the process that continues the run,
// as long as it renews its lease; without one it is whichever looks first.
func (s *Store) close(ctx context.Context, tx *db.Tx, a *Approval, carrier string) error {
	carried := a.Decided
	if carrier != "" {
		carried = carried.Add(lease)
	}
	_, err := tx.Exec(ctx, `UPDATE approvals SET state = $2, decided = $3, decided_by = $4, carrier = $5, carried = $6 WHERE id = $1`,
		a.ID, a.State, a.Decided.UnixMicro(), a.By, carrier, carried.UnixMicro())
	if err != nil {
		return err
	}
	return tx.Notify(Topic, a.ID)
}

func saveRule(ctx context.Context, tx *db.Tx, r *Rule, d Decision) error {
	if r == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO approval_rules (id, scope, subject, allow, created, made_by, maker) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (scope, subject) DO UPDATE SET allow = excluded.allow, created = excluded.created, made_by = excluded.made_by, maker = excluded.maker`,
		r.ID, r.Scope, r.Subject, r.Allow, d.At.UnixMicro(), r.By, d.By.text())
	return err
}

func insertDecision(ctx context.Context, tx *db.Tx, id string, d Decision) error {
	_, err := tx.Exec(ctx, `INSERT INTO approval_decisions (approval, decider, party, person, allow, plan, decided) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (approval, decider) DO UPDATE SET party = excluded.party, person = excluded.person, allow = excluded.allow, plan = excluded.plan, decided = excluded.decided`,
		id, d.By.ID, d.By.text(), d.Person, d.Allow, d.plan, d.At.UnixMicro())
	return err
}

func scanDecision(row db.Scanner) (d Decision, err error) {
	var party string
	var at int64
	if err := row.Scan(&party, &d.Person, &d.Allow, &d.plan, &at); err != nil {
		return d, err
	}
	d.At = time.UnixMicro(at).UTC()
	d.By, err = readParty(party, "")
	return d, err
}

// addDecisions reads what people have said about approvals so far.
func addDecisions(ctx context.Context, tx *db.Tx, list []Approval) (err error) {
	for i := range list {
		list[i].Decisions, err = db.All(ctx, tx, scanDecision,
			`SELECT party, person, allow, plan, decided FROM approval_decisions WHERE approval = $1 ORDER BY decided, decider`, list[i].ID)
		if err != nil {
			return err
		}
		if a := &list[i]; a.By == "" && (a.State == Allowed || a.State == Denied) {
			a.By = a.deciders() // one of them was erased
		}
	}
	return nil
}

// loadIn reads an approval with its decisions.
func loadIn(ctx context.Context, tx *db.Tx, id string) (Approval, error) {
	return first(ctx, tx, `SELECT `+columns+` FROM approvals WHERE id = $1`, id)
}

// first reads the first approval that a query finds, with its decisions.
func first(ctx context.Context, tx *db.Tx, query string, args ...any) (Approval, error) {
	a, err := scan(tx.QueryRow(ctx, query, args...))
	if err != nil {
		return a, err
	}
	list := []Approval{a}
	err = addDecisions(ctx, tx, list)
	return list[0], err
}

func (s *Store) withdraw(ctx context.Context, run string) ([]Approval, error) {
	return s.change(ctx, `UPDATE approvals SET state = 'withdrawn', decided = $2 WHERE run = $1 AND state = 'pending' RETURNING `+columns, run, s.now().UnixMicro())
}

// expire denies the requests whose time is over, and deletes old decisions.
func (s *Store) expire(ctx context.Context, now time.Time) (over []Approval, err error) {
	pending, old := 0, 0
	err = s.db.QueryRow(ctx, `SELECT count(CASE WHEN state = 'pending' AND expires <= $1 THEN 1 END), count(CASE WHEN decided > 0 AND decided <= $2 THEN 1 END)
			FROM approvals`, now.UnixMicro(), now.Add(-s.options.Keep).UnixMicro()).Scan(&pending, &old)
	if err != nil || pending+old == 0 {
		return nil, err
	}
	if old > 0 {
		err = s.db.Exec(ctx, `DELETE FROM approvals WHERE decided > 0 AND decided <= $1`, now.Add(-s.options.Keep).UnixMicro())
		if err != nil {
			return nil, err
		}
	}
	return s.change(ctx, `UPDATE approvals SET state = 'denied', decided = $1, decided_by = 'timeout' WHERE state = 'pending' AND expires <= $1 RETURNING `+columns, now.UnixMicro())
}

func (s *Store) change(ctx context.Context, query string, args ...any) (changed []Approval, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
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
func (s *Store) decidedElsewhere(ctx context.Context) (decided []Approval, err error) {
	s.mu.Lock()
	ids := make([]string, 0, len(s.waiting))
	for id := range s.waiting {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		still, err := db.All(ctx, tx, db.Column[string],
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

func (s *Store) load(ctx context.Context, id string) (a Approval, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		a, err = loadIn(ctx, tx, id)
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

// Get returns an approval that owner may see: their own, and those that they may decide.
func (s *Store) Get(ctx context.Context, owner, id string) (Approval, error) {
	a, err := s.load(ctx, id)
	if err != nil {
		return a, err
	}
	if all, unowned := shown(ctx, owner); all || a.Owner == owner || a.Owner == "" && unowned {
		return a, nil
	}
	if a.Role != "" {
		if posts, err := s.posts(ctx, principal.Of(ctx)); err != nil || slices.Contains(posts, post{a.Org, a.Role}) {
			return a, err
		}
	}
	return Approval{}, fault.New(fault.NotFound, "no approval %s", id).WithHint("approval_list lists the approvals")
}

// List returns the approvals in a state that a user may see, newest first. An empty state
// means any.
func (s *Store) List(ctx context.Context, owner string, state State, limit int) (list []Approval, err error) {
	args := []any{owner, string(state), limit}
	mine := "owner = $1"
	switch all, unowned := shown(ctx, owner); {
	case all:
		mine = "(owner = $1 OR owner <> $1)"
	case unowned:
		mine = "(owner = '' OR owner = $1)"
	}
	posts, err := s.posts(ctx, principal.Of(ctx))
	if err != nil {
		return nil, err
	}
	for _, p := range posts {
		mine += fmt.Sprintf(" OR org = $%d AND role = $%d", len(args)+1, len(args)+2)
		args = append(args, p.org, p.role)
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM approvals
			WHERE (`+mine+`) AND ($2 = '' OR state = $2) ORDER BY created DESC, id LIMIT $3`, args...)
		if err != nil {
			return err
		}
		return addDecisions(ctx, tx, list)
	})
	return list, err
}

// PendingOf returns the approval that a run waits for; ok is false if it waits for none.
func (s *Store) PendingOf(ctx context.Context, run string) (a Approval, ok bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		a, err = first(ctx, tx, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state = 'pending' ORDER BY created LIMIT 1`, run)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Approval{}, false, nil
	}
	return a, err == nil, err
}

// latestOf returns the latest request of a run.
func (s *Store) latestOf(ctx context.Context, run string) (a Approval, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		a, err = first(ctx, tx, `SELECT `+columns+` FROM approvals WHERE run = $1 ORDER BY created DESC LIMIT 1`, run)
		return err
	})
	return a, err
}

func (s *Store) ofRun(ctx context.Context, run string) (list []Approval, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM approvals WHERE run = $1 AND state <> 'pending' ORDER BY created`, run)
		if err != nil {
			return err
		}
		return addDecisions(ctx, tx, list)
	})
	return list, err
}

// Rules returns the remembered decisions that the principal of ctx may change, oldest first:
// its own, and for administrators all.
func (s *Store) Rules(ctx context.Context) (rules []Rule, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		rules, err = rulesWhere(ctx, tx, "true")
		return err
	})
	return rules, err
}

// Forget deletes a remembered decision that the principal of ctx may change.
func (s *Store) Forget(ctx context.Context, id string) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		rules, err := rulesWhere(ctx, tx, "id = $1", id)
		if err == nil && len(rules) == 0 {
			err = fault.New(fault.NotFound, "no remembered decision %s", id).WithHint("approval_list lists the remembered decisions")
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM approval_rules WHERE id = $1`, id)
		return err
	})
}

func rulesWhere(ctx context.Context, tx *db.Tx, where string, args ...any) ([]Rule, error) {
	who := principal.Of(ctx)
	rules, err := db.All(ctx, tx, func(row db.Scanner) (r Rule, err error) {
		var created int64
		var maker string
		if err := row.Scan(&r.ID, &r.Scope, &r.Subject, &r.Allow, &created, &r.By, &maker); err != nil {
			return r, err
		}
		r.Created = time.UnixMicro(created).UTC()
		r.maker, err = readParty(maker, r.By)
		return r, err
	}, `SELECT id, scope, subject, allow, created, made_by, maker FROM approval_rules WHERE `+where+` ORDER BY created, id`, args...)
	return slices.DeleteFunc(rules, func(r Rule) bool { return !r.maker.is(partyOf(who)) && (who.Person != "" || !who.Admin()) }), err
}

// remembered returns the remembered decision. Deny takes precedence over allow. What
// somebody allowed does not count for their own runs, unless they may decide about those.
func (s *Store) remembered(ctx context.Context, subject, space, hash string) (host.Decision, error) {
	type rule struct {
		allow bool
		maker Party
	}
	var rules []rule
	rules, err := db.Find(ctx, s.db, func(row db.Scanner) (r rule, err error) {
		var by, maker string
		if err := row.Scan(&r.allow, &by, &maker); err != nil {
			return r, err
		}
		r.maker, err = readParty(maker, by)
		return r, err
	}, `SELECT allow, made_by, maker FROM approval_rules
			WHERE scope = 'tool' AND subject = $1 OR scope = 'namespace' AND subject = $2 OR scope = 'script' AND subject = $3`, subject, space, hash)
	if err != nil {
		return host.Deny, fault.Wrap(fault.Internal, err, "read the remembered decisions")
	}
	who, verdict := principal.Of(ctx), host.Ask
	for _, r := range rules {
		switch {
		case !r.allow:
			return host.Deny, nil
		case !r.maker.is(partyOf(who)) || s.mayDecideOwn(ctx, who):
			verdict = host.Allow
		}
	}
	return verdict, nil
}

// Contents lists the columns with hashes of contents: of the scripts that ask.
func Contents() []cas.Column {
	return []cas.Column{
		{Table: "approvals", Name: "hash", Where: "state = 'pending'"},
		{Table: "approval_rules", Name: "subject", Why: "it is compared with the hash of a script"},
	}
}

// Personal lists the tables with requests and decisions of people. Decisions about requests of others stay; who
// decided them is read from the decisions then.
func Personal() []personal.Table {
	const (
		mine    = `(OWNER(owner) OR asker LIKE '%"user":"' || PERSON || '"%')` // with a key, too, that was deleted since
		decided = `(OWNER(decider) OR party LIKE '%"user":"' || PERSON || '"%')`
	)
	return []personal.Table{
		{Name: "approval_records", Where: "approval IN (SELECT id FROM approvals WHERE " + mine + ")"},
		{Name: "approval_mails", Where: "person = PERSON OR approval IN (SELECT id FROM approvals WHERE " + mine + ")"},
		{Name: "approval_delegations", Where: "person = PERSON OR delegate = PERSON"},
		{Name: "approvals", Where: mine, Hidden: []string{"kept"}},
		{Name: "approvals", Where: "decided_by <> '' AND id IN (SELECT approval FROM approval_decisions WHERE " + decided + ")", Set: "decided_by = ''"},
		{Name: "approval_decisions", Where: decided, Set: `decider = PSEUDONYM, person = CASE WHEN person = PERSON THEN PSEUDONYM ELSE person END, party = '{"id":"' || PSEUDONYM || '"}'`},
		{Name: "approval_decisions", Where: "person = PERSON", Set: "person = PSEUDONYM"},
		{Name: "approval_rules", Where: "maker LIKE '%' || PERSON || '%' OR made_by = FULLNAME", Set: "made_by = PSEUDONYM, maker = ''"},
	}
}
