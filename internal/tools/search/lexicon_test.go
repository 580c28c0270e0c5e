package search

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLexiconForgetsUnusedWords(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	living := []Part{{Index: &Index{words: []string{"telescope", "violin"}}}}
	l.add(living[0].Index.words)
	for i := range 60_000 {
		l.add([]string{fmt.Sprintf("gone%d", i)})
	}
	l.Prune(living)
	if !slices.Equal(l.words, living[0].Index.words) || len(l.known) != 2 || len(l.outlines) != 2 {
		t.Errorf("%d words are left", len(l.words))
	}
	if got := l.near(term{typed: "telescpoe", stem: "telescpo"}); len(got) != 1 || got[0] != (nearWord{"telescope", 1}) {
		t.Errorf("near = %v", got)
	}
}

// plainEditDistance is the textbook algorithm.
func plainEditDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0:
				rows[i][j] = j
			case j == 0:
				rows[i][j] = i
			default:
				change := 1
				if a[i-1] == b[j-1] {
					change = 0
				}
				rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab1é]{0,12}`)
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, 3).Draw(t, "limit")
		want := min(plainEditDistance(a, b), limit+1)
		if got := editDistance(a, b, limit); got != want {
			t.Fatalf("editDistance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
		if want <= limit && !outlineOf(a).near(outlineOf(b), limit) {
			t.Fatalf("%q and %q are %d apart but do not look near", a, b, want)
		}
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"read_file":      {"read", "file"},
		"readFile":       {"read", "file"},
		"HTTPServer":     {"http", "server"},
		"parseJSON":      {"parse", "json"},
		"get-user.by id": {"get", "user", "by", "id"},
		"base64 v2":      {"base64", "v2"},
		"ÜberGröße":      {"über", "größe"},
		"東京tool":         {"東", "京", "tool"},
		"":               nil,
		"__--":           nil,
		"\xff\xfeab\xff": {"ab"},
	} {
		var got []string
		words(text, func(w string) { got = append(got, w) })
		if !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"file", "files"}, {"query", "queries"}, {"create", "creates", "creating", "created"}, {"read", "reading", "reads"},
		{"run", "running", "runs"}, {"match", "matches"}, {"generate", "generated"}, {"class", "classes"}, {"box", "boxes"},
		{"translate", "translation"}, {"colour", "color"}, {"analyse", "analyze"}, {"organise", "organize", "organisation", "organization"}, {"write", "wrote", "written"},
		{"catalog", "catalogue"}, {"cancelled", "canceled", "cancel"}, {"licence", "license"}, {"relation", "relationship"},
	} {
		for _, word := range same[1:] {
			if stem(word) != stem(same[0]) {
				t.Errorf("%s is %s, %s is %s", word, stem(word), same[0], stem(same[0]))
			}
		}
	}
	for _, word := range []string{"status", "string", "need", "bus", "is", "his", "s", "", "ship"} {
		if stem(word) != word {
			t.Errorf("stem(%s) = %s", word, stem(word))
		}
	}
}
