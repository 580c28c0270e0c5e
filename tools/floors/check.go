package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Problem is one import that is against the order.
type Problem struct {
	File, From, To string
	Why, Cure      string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s\n  %s -> %s\n  why it is wrong: %s\n  what to do:      %s", p.File, p.From, p.To, p.Why, p.Cure)
}

// Check returns every import that is against the order, in a stable order.
func Check(packages []Package) []Problem {
	var problems []Problem
	users := map[string][]string{} // third-party library -> packages of ours that import it
	for _, p := range packages {
		from := p.local()
		if !known(from) {
			problems = append(problems, Problem{p.Dir, from, "(no group)", "the package is in no group of tools/floors/groups.go",
				"move it into the group it belongs to; a new group needs a line in the table and a README.md"})
		}
		for _, imported := range p.Imports {
			switch {
			case strings.HasPrefix(imported, p.Module.Path+"/"):
				to := strings.TrimPrefix(imported, p.Module.Path+"/")
				if why, cure := wrong(from, to); why != "" {
					problems = append(problems, Problem{p.fileImporting(imported), from, to, why, cure})
				}
			case strings.Contains(strings.Split(imported, "/")[0], ".") && !slices.Contains(Everywhere, imported) && !within(Development, from):
				users[library(imported)] = append(users[library(imported)], owner(from))
			}
		}
	}
	return append(problems, sharedLibraries(users)...)
}

// wrong says why from may not import to, and what to do instead; "" when it may.
func wrong(from, to string) (why, cure string) {
	switch {
	case within(Development, from):
		return "", ""
	case within(Development, to):
		return "it is a development program and no part of the server", "move what you need into a package below internal/"
	case publicGroup(from) != nil && slices.Contains(strings.Fields(publicGroup(from).MayImport), group(to)):
		return "", ""
	case publicGroup(to) != nil:
		return "it is for other programs", "use the packages that it is made of"
	case within(Independent, from):
		return "it imports nothing of ours", "declare an interface there and pass an implementation in"
	case within(Independent, to), from == Top, group(from) == group(to):
		return "", ""
	case slices.Contains(strings.Fields(allowed(group(from))), group(to)):
		return "", ""
	}
	return fmt.Sprintf("group %q may import %s", group(from), orNothing(allowed(group(from)))),
		"declare the interface you need where you use it and let internal/server pass an implementation, or move the shared type down"
}

func orNothing(list string) string {
	if list == "" {
		return "no other group"
	}
	return "only " + list
}

// group is the folder of internal/ that a package is in; "" outside of it.
func group(local string) string {
	rest, ok := strings.CutPrefix(local, "internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// allowed is what a group may import.
func allowed(name string) string {
	for _, g := range Groups {
		if g.Name == name {
			return g.MayImport
		}
	}
	return ""
}

func known(local string) bool {
	inTable := slices.ContainsFunc(Groups, func(g Group) bool { return g.Name == group(local) })
	return inTable || local == Top || publicGroup(local) != nil || within(Independent, local) || within(Development, local)
}

// publicGroup is the entry of a public package; nil if it is none.
func publicGroup(local string) *Group {
	for i := range Public {
		if Public[i].Name == local {
			return &Public[i]
		}
	}
	return nil
}

// within tells whether the package is one of the folders or below one of them.
func within(folders []string, local string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return local == folder || strings.HasPrefix(local, folder+"/") })
}

// owner is the package that a package belongs to: a suite for tests (dbtest) shares
// the libraries of the package that it tests, and the modules of scripts are one.
func owner(local string) string {
	if strings.HasSuffix(local, "test") {
		return path.Dir(local)
	}
	return local
}

// sharedLibraries reports third-party libraries that more than one package uses.
func sharedLibraries(users map[string][]string) []Problem {
	var problems []Problem
	for _, lib := range sortedKeys(users) {
		packages := users[lib]
		slices.Sort(packages)
		if packages = slices.Compact(packages); len(packages) > 1 {
			problems = append(problems, Problem{strings.Join(packages, ", "), strings.Join(packages, " and "), lib,
				"a third-party library stays inside one package", "wrap it in one of them and let the other use the wrapper"})
		}
	}
	return problems
}

// library shortens an import path to what one would call the library, so that two
// packages of the same one count together.
func library(imported string) string {
	parts := strings.Split(imported, "/")
	if strings.HasPrefix(imported, "go.opentelemetry.io/") {
		return "go.opentelemetry.io"
	}
	return path.Join(parts[:min(3, len(parts))]...)
}
