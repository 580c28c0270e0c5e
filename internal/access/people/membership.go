package people

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// byAdmin is the source of memberships that an administrator made. Providers do not
// change them.
const byAdmin = "admin"

// Orgs lists the organisations of a person; an empty one is the server itself.
func (p Person) Orgs() []string {
	list := make([]string, len(p.Memberships))
	for i, m := range p.Memberships {
		list[i] = m.Org
	}
	return list
}

func (p Person) in(org string) bool { return slices.Contains(p.Orgs(), org) }

// Orgs lists the organisations of a person, sorted. It uses the people as they were last
// read.
func (s *Store) Orgs(person string) []string { return s.now.Load().people[person].Orgs() }

// RolesOf lists the roles of a person in an organisation, likewise.
func (s *Store) RolesOf(person, org string) []string {
	return s.now.Load().people[person].within(org).roles()
}

// Members lists the people of an organisation by name, each with the membership in it only,
// likewise.
func (s *Store) Members(org string) []Person {
	list := []Person{}
	for _, p := range s.now.Load().people {
		if p = p.within(org); len(p.Memberships) > 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Person) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}

// within is the person as an organisation knows them: without memberships in others.
func (p Person) within(org string) Person {
	p.Memberships = slices.DeleteFunc(slices.Clone(p.Memberships), func(m Membership) bool { return m.Org != org })
	return p
}

// roles lists the roles of all memberships.
func (p Person) roles() (list []string) {
	for _, m := range p.Memberships {
		list = append(list, m.Roles...)
	}
	return list
}

const putMember = `INSERT INTO people_members (org, person, roles, source) VALUES ($1, $2, $3, $4)
	ON CONFLICT (org, person) DO UPDATE SET roles = excluded.roles, source = excluded.source`

// join gives a person the memberships that a provider tells, and takes away those that it
// told before. Sessions in organisations that are left end.
func (a Arrival) join(ctx context.Context, tx *db.Tx, person string) error {
	if _, err := tx.Exec(ctx, "DELETE FROM people_members WHERE person = $1 AND source = $2", person, a.Source); err != nil {
		return err
	}
	for _, org := range slices.Sorted(maps.Keys(a.Roles)) {
		roles, err := json.Marshal(a.Roles[org])
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, putMember+" WHERE people_members.source <> $5", org, person, string(roles), a.Source, byAdmin); err != nil {
			return err
		}
	}
	return endLeftSessions(ctx, tx, person)
}

// endLeftSessions ends the sessions of a person in organisations that they are not in.
func endLeftSessions(ctx context.Context, tx *db.Tx, person string) error {
	_, err := tx.Exec(ctx, "DELETE FROM people_sessions WHERE person = $1 AND org NOT IN (SELECT org FROM people_members WHERE person = $1)", person)
	return err
}

// Join gives a person roles in an organisation, whatever providers tell.
func (s *Store) Join(ctx context.Context, person, org string, roles []string) error {
	if err := principal.CheckOrg(org); err != nil {
		return err
	}
	for _, role := range roles {
		if _, ok := s.options.Roles[role]; !ok {
			return fault.New(fault.InvalidParams, "no role %q", role).WithHint("there are: %v", s.options.Roles.Names())
		}
	}
	if len(roles) == 0 {
		return fault.New(fault.InvalidParams, "no role is given").WithHint("there are: %v", s.options.Roles.Names())
	}
	text, err := json.Marshal(roles)
	if err != nil {
		return err
	}
	return s.change(ctx, person, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, putMember, org, person, string(text), byAdmin)
		return err
	})
}

// Leave removes a person from an organisation. Their sessions there end.
func (s *Store) Leave(ctx context.Context, person, org string) error {
	return s.change(ctx, person, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM people_members WHERE person = $1 AND org = $2", person, org); err != nil {
			return err
		}
		return endLeftSessions(ctx, tx, person)
	})
}

// LeaveSource removes the roles that a provider gave a person, because it gives none any
// more.
func (s *Store) LeaveSource(ctx context.Context, person, source string) error {
	return s.change(ctx, person, func(tx *db.Tx) error { return Arrival{Source: source}.join(ctx, tx, person) })
}

// ChooseOrg continues a session in another organisation of its person.
func (s *Store) ChooseOrg(ctx context.Context, cookie, org string) (who principal.Principal, err error) {
	now, err := s.Session(ctx, cookie)
	if err != nil {
		return now, err
	}
	person := PersonOf(now)
	if who, err = s.Principal(ctx, person, org); err != nil {
		return now, fault.New(fault.NotFound, "%s is in no organisation %q", now.Name, org).WithHint("GET /api/v1/me lists orgs")
	}
	err = s.change(ctx, person, func(tx *db.Tx) error { // all nodes end what runs in the other one
		_, err := tx.Exec(ctx, "UPDATE people_sessions SET org = $2 WHERE hash = $1", hashOf(cookie), org)
		return err
	})
	who.Expires = now.Expires
	return who, err
}
