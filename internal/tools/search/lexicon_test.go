package search

import (
	"fmt"
	"slices"
	"testing"
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
		{"translate", "translation"}, {"colour", "color"}, {"analyse", "analyze"}, {"organise", "organize", "organisation", "organization"},
		{"catalog", "catalogue"}, {"cancelled", "canceled", "cancel"}, {"licence", "license"},
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
