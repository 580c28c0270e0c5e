package artifact

import (
	"context"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/store/db"
)

//go:embed fts5/migrations/*.sql
var fts5Migrations embed.FS

// fts5 is the index of words in SQLite: a contentless full-text table whose row ids are
// the artifacts' numbers.
type fts5 struct{}

func openFTS5(ctx context.Context, database *db.DB) (words, error) {
	files, err := fs.Sub(fts5Migrations, "fts5")
	if err != nil {
		return nil, err
	}
	return fts5{}, database.Migrate(ctx, "artifact_fts5", files)
}

func (fts5) tables() (names []string, number string) { return []string{texts, titles}, "rowid" }

// purge merges the parts of the index: until then they have the words of deleted rows. It
// does a little at a time, because others wait meanwhile.
func (f fts5) purge(ctx context.Context, database *db.DB) error {
	const pages = 200
	tables, _ := f.tables()
	for _, table := range tables {
		for step := -pages; ; step = pages { // a negative one merges all parts, also those of different sizes
			merged := false
			err := database.Write(ctx, func(tx *db.Tx) error {
				before, after := 0, 0
				if err := tx.QueryRow(ctx, "SELECT total_changes()").Scan(&before); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, "INSERT INTO "+table+" ("+table+", rank) VALUES ('merge', $1)", step); err != nil {
					return err
				}
				err := tx.QueryRow(ctx, "SELECT total_changes()").Scan(&after)
				merged = after-before >= 2 // the documentation of FTS5: fewer mean that there is nothing left to do
				return err
			})
			if err != nil {
				return err
			}
			if !merged {
				break
			}
		}
	}
	return nil
}

func (fts5) put(ctx context.Context, tx *db.Tx, a *Artifact) error {
	var said []string
	for i := range a.Annotations {
		said = append(said, a.Annotations[i].Message, a.Annotations[i].Vibe)
	}
	name, tags, parent := a.Name, strings.Join(a.Tags, " | "), written(a.Parent)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{"DELETE FROM artifact_words WHERE rowid = $1", []any{a.number}},
		{"DELETE FROM artifact_titles WHERE rowid = $1", []any{a.number}},
		{"INSERT INTO artifact_words (rowid, name, tags, description, annotations, creator, parent) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			[]any{a.number, name, tags, a.Description, strings.Join(said, "\n"), a.Creator, parent}},
		{"INSERT INTO artifact_titles (rowid, name, tags, creator, parent) VALUES ($1, $2, $3, $4, $5)",
			[]any{a.number, name, tags, a.Creator, parent}},
	} {
		if _, err := tx.Exec(ctx, statement.sql, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// find searches for all words as given, which streams the newest rows from the index
// and stops early. If too many artifacts match, those with the words in name or tags
// come first. If few match, it searches for the words as prefixes, and then for each
// word separately.
func (fts5) find(ctx context.Context, tx *db.Tx, q Query, wanted []string, limit int) ([]int64, error) {
	const few = 50
	rest := restriction(q)
	found, err := matching(ctx, tx, q.audience, texts, everywhere+exactly(wanted)+rest, limit)
	if err == nil && len(found) == limit {
		var first []int64
		first, err = matching(ctx, tx, q.audience, titles, inTitle+exactly(wanted)+rest, limit)
		return join(limit, first, found), err
	}
	if err == nil && len(found) < few {
		found, err = widen(ctx, tx, q.audience, found, limit, everywhere+beginning(wanted)+rest)
	}
	for _, word := range wanted {
		if err != nil || len(found) >= few || len(wanted) == 1 {
			break
		}
		found, err = widen(ctx, tx, q.audience, found, limit, everywhere+beginning([]string{word})+rest)
	}
	return found, err
}

// The columns that are searched.
const (
	texts      = "artifact_words"
	titles     = "artifact_titles"
	everywhere = "{name tags description annotations} : "
	inTitle    = "{name tags} : "
)

// exactly returns an FTS5 expression for all words. They are letters and digits only, so
// that nothing inside the quotes can be an operator.
func exactly(wanted []string) string { return `("` + strings.Join(wanted, `" AND "`) + `")` }

// beginning returns an FTS5 expression for words with the given prefixes.
func beginning(wanted []string) string { return `("` + strings.Join(wanted, `" * AND "`) + `" *)` }

// widen adds the matches of the expression to found.
func widen(ctx context.Context, tx *db.Tx, w audience, found []int64, limit int, expression string) ([]int64, error) {
	more, err := matching(ctx, tx, w, texts, expression, limit)
	return join(limit, found, more), err
}

// restriction adds the words of the query's other fields to the expression.
func restriction(q Query) string {
	var out strings.Builder
	for _, field := range q.fields() {
		column := field.column
		if column == "tag" {
			column = "tags"
		}
		if phrase := strings.Join(tokensInOrder(field.value), " "); phrase != "" {
			out.WriteString(" AND " + column + ` : "` + phrase + `"`)
		}
	}
	return out.String()
}

// tokensInOrder returns text as a phrase: its words, including repeated ones.
func tokensInOrder(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '"' || r < ' ' || strings.ContainsRune(" :/_-.,;'()", r) })
}

func matching(ctx context.Context, tx *db.Tx, w audience, table, expression string, limit int) ([]int64, error) {
	seen, args := "", []any{expression, limit}
	if !w.all() {
		sees, more := w.sees("a", len(args))
		seen, args = " AND EXISTS (SELECT 1 FROM artifacts a WHERE a.number = "+table+".rowid AND "+sees+")", append(args, more...)
	}
	return db.All(ctx, tx, db.Column[int64], "SELECT rowid FROM "+table+" WHERE "+table+" MATCH $1"+seen+" ORDER BY rowid DESC LIMIT $2", args...)
}

func join(limit int, first, second []int64) []int64 {
	seen := make(map[int64]bool, limit)
	var joined []int64
	for _, number := range slices.Concat(first, second) {
		if !seen[number] && len(joined) < limit {
			seen[number] = true
			joined = append(joined, number)
		}
	}
	return joined
}
