package approval

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
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

func (o *Store) directory(ctx context.Context) (directory, error) {
	if o.options.People == nil {
		return nil, nil
	}
	list, err := o.options.People.List(ctx)
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
func (o *Store) holder(ctx context.Context, who principal.Principal, a *Approval) (string, error) {
	person := personOf(who)
	all, err := o.directory(ctx)
	if err != nil {
		return "", err
	}
	if person != "" && who.Org == a.Org {
		if all.has(person, a.Org, a.Role) {
			return person, nil
		}
		if other, err := o.substitute(ctx, all, person, a); err != nil || other != "" {
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
func (o *Store) posts(ctx context.Context, who principal.Principal) (list []post, err error) {
	if o.options.People == nil {
		return nil, nil
	}
	person := personOf(who)
	if person == "" {
		return nil, nil
	}
	all, err := o.directory(ctx)
	for _, role := range all.roles(person, who.Org) {
		list = append(list, post{who.Org, role})
	}
	if err != nil {
		return nil, err
	}
	delegated, err := o.delegatedTo(ctx, all, person, who.Org)
	for _, d := range delegated {
		list = append(list, post{d.Org, d.Role})
	}
	return list, err
}

// stillAgree returns how many of those who agreed to a request have the role now. Their
// decisions count only for the plan that they saw.
func (o *Store) stillAgree(all directory, a *Approval) (n int) {
	plan := a.PlanDigest()
	for _, d := range a.Decisions {
		if d.Allow && d.plan == plan && d.Person != "" && all.has(d.Person, a.Org, a.Role) && all.active(d.By.User, a.Org) {
			n++
		}
	}
	return n
}
