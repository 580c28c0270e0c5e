package artifact

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/store/db"
)

//go:embed tsvector/migrations/*.sql
var tsvectorMigrations embed.FS

// tsvector is the index of words in Postgres. The words are split here, so that they are
// the same as the ranked ones.
type tsvector struct{}

func openTSVector(ctx context.Context, database *db.DB) (words, error) {
	files, err := fs.Sub(tsvectorMigrations, "tsvector")
	if err != nil {
		return nil, err
	}
	return tsvector{}, database.Migrate(ctx, "artifact_tsvector", files)
}

func (tsvector) tables() (names []string, number string) { return []string{"artifact_words"}, "number" }

// purge does nothing: Postgres does it by itself (VACUUM).
func (tsvector) purge(context.Context, *db.DB) error { return nil }

func (tsvector) put(ctx context.Context, tx *db.Tx, a *Artifact) error {
	said := append([]string{a.Name, a.Description}, a.Tags...)
	for i := range a.Annotations {
		said = append(said, a.Annotations[i].Message, a.Annotations[i].Vibe)
	}
	_, err := tx.Exec(ctx, `INSERT INTO artifact_words (number, words) VALUES ($1, array_to_tsvector($2))
		ON CONFLICT (number) DO UPDATE SET words = excluded.words`, a.number, lexemes(strings.Join(said, "\n")))
	return err
}

// lexemes returns the words of a text, each once, without those that are too long for
// Postgres.
func lexemes(text string) []string {
	const longest = 255
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	all = slices.DeleteFunc(all, func(word string) bool { return len(word) > longest })
	slices.Sort(all)
	return slices.Compact(all)
}

// find searches for all words as given, then for words with these prefixes, and then for
// each of them.
func (tsvector) find(ctx context.Context, tx *db.Tx, q Query, wanted []string, limit int) ([]int64, error) {
	const few = 50
	searches := []string{`'` + strings.Join(wanted, `' & '`) + `'`, `'` + strings.Join(wanted, `':* & '`) + `':*`}
	if len(wanted) > 1 {
		for _, word := range wanted {
			searches = append(searches, `'`+word+`':*`)
		}
	}
	var found []int64
	for i, search := range searches {
		if i > 0 && len(found) >= few {
			break
		}
		more, err := tsMatching(ctx, tx, q, search, limit)
		if err != nil {
			return nil, err
		}
		found = join(limit, found, more)
	}
	return found, nil
}

// tsMatching returns the newest artifacts that match the expression and the rest of the
// query. Words are letters and digits, so they cannot end the quotes.
func tsMatching(ctx context.Context, tx *db.Tx, q Query, search string, limit int) ([]int64, error) {
	var given []filter
	for _, f := range q.fields() {
		if f.value != "" {
			given = append(given, f)
		}
	}
	column, from, where, args := joinedBy(given, q.audience)
	args = append(args, search, limit)
	where = append(where, fmt.Sprintf("EXISTS (SELECT 1 FROM artifact_words w WHERE w.number = %s AND w.words @@ $%d::TEXT::TSQUERY)", column, len(args)-1))
	return db.All(ctx, tx, db.Column[int64], fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s DESC LIMIT $%d", column, from, conditions(where), column, len(args)), args...)
}
