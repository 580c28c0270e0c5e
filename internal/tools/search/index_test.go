package search

import (
	"slices"
	"testing"
)

func TestTypingMistakes(t *testing.T) {
	t.Parallel()
	parts := []Part{partOf(sample...)}
	for query, want := range map[string]string{
		"naviagte": "browser.navigate", "excell": "excel.read_sheet", "repostories": "git.list_repositories", "colour": "paint.set_color", "xxcel": "",
	} {
		got := found(Run(Query{Texts: []string{query}}, parts))
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%s: found %v, want %q", query, got, want)
		}
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
		{"translate", "translation"},
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
