package main

import "strings"

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
