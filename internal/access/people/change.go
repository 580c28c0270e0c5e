package people

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Arrival is somebody whom a provider has identified.
type Arrival struct {
	Identity
	Name  string
	Email string
	// Verified means that the provider has checked the address.
	Verified bool
	Roles    map[string][]string // by organisation; an empty one is the server itself
	Source   string              // the provider's name
}

// SignIn returns the person of an identity, who gets the name and roles that the provider
// tells now. An identity that signs in for the first time is a new person. The error is
// fault.Denied for people who are blocked or have no role.
func (s *Store) SignIn(ctx context.Context, a Arrival) (p Person, err error) {
	if a.Issuer == "" || a.Subject == "" {
		return p, fault.New(fault.Denied, "the provider does not say who signs in")
	}
	a.Roles = maps.Clone(a.Roles)
	maps.DeleteFunc(a.Roles, func(_ string, roles []string) bool { return len(roles) == 0 })
	if len(a.Roles) == 0 {
		return p, fault.New(fault.Denied, "%s has no role on this server", a.Name).
			WithHint("ask an administrator for one: roles come from groups at the provider")
	}
	now := s.options.Now()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		id, err := personOf(ctx, tx, a.Identity)
		if err == nil && id == "" {
			id, err = s.create(ctx, tx, a, now)
		}
		if err == nil {
			p, err = s.arrive(ctx, tx, id, a, now)
		}
		return err
	})
	if err != nil {
		return p, err
	}
	return p, s.Refresh(context.WithoutCancel(ctx))
}

// personOf returns the id of the person with an identity, or "".
func personOf(ctx context.Context, tx *db.Tx, i Identity) (id string, err error) {
	err = tx.QueryRow(ctx, "SELECT person FROM people_identities WHERE issuer = $1 AND tenant = $2 AND subject = $3", i.Issuer, i.Tenant, i.Subject).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

func (s *Store) create(ctx context.Context, tx *db.Tx, a Arrival, now time.Time) (id string, err error) {
	id = "p" + strings.ToLower(rand.Text()[:16])
	if _, err := tx.Exec(ctx, "INSERT INTO people (id, name, email, created, seen) VALUES ($1, $2, $3, $4, $4)", id, a.Name, a.Email, now.UnixMicro()); err != nil {
		return id, err
	}
	_, err = tx.Exec(ctx, "INSERT INTO people_identities (issuer, tenant, subject, person) VALUES ($1, $2, $3, $4)", a.Issuer, a.Tenant, a.Subject, id)
	return id, err
}

// arrive stores what a provider tells about a person.
func (s *Store) arrive(ctx context.Context, tx *db.Tx, id string, a Arrival, now time.Time) (Person, error) {
	if err := a.join(ctx, tx, id); err != nil {
		return Person{}, err
	}
	if _, err := tx.Exec(ctx, "UPDATE people SET name = $2, email = $3, seen = $4, verified = $5, version = version + 1 WHERE id = $1", id, a.Name, a.Email, now.UnixMicro(), a.Verified); err != nil {
		return Person{}, err
	}
	all, err := one(ctx, tx, id)
	p := all[id]
	if err == nil && !p.Blocked.IsZero() {
		return p, errBlocked(p.Name)
	}
	if err == nil {
		err = tx.Notify(Topic, id)
	}
	return p, err
}

// Block ends everything that acts for a person: sessions, and in the same transaction
// what OnBlock ends. Their keys are refused as long as they are blocked.
func (s *Store) Block(ctx context.Context, person string) error {
	now := s.options.Now().UnixMicro()
	return s.change(ctx, person, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE people SET blocked = $2 WHERE id = $1 AND blocked = 0", person, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM people_sessions WHERE person = $1", person); err != nil {
			return err
		}
		if s.options.OnBlock == nil {
			return nil
		}
		return s.options.OnBlock(ctx, tx, person)
	})
}

// Unblock lets a person sign in again. What Block ended stays ended.
func (s *Store) Unblock(ctx context.Context, person string) error {
	return s.change(ctx, person, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE people SET blocked = 0 WHERE id = $1", person)
		return err
	})
}

// change changes something about a person that exists, and tells all nodes.
func (s *Store) change(ctx context.Context, person string, do func(*db.Tx) error) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE people SET version = version + 1 WHERE id = $1", person)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.NotFound, "no person %s", person).WithHint("`luanette people list` shows them")
		}
		if err := do(tx); err != nil {
			return err
		}
		return tx.Notify(Topic, person)
	})
	if err != nil {
		return err
	}
	return s.Refresh(context.WithoutCancel(ctx))
}
