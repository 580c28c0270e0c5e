package artifact

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/store/db"
)

// words is the index of all words of the metadata: the only part whose SQL differs
// between databases.
type words interface {
	// put indexes the current words of a, which may be indexed already.
	put(ctx context.Context, tx *db.Tx, a *Artifact) error
	// find returns the numbers of at most limit artifacts with words that begin with
	// the given ones. Those that have all of them come before those that have some.
	// It may apply the rest of q only approximately: the caller checks its results
	// against q and ranks them, so their order does not matter.
	find(ctx context.Context, tx *db.Tx, q Query, wanted []string, limit int) ([]int64, error)
	// tables returns the names of the tables, and that of their column with numbers.
	tables() (names []string, number string)
	// purge removes what deleted rows have left in the index.
	purge(ctx context.Context, database *db.DB) error
}

// forgetWords deletes the words of an artifact.
func (s *Store) forgetWords(ctx context.Context, tx *db.Tx, number int64) error {
	tables, column := s.words.tables()
	for _, table := range tables {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE "+column+" = $1", number); err != nil {
			return err
		}
	}
	return nil
}

// maxWords is the maximum number of words of a query.
const maxWords = 16

// tokens splits text into words: letters and digits, in lower case, each once.
func tokens(text string) []string {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var once []string
	for _, part := range parts {
		if !slices.Contains(once, part) && len(once) < maxWords {
			once = append(once, part)
		}
	}
	return once
}

// hit is an artifact with its score.
type hit struct {
	score    int
	artifact *Artifact
}

// compare orders by score, and then the newer first.
func (h hit) compare(other hit) int {
	if h.score != other.score {
		return cmp.Compare(other.score, h.score)
	}
	return cmp.Compare(other.artifact.number, h.artifact.number)
}

// The scores of a word by its place. One more matching word counts more than the place.
const (
	wordWorth        = 100
	nameWorth        = 12
	tagWorth         = 8
	descriptionWorth = 4
	annotationWorth  = 3
	wholeNameWorth   = 50
)

// score returns how well an artifact matches the words.
func score(a *Artifact, wanted []string) int {
	total := 0
	for _, word := range wanted {
		best := max(worth(word, nameWorth, a.Name), worth(word, tagWorth, a.Tags...), worth(word, descriptionWorth, a.Description))
		for i := range a.Annotations {
			best = max(best, worth(word, annotationWorth, a.Annotations[i].Message, a.Annotations[i].Vibe))
		}
		if best > 0 {
			total += wordWorth + best
		}
	}
	if slices.Equal(tokens(a.Name), wanted) {
		total += wholeNameWorth
	}
	return total
}

// worth returns the full score for a whole word of the texts, half for a prefix of one.
func worth(word string, full int, texts ...string) int {
	best := 0
	for _, text := range texts {
		text = strings.ToLower(text)
		for at := 0; ; {
			i := strings.Index(text[at:], word)
			if i < 0 {
				break
			}
			at += i
			begins := at == 0 || !isWordByte(text[at-1])
			at += len(word)
			if begins && (at == len(text) || !isWordByte(text[at])) {
				return full
			}
			if begins {
				best = max(best, full/2)
			}
		}
	}
	return best
}

// isWordByte reports whether a byte belongs to a word, as those of non-ASCII letters do.
func isWordByte(c byte) bool {
	return c >= 0x80 || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}

// Derived returns the sets of migrations and the tables of the index of words, which
// differ between databases and which Reindex fills again, and tables that are filled again
// when they are used.
var Derived = struct{ Sets, Tables []string }{
	Sets:   []string{"artifact_fts5", "artifact_tsvector"},
	Tables: []string{"artifact_words", "artifact_titles", "org_storage", "content_claims"},
}

// Reindex indexes the words of all artifacts, in a database whose index is empty.
func (s *Store) Reindex(ctx context.Context) error {
	const atOnce = 200
	for after := int64(0); ; {
		var rows []Artifact
		var last int64
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			last = after
			rows, err = db.All(ctx, tx, scanRow, "SELECT "+columns+" FROM artifacts WHERE number > $1 ORDER BY number LIMIT $2", after, atOnce)
			for i := range rows {
				last = rows[i].number
				if err := errors.Join(loadDetails(ctx, tx, &rows[i]), s.words.put(ctx, tx, &rows[i])); err != nil {
					return err
				}
			}
			return err
		})
		if err != nil || len(rows) < atOnce {
			return err
		}
		after = last
	}
}
