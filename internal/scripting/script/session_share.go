package script

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Nobody runs code in a session of somebody else, whatever is shared: functions that they
// leave there would run with the rights of the owner in the owner's next turn. They fork it,
// and go on in their own copy.

// shared returns the id of a session and its owner, if the caller may do something with it.
// For sessions that are not shared the owner is the caller, for whom they do not exist.
func (s *Sessions) shared(ctx context.Context, caller, ref string, wanted principal.Level) (id, owner string, err error) {
	if id, err = s.idOf(ctx, caller, ref); err != nil || s.options.Shares == nil {
		return id, caller, err
	}
	one, err := s.find(ctx, id)
	owner = one.Owner
	if errors.Is(err, sql.ErrNoRows) || err == nil && owner == caller {
		return id, caller, nil
	}
	if err != nil {
		return id, caller, err
	}
	level, err := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Session, id)
	switch {
	case err != nil || level == principal.Nothing:
		return id, caller, err
	case !level.Permits(wanted):
		name := s.options.NameOf(owner)
		return id, caller, fault.New(fault.Denied, "the session belongs to %s, who shares it with you to %s", name, level).
			WithHint("ask %s to share it with you to %s", name, wanted)
	}
	return id, owner, nil
}

// explain says why code does not run in a session that somebody else shares.
func (s *Sessions) explain(ctx context.Context, id string, err error) error {
	if s.options.Shares == nil || fault.CodeOf(err) != fault.NotFound {
		return err
	}
	level, problem := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Session, id)
	if problem != nil || level == principal.Nothing {
		return err // as it is: callers look at its type
	}
	return fault.New(fault.Denied, "the session belongs to somebody else").
		WithHint("session_fork makes a copy of your own, if its owner shares it with you to use it")
}

// sharedSessions returns the sessions that others share with the caller.
func (s *Sessions) sharedSessions(ctx context.Context, caller string) (list []Session, err error) {
	if s.options.Shares == nil {
		return nil, nil
	}
	who := principal.Of(ctx)
	ids, err := s.options.Shares.IDs(ctx, who, principal.Session)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		one, err := s.find(ctx, id)
		if errors.Is(err, sql.ErrNoRows) || err == nil && one.Owner == caller {
			continue
		}
		if err == nil {
			one.Sharer = s.options.NameOf(one.Owner)
			one.Shared, err = s.options.Shares.Level(ctx, who, principal.Session, id)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// find reads a session without its state, whoever owns it.
func (s *Sessions) find(ctx context.Context, id string) (one Session, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		one, err = s.scan(tx.QueryRow(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = $1 AND used > $2`, id, s.oldest()))
		return err
	})
	return one, err
}

// SharedSession finds a session, by its id or the caller's name for it, for those who share
// it.
func (s *Sessions) SharedSession(ctx context.Context, ref string) (principal.Thing, error) {
	caller := principal.Of(ctx).ID
	if caller == principal.LocalID {
		caller = ""
	}
	id, err := s.idOf(ctx, caller, ref)
	if err != nil {
		return principal.Thing{}, err
	}
	one, err := s.find(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return principal.Thing{}, errNoSession()
	}
	return principal.Thing{ID: id, Owner: principal.Owner{ID: cmp.Or(one.Owner, principal.LocalID), Org: one.Org}, Title: one.Name}, err
}
