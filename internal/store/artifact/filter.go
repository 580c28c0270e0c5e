package artifact

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/store/db"
)

// filter is a condition on one field of a query. An index in the order of the artifacts'
// numbers answers each.
type filter struct {
	column string // of artifacts, or "tag"
	value  string
	count  int // number of matching artifacts, up to MaxCounted
}

// filters returns the conditions of a query, the most selective first: it drives the
// query, and the others are looked up for its rows. Of equals the tag comes last, because
// it is the fastest to look up.
func (q Query) filters(ctx context.Context, tx *db.Tx) (given []filter, err error) {
	for _, f := range q.fields() {
		if f.value == "" {
			continue
		}
		if f.count, err = count(ctx, tx, []filter{f}, everything); err != nil {
			return nil, err
		}
		given = append(given, f)
	}
	if len(q.MIME) > 0 {
		given = append(given, filter{column: "mime", value: strings.Join(q.MIME, " "), count: MaxCounted}) // no index answers it
	}
	slices.SortStableFunc(given, func(a, b filter) int { return cmp.Compare(a.count, b.count) })
	return given, nil
}

func (q Query) fields() []filter {
	fields := []filter{{column: "parent", value: written(q.Parent)}, {column: "name", value: q.Name}, {column: "creator", value: q.Creator}}
	for _, tag := range q.Tags {
		fields = append(fields, filter{column: "tag", value: tag})
	}
	return fields
}

// count returns the number of artifacts that match all filters and that somebody sees, up
// to MaxCounted.
func count(ctx context.Context, tx *db.Tx, filters []filter, w audience) (total int, err error) {
	column, from, where, args := joinedBy(filters, w)
	if len(filters) == 1 && filters[0].column == "tag" && w.all() { // needs no access to artifacts
		column, from, where = "number", "artifact_tags", []string{"tag = $1"}
	}
	err = tx.QueryRow(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT %s FROM %s%s ORDER BY %s DESC LIMIT %d) AS first",
		column, from, conditions(where), column, MaxCounted), args...).Scan(&total)
	return total, err
}

// joinedBy returns the filters as SQL, for the artifacts that somebody sees, and the column
// to order by.
func joinedBy(filters []filter, w audience) (column, from string, where []string, args []any) {
	column, from = "a.number", "artifacts a"
	for i, f := range filters {
		if f.column == "mime" {
			condition, values := mimeCondition(strings.Fields(f.value), len(args))
			where, args = append(where, condition), append(args, values...)
			continue
		}
		args = append(args, f.value)
		switch {
		case f.column != "tag":
			where = append(where, fmt.Sprintf("a.%s = $%d", f.column, len(args)))
		case i == 0:
			column, from = "t.number", "artifact_tags t CROSS JOIN artifacts a"
			where = append(where, "t.number = a.number", fmt.Sprintf("t.tag = $%d", len(args)))
		default:
			where = append(where, fmt.Sprintf("EXISTS (SELECT 1 FROM artifact_tags t WHERE t.tag = $%d AND t.number = a.number)", len(args)))
		}
	}
	if !w.all() {
		sees, values := w.sees("a", len(args))
		where, args = append(where, sees), append(args, values...)
	}
	return column, from, where, args
}

func conditions(where []string) string {
	if len(where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(where, " AND ")
}

// mimeCondition returns the condition on types as SQL; n arguments come before its own.
func mimeCondition(patterns []string, n int) (sql string, args []any) {
	var wanted, others []string
	for _, p := range patterns {
		if other, not := strings.CutPrefix(p, "!"); not {
			args = append(args, other)
			others = append(others, fmt.Sprintf("a.mime NOT LIKE $%d", n+len(args)))
			continue
		}
		args = append(args, p)
		wanted = append(wanted, fmt.Sprintf("a.mime LIKE $%d", n+len(args)))
	}
	if len(wanted) > 0 {
		others = append(others, "("+strings.Join(wanted, " OR ")+")")
	}
	return strings.Join(others, " AND "), args
}

// fitsMIME reports whether a type matches patterns.
func fitsMIME(patterns []string, mime string) bool {
	wanted, fits := false, false
	for _, p := range patterns {
		other, not := strings.CutPrefix(p, "!")
		if not && Like(other, mime) {
			return false
		}
		wanted, fits = wanted || !not, fits || !not && Like(p, mime)
	}
	return !wanted || fits
}

// Like is LIKE of SQL for patterns with at most one %.
func Like(pattern, text string) bool {
	before, after, any := strings.Cut(pattern, "%")
	if !any {
		return pattern == text
	}
	return len(text) >= len(before)+len(after) && strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
}
