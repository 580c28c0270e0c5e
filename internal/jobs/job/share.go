package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// storeOwner stores the owner of a job or schedule, in the transaction that stores the row
// itself. A job without such a row belongs to the local owner.
func storeOwner(ctx context.Context, tx *db.Tx, id string) error {
	who := principal.Of(ctx)
	if who.ID == principal.LocalID && who.Person == "" {
		return nil
	}
	asker, err := json.Marshal(who)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO job_owners (id, owner, asker, person) VALUES ($1, $2, $3, $4)", id, who.ID, string(asker), who.Person)
	return err
}

// askerOf returns the principal that created a job or schedule, with its rights then.
func askerOf(ctx context.Context, tx *db.Tx, id string) (who principal.Principal, err error) {
	var asker string
	err = tx.QueryRow(ctx, "SELECT asker FROM job_owners WHERE id = $1", id).Scan(&asker)
	if errors.Is(err, sql.ErrNoRows) {
		return principal.Local(), nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(asker), &who)
	}
	return who, err
}

// ownerOf returns the principal that owns a job, as it is stored in asker, or "".
func ownerOf(asker string) (who principal.Principal, err error) {
	if asker == "" {
		return principal.Local(), nil
	}
	return who, json.Unmarshal([]byte(asker), &who)
}

// asOwner returns ctx with the principal that created a job and its current rights. The
// error says that it has none any more.
func (q *Queue) asOwner(ctx context.Context, id string) (context.Context, error) {
	var who principal.Principal
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		who, err = askerOf(ctx, tx, id)
		return err
	})
	if err != nil {
		return ctx, fault.Wrap(fault.Unavailable, err, "read the owner of job %s", id)
	}
	if who.ID == principal.LocalID && who.Person == "" {
		return ctx, nil
	}
	if q.options.CurrentPrincipal != nil {
		if who, err = q.options.CurrentPrincipal(ctx, who); err != nil {
			return ctx, err
		}
	}
	return principal.With(ctx, who), nil
}

// ofOwner restricts a query over jobs or schedules to those of the caller. args are
// the query's arguments so far.
func ofOwner(ctx context.Context, where string, args []any) (string, []any) {
	who := principal.Of(ctx)
	if seesAll(who) {
		return where, args
	}
	mine, args := ownedBy(who, args)
	return where + " AND " + mine, args
}

// seesAll reports whether the caller may do everything with all jobs.
func seesAll(who principal.Principal) bool { return who.Admin() && who.Person == "" }

func ownedBy(who principal.Principal, args []any) (string, []any) {
	args = append(args, who.ID)
	mine := fmt.Sprintf("owner = $%d", len(args))
	if who.Person != "" {
		args = append(args, who.Person)
		mine += fmt.Sprintf(" AND person = $%d", len(args))
	}
	return "id IN (SELECT id FROM job_owners WHERE " + mine + ")", args
}

// Sharing says how a job or schedule of somebody else is seen. It is zero for one's own.
type Sharing struct {
	Owner string          // name of the owner
	Level principal.Level // what its owner permits
}

// check returns an error if the caller may not do something with jobs, or schedules. Those
// of others that are not shared with the caller do not exist.
func (q *Queue) check(ctx context.Context, kind principal.Kind, wanted principal.Level, ids ...string) error {
	who := principal.Of(ctx)
	if seesAll(who) {
		return nil
	}
	owners, err := q.owners(ctx, ids)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "read the owners of jobs")
	}
	var others []string
	for i, id := range ids {
		if who.OwnsOf(owners[i]) {
			continue
		}
		level, err := q.level(ctx, kind, id)
		switch {
		case err != nil:
			return err
		case level == principal.Nothing:
			others = append(others, id)
		case !level.Permits(wanted):
			return fault.New(fault.Denied, "the %s %s belongs to %s, who shares it with you to %s", kind, id, owners[i].Name, level).
				WithHint("ask %s to share it with you to %s", owners[i].Name, wanted)
		}
	}
	switch {
	case len(others) == 0:
		return nil
	case kind == principal.Schedule:
		return unknownSchedule(others[0])
	}
	return unknown(others...)
}

// owners returns who created jobs or schedules.
func (q *Queue) owners(ctx context.Context, ids []string) (list []principal.Principal, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		for _, id := range ids {
			who, err := askerOf(ctx, tx, id)
			if err != nil {
				return err
			}
			list = append(list, who)
		}
		return nil
	})
	return list, err
}

// level returns what is shared with the caller of a job or schedule of somebody else.
func (q *Queue) level(ctx context.Context, kind principal.Kind, id string) (principal.Level, error) {
	if q.options.Shares == nil {
		return principal.Nothing, nil
	}
	return q.options.Shares.Level(ctx, principal.Of(ctx), kind, id)
}

// sharing returns how the caller sees a job or schedule of an owner.
func (q *Queue) sharing(ctx context.Context, kind principal.Kind, id string, owner principal.Owner, name string) (Sharing, error) {
	if who := principal.Of(ctx); q.options.Shares == nil || seesAll(who) || who.OwnsOf(principal.Principal{ID: owner.ID, Person: owner.Person}) {
		return Sharing{}, nil
	}
	level, err := q.level(ctx, kind, id)
	return Sharing{name, level}, err
}

// visible restricts a query over jobs or schedules to those of the caller and those that
// are shared with the caller. args are the query's arguments so far.
func (q *Queue) visible(ctx context.Context, kind principal.Kind, where string, args []any) (string, []any, error) {
	who := principal.Of(ctx)
	if q.options.Shares == nil || seesAll(who) {
		where, args = ofOwner(ctx, where, args)
		return where, args, nil
	}
	ids, err := q.options.Shares.IDs(ctx, who, kind)
	if err != nil || len(ids) == 0 {
		where, args = ofOwner(ctx, where, args)
		return where, args, err
	}
	mine, args := ownedBy(who, args)
	var marks []string
	for _, id := range ids {
		args = append(args, id)
		marks = append(marks, fmt.Sprintf("$%d", len(args)))
	}
	return where + " AND (" + mine + " OR id IN (" + strings.Join(marks, ", ") + "))", args, nil
}

// SharedJob finds a job for those who share it.
func (q *Queue) SharedJob(ctx context.Context, id string) (principal.Thing, error) {
	return q.thing(ctx, "jobs", id, unknown(id))
}

// SharedSchedule finds a schedule for those who share it.
func (q *Queue) SharedSchedule(ctx context.Context, id string) (principal.Thing, error) {
	return q.thing(ctx, "job_schedules", id, unknownSchedule(id))
}

// MayChange returns why the caller cannot change a job or a schedule: there is none of that
// id, or it is somebody else's.
func (q *Queue) MayChange(ctx context.Context, kind principal.Kind, id string) error {
	find := q.SharedJob
	if kind == principal.Schedule {
		find = q.SharedSchedule
	}
	if err := q.check(ctx, kind, principal.Edit, id); err != nil {
		return err
	}
	_, err := find(ctx, id)
	return err
}

func (q *Queue) thing(ctx context.Context, table, id string, missing error) (t principal.Thing, err error) {
	t.ID = id
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT name FROM "+table+" WHERE id = $1", id).Scan(&t.Title); err != nil {
			return err
		}
		who, err := askerOf(ctx, tx, id)
		t.Owner = who.Owner()
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return t, missing
	}
	return t, err
}
