package share

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// maxShares is the maximum number of shares of one thing.
const maxShares = 100

// Create shares a thing with somebody, or changes what they may do with it.
func (s *Store) Create(ctx context.Context, kind principal.Kind, id, to string, may principal.Level) (Share, error) {
	thing, err := s.ofCaller(ctx, kind, id)
	if err == nil {
		err = permitted(kind, may)
	}
	if err != nil {
		return Share{}, err
	}
	org := orgOf(thing.Owner)
	if to, err = s.recipient(to, org); err != nil {
		return Share{}, err
	}
	var made Share
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var count int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM shares WHERE kind = $1 AND thing = $2 AND recipient <> $3", string(kind), thing.ID, to).Scan(&count); err != nil {
			return err
		}
		if count >= maxShares {
			return fault.New(fault.Limit, "the %s %s is shared %d times already", kind, id, count).WithHint("share it with a role or the organisation")
		}
		made, err = s.scan(tx.QueryRow(ctx, "INSERT INTO shares ("+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (kind, thing, recipient) DO UPDATE SET may = excluded.may, maker = excluded.maker, org = excluded.org, owner = excluded.owner RETURNING `+columns,
			"share_"+strings.ToLower(rand.Text()), org, string(kind), thing.ID, to, string(may), thing.Owner.ID, principal.Of(ctx).ID, s.options.Clock.Now().UnixMicro()))
		return err
	})
	if err != nil {
		return Share{}, err
	}
	made.Title = thing.Title
	s.publish(made, Created{about(made), made.May})
	return made, nil
}

// permitted refuses levels that things of a kind do not have. Sessions and conversations can be
// used: with things of the other kinds nobody can do more than see them, short of changing them.
func permitted(kind principal.Kind, may principal.Level) error {
	switch {
	case !may.Permits(principal.See):
		return fault.New(fault.InvalidParams, "%q cannot be permitted", may).WithHint("see, use or edit")
	case may == principal.Edit && kind == principal.Conversation:
		return fault.New(fault.InvalidParams, "a share of kind %s has no level edit: nobody writes in a conversation of somebody else", kind).
			WithHint("see, or use: they go on in a copy of their own")
	case may == principal.Use && kind != principal.Session && kind != principal.Conversation:
		return fault.New(fault.InvalidParams, "a share of kind %s has no level use", kind).WithHint("see or edit; only sessions and conversations have use")
	}
	return nil
}

// Remove ends a share, and returns it.
func (s *Store) Remove(ctx context.Context, id string) (Share, error) {
	if err := mayShare(principal.Of(ctx), ""); err != nil {
		return Share{}, err
	}
	var one Share
	err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
		one, err = s.scan(tx.QueryRow(ctx, "SELECT "+columns+" FROM shares WHERE id = $1", id))
		if errors.Is(err, sql.ErrNoRows) || err == nil && !s.controls(ctx, one) {
			return fault.New(fault.NotFound, "no share %s", id).WithHint("GET /api/v1/shares lists yours")
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM shares WHERE id = $1", id)
		}
		return err
	})
	if err == nil {
		s.publish(one, Removed{about(one)})
	}
	return one, err
}

// controls reports whether the caller may end a share.
func (s *Store) controls(ctx context.Context, one Share) bool {
	who := principal.Of(ctx)
	return who.Person == "" && who.ID == one.owner || administers(who, one.org) || one.isOfConversation(who)
}

// isOfConversation reports whether it shares a conversation that p has as its owner.
func (s *Share) isOfConversation(p principal.Principal) bool {
	return s.Kind == principal.Conversation && chatsAs(p, s.owner, s.org)
}

// ofCaller finds a thing that the caller may share. Things that the caller does not know of
// do not exist.
func (s *Store) ofCaller(ctx context.Context, kind principal.Kind, id string) (principal.Thing, error) {
	who := principal.Of(ctx)
	find := s.finders[kind]
	if find == nil {
		return principal.Thing{}, fault.New(fault.InvalidParams, "%q cannot be shared", kind).WithHint("%s", s.kinds())
	}
	if err := mayShare(who, kind); err != nil {
		return principal.Thing{}, err
	}
	thing, err := find(ctx, id)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return principal.Thing{}, errUnknown(kind, id)
	case err != nil:
		return principal.Thing{}, err
	case owns(who, kind, thing.Owner):
		if kind != principal.Conversation {
			thing.Owner.Org = who.ActingOrg() // not every kind stores that of its keys
		}
		return thing, nil
	case kind != principal.Conversation && administers(who, orgOf(thing.Owner)):
		return thing, nil
	}
	return principal.Thing{}, s.notOwned(ctx, kind, id, thing)
}

// notOwned is why the caller cannot share a thing of somebody else: those with whom it is
// shared know that it exists, others do not.
func (s *Store) notOwned(ctx context.Context, kind principal.Kind, id string, thing principal.Thing) error {
	level, err := s.Level(ctx, principal.Of(ctx), kind, thing.ID)
	if err != nil {
		return err
	}
	if level == principal.Nothing {
		return errUnknown(kind, id)
	}
	return fault.New(fault.Denied, "the %s %s belongs to %s", kind, id, s.NameOf(thing.Owner.ID)).
		WithHint("its owner and administrators of the organisation share it")
}

// errUnknown is the same for what does not exist and what the caller does not know of.
func errUnknown(kind principal.Kind, id string) error {
	err := fault.New(fault.NotFound, "no %s %s", kind, id)
	if kind == principal.Conversation {
		return err.WithHint("a conversation of yours by its id, or ORG/USER/ID; GET /api/v1/orgs/ORG/users/USER/conversations lists them")
	}
	return err
}

// kinds says what can be shared.
func (s *Store) kinds() string {
	var names []string
	for kind := range s.finders {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return "can be shared: " + strings.Join(names, ", ") + " (a stored script is an artifact)"
}

// mayShare checks that the caller may share anything. Clients that act for a person must
// not: what they were allowed would reach others.
func mayShare(who principal.Principal, kind principal.Kind) error {
	scope := principal.MCP
	if kind == principal.Conversation {
		scope = principal.Chat
	}
	switch {
	case authserver.IsClient(who):
		return fault.New(fault.Denied, "clients do not share what belongs to a person").WithHint("sign in at /signin, or with luanette login")
	case kind != "" && !who.May(scope, who.Org):
		return fault.New(fault.Denied, "%s does not have the scope %s", who.Title(), scope)
	}
	return nil
}

// End ends all shares of things that are deleted.
func (s *Store) End(ctx context.Context, kind principal.Kind, ids ...string) error {
	if s == nil {
		return nil
	}
	for _, id := range ids {
		if err := s.delete(ctx, "kind = $1 AND thing = $2", string(kind), id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) delete(ctx context.Context, where string, args ...any) error {
	return s.db.Exec(ctx, "DELETE FROM shares WHERE "+where, args...)
}

// sweepInterval is how often shares of things that are gone are removed. Most ids are never
// used again, so it need not be in time.
const sweepInterval = time.Hour

// Run removes shares of things that are gone, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	for s.options.Clock.Sleep(ctx, sweepInterval) == nil {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "shares of deleted things not removed", "error", err)
		}
	}
}

// Sweep removes the shares of things that are gone.
func (s *Store) Sweep(ctx context.Context) error {
	list, err := s.list(ctx, "TRUE")
	if err != nil {
		return err
	}
	_, err = s.existing(ctx, list)
	return err
}

// existing returns the shares of a list whose things exist and still belong to the same
// owner, with their titles, and ends the others.
func (s *Store) existing(ctx context.Context, list []Share) (real []Share, err error) {
	ctx = principal.With(ctx, principal.Local()) // things are found by the names that shares have for them
	for _, one := range list {
		find := s.finders[one.Kind]
		if find == nil {
			continue
		}
		thing, err := find(ctx, one.name)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if err != nil || thing.Owner.ID != one.owner {
			if err := s.delete(ctx, "id = $1", one.ID); err != nil {
				return nil, err
			}
			continue
		}
		one.Title = thing.Title
		real = append(real, one)
	}
	return real, nil
}
