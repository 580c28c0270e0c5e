package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
)

// ownerOf returns whose something is that is stored in ctx. What the program stores by
// itself, without a principal, belongs to nobody: everybody sees it.
func ownerOf(ctx context.Context) principal.Owner {
	if !principal.Known(ctx) {
		return principal.Owner{}
	}
	return principal.OwnerOf(ctx)
}

// audience is who asks. It is what principal.Sees decides, as a condition on the columns
// owner, person and org, together with what belongs to nobody and what others share.
type audience struct {
	who    principal.Principal
	own    principal.Owner // whose things are that the caller stores
	shared []sharedThing   // what others of the organisation share
}

// sharedThing is an artifact that is shared: how shares name it, the first digits of its hash,
// and the ID of its owner. The same content of others is not shared.
type sharedThing struct{ id, digits, owner string }

// nameForShares returns how shares name an artifact: its hash and its owner.
func nameForShares(ref cas.Ref, owner string) string {
	return strings.TrimSpace(ref.String() + " " + owner)
}

// everything is the audience of the program itself.
var everything = audience{who: principal.Local()}

// audience returns who asks in ctx.
func (s *Store) audience(ctx context.Context) (audience, error) {
	w := audience{who: principal.Of(ctx), own: ownerOf(ctx)}
	if s.shares == nil || w.all() {
		return w, nil
	}
	ids, err := s.shares.IDs(ctx, w.who, principal.Artifact)
	for _, id := range ids {
		hash, owner, _ := strings.Cut(id, " ")
		if digits, err := cas.ParsePrefix(strings.TrimPrefix(hash, idPrefix)); err == nil {
			w.shared = append(w.shared, sharedThing{id, digits, owner})
		}
	}
	return w, err
}

// all reports whether the caller sees everything, so that no condition is necessary.
func (w audience) all() bool { return w.who.SeesAll() }

// sees returns the condition on the rows of a table that the caller sees, as SQL; n
// arguments come before its own.
func (w audience) sees(table string, n int) (sql string, args []any) {
	if w.all() {
		return "1 = 1", nil
	}
	value := func(v string) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", n+len(args))
	}
	own := table + ".owner = " + value(w.who.ID)
	switch {
	case w.who.SeesOrg():
		args = nil
		own = table + ".org = " + value(w.who.Org)
	case w.who.Org != "":
		own += " AND " + table + ".org = " + value(w.who.Org)
	}
	if w.who.Person != "" {
		own += " AND " + table + ".person = " + value(w.who.Person)
	}
	seen := []string{table + ".owner = ''", own}
	for _, thing := range w.shared {
		seen = append(seen, fmt.Sprintf("%[1]s.hash >= %[2]s AND %[1]s.hash < %[3]s AND %[1]s.org = %[4]s AND %[1]s.owner = %[5]s",
			table, value(thing.digits), value(thing.digits+"g"), value(w.who.ActingOrg()), value(thing.owner)))
	}
	return "(" + strings.Join(seen, " OR ") + ")", args
}

// rowsOf returns the query for the rows of one content in a table that the caller sees:
// first the caller's own. More can be added to the order.
func (w audience) rowsOf(table, columns string, ref cas.Ref) (query string, args []any) {
	sees, more := w.sees(table, 1)
	args = append(append([]any{ref.String()}, more...), w.own.ID, w.own.Person, w.own.Org)
	n := len(args)
	return fmt.Sprintf("SELECT %s FROM %s WHERE hash = $1 AND %s ORDER BY CASE WHEN owner = $%d AND person = $%d AND org = $%d THEN 0 ELSE 1 END",
		columns, table, sees, n-2, n-1, n), args
}

// shareOf returns how shares name an artifact of somebody else that the caller sees through
// one; "" without one.
func (w audience) shareOf(a *Artifact) string {
	at := slices.IndexFunc(w.shared, func(thing sharedThing) bool {
		return strings.HasPrefix(a.Hash.String(), thing.digits) && thing.owner == a.Owner.ID
	})
	if at < 0 || a.Owner.Org != w.who.ActingOrg() || w.who.Sees(a.Owner) || a.Owner == (principal.Owner{}) {
		return ""
	}
	return w.shared[at].id
}

// Shared returns what the caller may do with an artifact that somebody else shares with
// them; Nothing if they need no share to see it.
func (s *Store) Shared(ctx context.Context, a *Artifact) (principal.Level, error) {
	w, err := s.audience(ctx)
	if id := w.shareOf(a); err == nil && id != "" {
		return s.shares.Level(ctx, w.who, principal.Artifact, id)
	}
	return principal.Nothing, err
}

// SharedArtifact finds an artifact for those who share it: by what the caller calls it, or as
// shares name it.
func (s *Store) SharedArtifact(ctx context.Context, id string) (t principal.Thing, err error) {
	hash, owner, named := strings.Cut(id, " ")
	ref, err := s.Resolve(ctx, hash)
	if err != nil {
		return t, err
	}
	if !named {
		a, err := s.Get(ctx, ref)
		return principal.Thing{ID: nameForShares(ref, a.Owner.ID), Owner: a.Owner, Title: a.Name}, err
	}
	t.ID = nameForShares(ref, owner)
	err = s.db.QueryRow(ctx, "SELECT name, owner, person, org FROM artifacts WHERE hash = $1 AND owner = $2 ORDER BY number LIMIT 1", ref.String(), owner).
		Scan(&t.Title, &t.Owner.ID, &t.Owner.Person, &t.Owner.Org)
	if errors.Is(err, sql.ErrNoRows) {
		return t, fault.New(fault.NotFound, "no artifact %s", ref.Short())
	}
	return t, err
}

// mayChange refuses to change an artifact that the caller only sees. Those of nobody are
// everybody's, as they always were.
func (s *Store) mayChange(ctx context.Context, w audience, a *Artifact) error {
	switch {
	case a.Owner == (principal.Owner{}), a.Owner == w.own, w.who.Person == "" && (w.who.Admin() || a.Owner.Org != "" && w.who.May(principal.Org, a.Owner.Org)):
		return nil
	case w.shareOf(a) != "":
		if level, err := s.shares.Level(ctx, w.who, principal.Artifact, w.shareOf(a)); err != nil || level.Permits(principal.Edit) {
			return err
		}
	}
	return fault.New(fault.Denied, "the artifact %s belongs to somebody else", a.Hash.Short()).
		WithHint("store the content again to have an artifact of your own, or ask its owner to share it with edit")
}
