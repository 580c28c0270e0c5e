package artifact

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Query selects artifacts. Empty fields match all; the others must all match.
type Query struct {
	Tags    []string // all of them
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
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		tags, err = db.All(ctx, tx, scanText, `SELECT t.tag FROM artifact_tags t WHERE t.tag >= $1 AND t.tag < $2`+seen+`
			GROUP BY t.tag ORDER BY COUNT(*) DESC, t.tag LIMIT $3`, args...)
		return err
	})
	return tags, err
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
	hits := make([]hit, 0, len(numbers))
	err = eachCandidate(ctx, tx, numbers, func(a *Artifact) {
		if score := score(a, wanted); score > 0 && q.fits(a) {
			hits = append(hits, hit{score, a})
		}
	})
	if err != nil {
		return Page{}, err
	}
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
	return db.All(ctx, tx, scanNumber, fmt.Sprintf("SELECT %s FROM %s%s", column, from, conditions(where)), args...)
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
	return !slices.ContainsFunc(q.Tags, func(tag string) bool { return !hasTag(tag) }) &&
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
