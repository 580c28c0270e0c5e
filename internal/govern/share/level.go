package share

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

var _ principal.Shares = (*Store)(nil)

// Level returns what p may do with a thing that somebody else owns: the most that a share
// of p's organisation gives to p, a role of p or everybody.
func (s *Store) Level(ctx context.Context, p principal.Principal, kind principal.Kind, id string) (most principal.Level, err error) {
	names, org := s.identities(p)
	if len(names) == 0 {
		return principal.Nothing, nil
	}
	type given struct {
		recipient string
		may       principal.Level
	}
	var list []given
	list, err = db.Find(ctx, s.db, func(row db.Scanner) (g given, err error) { return g, row.Scan(&g.recipient, &g.may) },
		"SELECT recipient, may FROM shares WHERE kind = $1 AND thing = $2 AND org = $3", string(kind), id, org)
	for _, g := range list {
		if slices.Contains(names, g.recipient) && g.may.Permits(principal.See) && !most.Permits(g.may) {
			most = g.may
		}
	}
	return most, err
}

// IDs returns the things of a kind that others share with p, the newest 1000.
func (s *Store) IDs(ctx context.Context, p principal.Principal, kind principal.Kind) (ids []string, err error) {
	names, org := s.identities(p)
	if len(names) == 0 {
		return nil, nil
	}
	where, args := withOneOf(names, org, p.ID, string(kind))
	return db.Find(ctx, s.db, db.Column[string],
		"SELECT thing FROM shares WHERE "+where+" AND kind = $3 GROUP BY thing ORDER BY max(created) DESC, thing LIMIT 1000", args...)
}

// withOneOf is the condition for shares of an organisation with one of several recipients,
// whose things are those of others. Further arguments follow org and self.
func withOneOf(names []string, org, self string, more ...any) (where string, args []any) {
	args = append([]any{org, self}, more...)
	var marks []string
	for _, name := range names {
		args = append(args, name)
		marks = append(marks, fmt.Sprintf("$%d", len(args)))
	}
	return "org = $1 AND owner <> $2 AND recipient IN (" + strings.Join(marks, ", ") + ")", args
}
