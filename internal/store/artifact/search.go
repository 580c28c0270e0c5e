package artifact

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Query selects artifacts. Empty fields match all; the others must all match.
type Query struct {
	Tags    []string // all of them
	Without string   // a tag that it does not have
	Creator string
	Parent  cas.Ref
	Name    string
	MIME    []string // types, of which one must match and none that begins with "!"; % stands for any text
	Vibe    string   // words to find in name, tags, description and annotations
	Limit   int      // of one page; zero means 20, and the maximum is 200
	Cursor  string   // Page.Next of the previous page

	audience audience // who asks
}

// Page is one page of results: the best first with a Vibe, otherwise the newest first.
type Page struct {
	Artifacts []Artifact
	Total     int    // on all pages, up to MaxCounted
	Next      string // Cursor of the next page; "" at the end
}

// MaxCounted is the number at which counting stops, because counting further is slow.
const MaxCounted = 1000

// maxRanked is the maximum number of artifacts that are ranked. If more match, the
// newest are ranked.
const maxRanked = 200

// Search returns a page of the artifacts that match the query.
func (s *Store) Search(ctx context.Context, q Query) (page Page, err error) {
	if q.Limit <= 0 {
		q.Limit = 20
	}
	q.Limit = min(q.Limit, 200)
	after, err := readCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	if q.audience, err = s.audience(ctx); err != nil {
		return Page{}, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		if wanted := tokens(q.Vibe); len(wanted) > 0 {
			page, err = s.ranked(ctx, tx, q, wanted, after)
		} else {
			page, err = newest(ctx, tx, q, after)
		}
		return err
	})
	return page, err
}

// Tags lists tags that begin with prefix, the most used first.
func (s *Store) Tags(ctx context.Context, prefix string, limit int) (tags []string, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return nil, err
	}
	seen, args := "", []any{prefix, prefix + "\U0010FFFF", limit}
	if !w.all() {
		sees, more := w.sees("a", len(args))
		seen, args = " AND EXISTS (SELECT 1 FROM artifacts a WHERE a.number = t.number AND "+sees+")", append(args, more...)
	}
	return db.Find(ctx, s.db, db.Column[string], `SELECT t.tag FROM artifact_tags t WHERE t.tag >= $1 AND t.tag < $2`+seen+`
			GROUP BY t.tag ORDER BY COUNT(*) DESC, t.tag LIMIT $3`, args...)
}

// newest returns the artifacts that match the query, newest first.
func newest(ctx context.Context, tx *db.Tx, q Query, after cursor) (Page, error) {
	filters, err := q.filters(ctx, tx)
	if err != nil {
		return Page{}, err
	}
	total, err := count(ctx, tx, filters, q.audience)
	if err != nil {
		return Page{}, err
	}
	page := Page{Total: total}
	column, from, where, args := joinedBy(filters, q.audience)
	if after.number > 0 {
		args = append(args, after.number)
		where = append(where, fmt.Sprintf("%s < $%d", column, len(args)))
	}
	args = append(args, q.Limit+1)
	found, err := db.All(ctx, tx, scanRow, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s DESC LIMIT $%d",
		prefixed(columns), from, conditions(where), column, len(args)), args...)
	if err != nil {
		return Page{}, err
	}
	if len(found) > q.Limit {
		found = found[:q.Limit]
		page.Next = cursor{number: found[q.Limit-1].number}.String()
	}
	page.Artifacts = found
	for i := range found {
		if err := loadDetails(ctx, tx, &found[i]); err != nil {
			return Page{}, err
		}
	}
	return page, nil
}

func prefixed(columns string) string {
	return "a." + strings.ReplaceAll(columns, ", ", ", a.")
}

// ranked returns the artifacts that contain the words, best first. Those that contain
// all words come before those that contain some.
func (s *Store) ranked(ctx context.Context, tx *db.Tx, q Query, wanted []string, after cursor) (Page, error) {
	numbers, err := s.candidates(ctx, tx, q, wanted)
	if err != nil {
		return Page{}, err
	}
	hits, mine := make([]hit, 0, len(numbers)), map[cas.Ref]bool{}
	err = eachCandidate(ctx, tx, numbers, func(a *Artifact) {
		if score := score(a, wanted); score > 0 && q.fits(a) {
			hits = append(hits, hit{score, a})
			mine[a.Hash] = mine[a.Hash] || a.Owner == q.audience.own
		}
	})
	if err != nil {
		return Page{}, err
	}
	nobody := principal.Owner{}
	hits = slices.DeleteFunc(hits, func(h hit) bool {
		return h.artifact.Owner == nobody && q.audience.own != nobody && mine[h.artifact.Hash]
	})
	slices.SortFunc(hits, hit.compare)
	page := Page{Total: len(hits)}
	if after.number > 0 {
		last := hit{after.score, &Artifact{number: after.number}}
		hits = hits[firstAfter(hits, last):]
	}
	if len(hits) > q.Limit {
		last := hits[q.Limit-1]
		hits, page.Next = hits[:q.Limit], cursor{last.score, last.artifact.number}.String()
	}
	page.Artifacts = make([]Artifact, len(hits))
	for i, h := range hits {
		page.Artifacts[i] = *h.artifact
	}
	return page, nil
}

// candidates returns the artifacts to rank: all that match the query's other fields if
// one of these is selective, otherwise those that the index of words finds.
func (s *Store) candidates(ctx context.Context, tx *db.Tx, q Query, wanted []string) ([]int64, error) {
	filters, err := q.filters(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(filters) == 0 || filters[0].count >= maxRanked {
		return s.words.find(ctx, tx, q, wanted, maxRanked)
	}
	column, from, where, args := joinedBy(filters, q.audience)
	return db.All(ctx, tx, db.Column[int64], fmt.Sprintf("SELECT %s FROM %s%s", column, from, conditions(where)), args...)
}

func firstAfter(hits []hit, last hit) int {
	i, found := slices.BinarySearchFunc(hits, last, hit.compare)
	if found {
		i++
	}
	return i
}

// fits reports whether an artifact matches exactly: the index of words is approximate.
func (q Query) fits(a *Artifact) bool {
	hasTag := func(tag string) bool { return slices.Contains(a.Tags, tag) }
	return !slices.ContainsFunc(q.Tags, func(tag string) bool { return !hasTag(tag) }) && (q.Without == "" || !hasTag(q.Without)) &&
		(q.Creator == "" || q.Creator == a.Creator) &&
		(q.Parent.IsZero() || q.Parent == a.Parent) &&
		(q.Name == "" || q.Name == a.Name) && fitsMIME(q.MIME, a.MIME)
}

// cursor is the last artifact of a page.
type cursor struct {
	score  int
	number int64
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", c.score, c.number))
}

func readCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%d.%d", &c.score, &c.number)
	}
	if err != nil || c.number < 1 {
		return c, fault.New(fault.InvalidParams, "%.40q is not a cursor", text).WithHint("begin again without a cursor")
	}
	return c, nil
}

// eachCandidate calls do for every artifact of the given numbers, complete with
// tags and annotations. It needs three statements for all of them.
func eachCandidate(ctx context.Context, tx *db.Tx, numbers []int64, do func(*Artifact)) error {
	if len(numbers) == 0 {
		return nil
	}
	in := " WHERE number IN (" + joined(numbers) + ")"
	rows, err := db.All(ctx, tx, scanRow, "SELECT "+columns+" FROM artifacts"+in)
	if err != nil {
		return err
	}
	byNumber := make(map[int64]*Artifact, len(rows))
	for i := range rows {
		byNumber[rows[i].number] = &rows[i]
	}
	if err := attachTags(ctx, tx, in, byNumber); err != nil {
		return err
	}
	if err := attachAnnotations(ctx, tx, in, byNumber); err != nil {
		return err
	}
	for i := range rows {
		do(&rows[i])
	}
	return nil
}

func attachTags(ctx context.Context, tx *db.Tx, in string, byNumber map[int64]*Artifact) error {
	_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
		var number int64
		var tag string
		if err := row.Scan(&number, &tag); err != nil {
			return none, err
		}
		a := byNumber[number]
		a.Tags = append(a.Tags, tag)
		return none, nil
	}, "SELECT number, tag FROM artifact_tags"+in+" ORDER BY number, tag")
	return err
}

func attachAnnotations(ctx context.Context, tx *db.Tx, in string, byNumber map[int64]*Artifact) error {
	_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
		var number int64
		n, err := scanAnnotation(prefixScanner{row, &number})
		if err == nil {
			a := byNumber[number]
			a.Annotations = append(a.Annotations, n)
		}
		return none, err
	}, "SELECT number, message, vibe, source, created_at FROM artifact_annotations"+in+" ORDER BY number, place")
	return err
}

// prefixScanner reads one more column before the requested ones.
type prefixScanner struct {
	row   db.Scanner
	first any
}

func (p prefixScanner) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

func joined(numbers []int64) string {
	var out strings.Builder
	for i, number := range numbers {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatInt(number, 10))
	}
	return out.String()
}

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
	if q.Without != "" {
		given = append(given, filter{column: "without", value: q.Without, count: MaxCounted}) // likewise
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
	if len(filters) == 1 && filters[0].column == "tag" && w.all() && w.own == (principal.Owner{}) { // needs no access to artifacts
		column, from, where = "number", "artifact_tags", []string{"tag = $1"}
	}
	err = tx.QueryRow(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT %s FROM %s%s ORDER BY %s DESC LIMIT %d) AS first",
		column, from, conditions(where), column, MaxCounted), args...).Scan(&total)
	return total, err
}

// joinedBy returns the filters as SQL, for the artifacts that somebody sees, and the column
// to order by. What belongs to nobody is left out if the caller has the same.
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
		case f.column == "without":
			where = append(where, fmt.Sprintf("NOT EXISTS (SELECT 1 FROM artifact_tags t WHERE t.tag = $%d AND t.number = a.number)", len(args)))
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
	if w.own != (principal.Owner{}) {
		where = append(where, fmt.Sprintf("NOT (a.owner = '' AND EXISTS (SELECT 1 FROM artifacts mine WHERE mine.hash = a.hash AND mine.owner = $%d AND mine.person = $%d AND mine.org = $%d))",
			len(args)+1, len(args)+2, len(args)+3))
		args = append(args, w.own.ID, w.own.Person, w.own.Org)
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
