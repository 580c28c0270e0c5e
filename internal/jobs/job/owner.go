package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

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
