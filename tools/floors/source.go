package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
)

// importsPath tells whether the Go file imports the path.
func importsPath(file, path string) bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(parsed.Imports, func(spec *ast.ImportSpec) bool {
		got, err := strconv.Unquote(spec.Path.Value)
		return err == nil && got == path
	})
}

func sortedKeys(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }
