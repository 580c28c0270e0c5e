package artifact

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/store/db"
)

// words is the index of everything said about artifacts: the one part whose SQL
// differs between databases.
type words interface {
	// put makes a findable by what it now says; it may have been put before.
	put(ctx context.Context, tx *db.Tx, a *Artifact) error
	// find returns the numbers of at most limit artifacts that have words
	// beginning with the wanted ones: those that have all of them before those
	// that have some. It may take the rest of q roughly: what it returns is held
	// against q again. The order does not matter, for ranking is done here.
	find(ctx context.Context, tx *db.Tx, q Query, wanted []string, limit int) ([]int64, error)
}

// mostWords is how many words of a query are looked for.
const mostWords = 16

// tokens splits text into words: letters and digits, in lower case, each once.
func tokens(text string) []string {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var once []string
	for _, part := range parts {
		if !slices.Contains(once, part) && len(once) < mostWords {
			once = append(once, part)
		}
	}
	return once
}

// hit is an artifact with how well it fits the wanted words.
type hit struct {
	score    int
	artifact *Artifact
}

// compare puts the better first, and of equals the newer.
func (h hit) compare(other hit) int {
	if h.score != other.score {
		return cmp.Compare(other.score, h.score)
	}
	return cmp.Compare(other.artifact.number, h.artifact.number)
}

// What a word is worth in the places where it may stand. That one more of the
// wanted words is there counts more than where.
const (
	wordWorth        = 100
	nameWorth        = 12
	tagWorth         = 8
	descriptionWorth = 4
	annotationWorth  = 3
	wholeNameWorth   = 50
)

// score tells how well an artifact fits.
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

// worth is full for a whole word of the texts, half for the beginning of one.
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

// isWordByte tells whether a byte belongs to a word; those of other scripts'
// letters do.
func isWordByte(c byte) bool {
	return c >= 0x80 || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}
