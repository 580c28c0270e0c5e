package approval

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Demand says who must agree to an effect. The zero value is anybody who may decide
// requests at all.
type Demand struct {
	Role  string // the role in the asker's organisation
	Count int    // how many different people with it
}

// People has the people and their roles.
type People interface {
	List(ctx context.Context) ([]people.Person, error)
}

// directory is the people at one moment.
type directory map[string]people.Person

func (s *Store) directory(ctx context.Context) (directory, error) {
	if s.options.People == nil {
		return nil, nil
	}
	list, err := s.options.People.List(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the people and their roles")
	}
	all := make(directory, len(list))
	for _, p := range list {
		all[p.ID] = p
	}
	return all, nil
}

// roles returns the roles of a person in an organisation; none if they are blocked.
func (d directory) roles(person, org string) []string {
	p := d[person]
	if !p.Blocked.IsZero() {
		return nil
	}
	if at := slices.IndexFunc(p.Memberships, func(m people.Membership) bool { return m.Org == org }); at >= 0 {
		return p.Memberships[at].Roles
	}
	return nil
}

// active reports whether a person has any role in an organisation.
func (d directory) active(person, org string) bool { return len(d.roles(person, org)) > 0 }

func (d directory) has(person, org, role string) bool {
	return slices.Contains(d.roles(person, org), role)
}

// personOf returns the person that a principal acts as: signed in, by a client, or with a
// key of theirs. It is empty for keys of services, and for chats, in which a model acts.
// The user that a key or a token of another issuer names is not enough: it is not a
// person who signed in here.
func personOf(who principal.Principal) string {
	if who.Person != "" {
		return ""
	}
	return people.PersonOf(who)
}

// holder returns the person whose role counts when a principal decides a request: they
// themselves, or somebody who delegated the role to them.
func (s *Store) holder(ctx context.Context, who principal.Principal, a *Approval) (string, error) {
	person := personOf(who)
	all, err := s.directory(ctx)
	if err != nil {
		return "", err
	}
	if person != "" && who.Org == a.Org {
		if all.has(person, a.Org, a.Role) {
			return person, nil
		}
		if other, err := s.substitute(ctx, all, person, a); err != nil || other != "" {
			return other, err
		}
	}
	f := fault.New(fault.Denied, "approval %s is decided by people with the role %s, which %s does not have", a.ID, a.Role, who.Title())
	if a.Org != "" {
		return "", f.WithHint("the role in the organisation %s counts", a.Org)
	}
	return "", f.WithHint("people get roles when they sign in; docs/people.md")
}

// post is a role in an organisation.
type post struct{ org, role string }

// posts returns the roles with which a principal decides.
func (s *Store) posts(ctx context.Context, who principal.Principal) (list []post, err error) {
	if s.options.People == nil {
		return nil, nil
	}
	person := personOf(who)
	if person == "" {
		return nil, nil
	}
	all, err := s.directory(ctx)
	for _, role := range all.roles(person, who.Org) {
		list = append(list, post{who.Org, role})
	}
	if err != nil {
		return nil, err
	}
	delegated, err := s.delegatedTo(ctx, all, person, who.Org)
	for _, d := range delegated {
		list = append(list, post{d.Org, d.Role})
	}
	return list, err
}

// stillAgree returns how many of those who agreed to a request have the role now. Their
// decisions count only for the plan that they saw.
func (s *Store) stillAgree(all directory, a *Approval) (n int) {
	plan := a.PlanDigest()
	for _, d := range a.Decisions {
		if d.Allow && d.plan == plan && d.Person != "" && all.has(d.Person, a.Org, a.Role) && all.active(d.By.User, a.Org) {
			n++
		}
	}
	return n
}

// Delegation lets one person decide in the place of another, who has the role.
type Delegation struct {
	Person string // who has the role
	Org    string
	Role   string
	To     string // the person who decides
	Until  time.Time
}

// longestDelegation is how long a delegation may last. A permanent one is a role.
const longestDelegation = 90 * 24 * time.Hour

// Delegate names somebody of the same organisation who decides in the place of the
// principal of ctx, until a time. It replaces an earlier one for the role; an until that
// is past ends it. to is a person's id, or their name or email address if only one
// person of the organisation has it.
func (s *Store) Delegate(ctx context.Context, role, to string, until time.Time) (Delegation, error) {
	who, now := principal.Of(ctx), s.now()
	person := personOf(who)
	all, err := s.directory(ctx)
	if err != nil {
		return Delegation{}, err
	}
	d := Delegation{Person: person, Org: who.Org, Role: role, Until: until.UTC().Truncate(time.Microsecond)}
	switch {
	case person == "" || !all.has(person, who.Org, role):
		return d, fault.New(fault.Denied, "%s does not have the role %s and cannot delegate it", who.Title(), role).
			WithHint("sign in as somebody who has it; docs/people.md")
	case until.After(now.Add(longestDelegation)):
		return d, fault.New(fault.InvalidParams, "a delegation lasts 90 days at most").WithHint("give the role itself for longer")
	}
	if d.To, err = all.colleague(who.Org, to); err != nil {
		return d, err
	}
	if d.To == person {
		return d, fault.New(fault.InvalidParams, "you cannot delegate to yourself")
	}
	if err := s.saveDelegation(ctx, d, now); err != nil {
		return d, fault.Wrap(fault.Internal, err, "store the delegation")
	}
	if s.options.Audit != nil {
		detail, _ := json.Marshal(d) // texts and a time always encode
		s.options.Audit(ctx, "approval.delegated", role, detail)
	}
	return d, nil
}

// colleague finds a person of an organisation.
func (d directory) colleague(org, who string) (id string, err error) {
	for _, p := range d {
		if len(d.roles(p.ID, org)) == 0 || p.ID != who && p.Name != who && p.Email != who {
			continue
		}
		if id != "" {
			return "", fault.New(fault.InvalidParams, "several people are called %s", who).WithHint("use the id of one of them")
		}
		id = p.ID
	}
	if id == "" || who == "" {
		return "", fault.New(fault.NotFound, "nobody in your organisation is called %q", who).WithHint("they must have signed in once")
	}
	return id, nil
}

func (s *Store) saveDelegation(ctx context.Context, d Delegation, now time.Time) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM approval_delegations WHERE until <= $1 OR person = $2 AND org = $3 AND role = $4`,
			now.UnixMicro(), d.Person, d.Org, d.Role); err != nil || !d.Until.After(now) {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO approval_delegations (person, org, role, delegate, created, until) VALUES ($1, $2, $3, $4, $5, $6)`,
			d.Person, d.Org, d.Role, d.To, now.UnixMicro(), d.Until.UnixMicro())
		return err
	})
}

// delegatedTo returns the delegations to a person in an organisation that are in force:
// whoever delegated must have the role now.
func (s *Store) delegatedTo(ctx context.Context, all directory, person, org string) (list []Delegation, err error) {
	if person == "" || !all.active(person, org) {
		return nil, nil
	}
	return s.delegations(ctx, all, `delegate = $1 AND org = $2 AND until > $3`, person, org)
}

// Delegations returns those by and to the person of ctx that are in force.
func (s *Store) Delegations(ctx context.Context) ([]Delegation, error) {
	who := principal.Of(ctx)
	person := personOf(who)
	if person == "" {
		return nil, nil
	}
	all, err := s.directory(ctx)
	if err != nil {
		return nil, err
	}
	return s.delegations(ctx, all, `(person = $1 OR delegate = $1) AND org = $2 AND until > $3`, person, who.Org)
}

// substitutes returns the delegations in force of the role that a request needs.
func (s *Store) substitutes(ctx context.Context, all directory, a *Approval) ([]Delegation, error) {
	list, err := s.delegations(ctx, all, `role = $1 AND org = $2 AND until > $3`, a.Role, a.Org)
	return slices.DeleteFunc(list, func(d Delegation) bool { return !all.active(d.To, d.Org) }), err
}

// delegations reads delegations of people who have the role now. where has the present as
// its last parameter.
func (s *Store) delegations(ctx context.Context, all directory, where string, args ...any) (list []Delegation, err error) {
	list, err = db.Find(ctx, s.db, func(row db.Scanner) (d Delegation, err error) {
		var until int64
		err = row.Scan(&d.Person, &d.Org, &d.Role, &d.To, &until)
		d.Until = time.UnixMicro(until).UTC()
		return d, err
	}, `SELECT person, org, role, delegate, until FROM approval_delegations WHERE `+where+` ORDER BY created, person`,
		append(args, s.now().UnixMicro())...)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the delegations")
	}
	return slices.DeleteFunc(list, func(d Delegation) bool { return !all.has(d.Person, d.Org, d.Role) }), nil
}

// substitute returns the person in whose place somebody decides a request, or "". The
// asker is nobody's place, and neither is who has decided themselves.
func (s *Store) substitute(ctx context.Context, all directory, person string, a *Approval) (string, error) {
	list, err := s.delegatedTo(ctx, all, person, a.Org)
	for _, d := range list {
		taken := slices.ContainsFunc(a.current(), func(said Decision) bool { return said.Person == d.Person })
		if d.Role == a.Role && !taken && !a.askedBy(d.Person) {
			return d.Person, nil
		}
	}
	return "", err
}

// NameOf returns a person's name; their id if they are not known.
func (s *Store) NameOf(ctx context.Context, person string) string {
	all, err := s.directory(ctx)
	if p, ok := all[person]; err == nil && ok {
		return p.Name
	}
	return person
}

var _ People = (*people.Store)(nil)
