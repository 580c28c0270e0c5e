// Command wordlist makes internal/tools/search/data/wordnet.txt: which English words mean
// about the same as words that tools use, and irregular forms of words. It reads WordNet as
// Debian packages it (wordnet-base) and the list of tool words.
//
//	go run ./tools/wordlist > internal/tools/search/data/wordnet.txt
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	toolSenses  = 3 // of a tool word that count, most frequent first
	otherSenses = 2 // of the word that is mapped to it
)

func main() {
	dir := flag.String("wordnet", "/usr/share/wordnet", "directory of the WordNet database")
	list := flag.String("words", "internal/tools/search/data/toolwords.txt", "list of tool words")
	flag.Parse()
	if err := run(os.Stdout, *dir, *list); err != nil {
		fmt.Fprintln(os.Stderr, "wordlist:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir, list string) error {
	wanted, err := toolWords(list)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, header)
	var dictionaries []*dictionary
	for _, kind := range []string{"verb", "noun"} {
		d, err := load(dir, kind)
		if err != nil {
			return err
		}
		dictionaries = append(dictionaries, d)
	}
	for _, d := range dictionaries {
		for _, line := range d.synonyms(wanted[d.kind+"s"]) {
			fmt.Fprintln(out, line)
		}
	}
	for _, d := range dictionaries {
		for _, line := range d.irregular {
			fmt.Fprintln(out, line)
		}
	}
	return out.Flush()
}

const header = `# Made by tools/wordlist from WordNet 3.0. Do not edit.
# WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. Its licence is in data/WORDNET-LICENCE.
# "phrase > word word": the phrase means about the same as words that tools use. "form < word": an irregular form.
`

// toolWords reads lines "verbs: …" and "nouns: …".
func toolWords(file string) (map[string][]string, error) {
	words := map[string][]string{}
	err := lines(file, func(line string) {
		if kind, rest, ok := strings.Cut(line, ": "); ok {
			words[kind] = append(words[kind], strings.Fields(rest)...)
		}
	})
	return words, err
}

// dictionary is WordNet's words of one kind.
type dictionary struct {
	kind      string
	senses    map[string][]string // of a word: synsets, most frequent first
	members   map[string][]string // of a synset: words
	irregular []string
}

func load(dir, kind string) (*dictionary, error) {
	d := &dictionary{kind: kind, senses: map[string][]string{}, members: map[string][]string{}}
	for file, read := range map[string]func(string){"index.": d.readIndex, "data.": d.readData} {
		if err := lines(filepath.Join(dir, file+kind), read); err != nil {
			return nil, err
		}
	}
	err := lines(filepath.Join(dir, kind+".exc"), func(line string) {
		if f := strings.Fields(line); len(f) == 2 && irregular(f[0], f[1]) && len(d.senses[f[1]]) > 1 {
			d.irregular = append(d.irregular, f[0]+" < "+f[1])
		}
	})
	return d, err
}

// readIndex reads "lemma pos synsets pointers [pointer…] senses tagged offset…".
func (d *dictionary) readIndex(line string) {
	f := strings.Fields(line)
	if line[0] == ' ' || len(f) < 6 {
		return
	}
	count := 0
	if _, err := fmt.Sscan(f[2], &count); err == nil && count <= len(f) {
		d.senses[f[0]] = f[len(f)-count:]
	}
}

// readData reads "offset file type words word id word id …".
func (d *dictionary) readData(line string) {
	f := strings.Fields(line)
	if line[0] == ' ' || len(f) < 6 {
		return
	}
	count := 0
	if _, err := fmt.Sscanf(f[3], "%x", &count); err != nil {
		return
	}
	for i := range count {
		d.members[f[0]] = append(d.members[f[0]], strings.ToLower(f[4+2*i]))
	}
}

// synonyms are the lines of words that share a frequent meaning with tool words.
func (d *dictionary) synonyms(tools []string) []string {
	found := map[string][]string{}
	for _, word := range tools {
		for _, synset := range first(d.senses[word], toolSenses) {
			for _, other := range d.members[synset] {
				if other != word && plain(other) && slices.Contains(first(d.senses[other], otherSenses), synset) && !slices.Contains(found[other], word) {
					found[other] = append(found[other], word)
				}
			}
		}
	}
	var all []string
	for _, phrase := range slices.Sorted(maps.Keys(found)) {
		all = append(all, strings.ReplaceAll(phrase, "_", " ")+" > "+strings.Join(found[phrase], " "))
	}
	return all
}

// plain reports whether a phrase is made of ordinary letters, and short.
func plain(phrase string) bool {
	return len(phrase) > 2 && strings.Count(phrase, "_") < 4 && strings.Trim(phrase, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// irregular reports whether a form has none of the endings that the search removes.
func irregular(form, word string) bool {
	return plain(form) && plain(word) && !strings.Contains(form, "_") &&
		!strings.HasSuffix(form, "ing") && !strings.HasSuffix(form, "ed") && !strings.HasSuffix(form, "ies")
}

func first(all []string, n int) []string { return all[:min(n, len(all))] }

func lines(file string, read func(string)) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w (install Debian's wordnet-base, or name its directory with -wordnet)", err)
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			read(line)
		}
	}
	return nil
}
