// Package testrun finds the tests of scripts in files, runs them in parallel and reports
// the outcomes to people and to CI systems. A test is a function test_* in a file
// *_test.lua, *_test.js or *_test.ts; it fails if it raises an error.
package testrun

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// File is a file with tests.
type File struct {
	Path     string
	Language string
	Source   string
}

// Test is one test function.
type Test struct {
	File *File
	Name string
	Line int // of its definition
}

// Find returns the tests in files and, recursively, in folders, in the order of their
// paths and lines. Filter chooses those whose PATH:NAME it matches; nil chooses all.
func Find(paths []string, filter *regexp.Regexp) (tests []Test, err error) {
	var files []string
	for _, path := range paths {
		found, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	for _, path := range slices.Compact(files) {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "read tests")
		}
		file := &File{Path: path, Language: script.LanguageOf(path), Source: string(source)}
		for _, t := range file.tests() {
			if filter == nil || filter.MatchString(filepath.ToSlash(path)+":"+t.Name) {
				tests = append(tests, t)
			}
		}
	}
	return tests, nil
}

// filesAt returns a file, or the files with tests in a folder.
func filesAt(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "find tests")
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && at != path && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return filepath.SkipDir
		case !entry.IsDir() && isTestFile(name):
			files = append(files, at)
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "find tests")
	}
	return files, nil
}

func isTestFile(name string) bool {
	return slices.ContainsFunc([]string{"_test.lua", "_test.js", "_test.ts"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// definition matches the definition of a test at the beginning of a line, in either
// language.
var definition = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:(?:local|async)\s+)?function\s+(test_\w+)\s*\(|^(?:(?:local|const|let|var)\s+)?(test_\w+)\s*=\s*(?:async\s*)?(?:function\b|\(|\w+\s*=>)`)
})

func (f *File) tests() (tests []Test) {
	source := []byte(f.Source)
	for _, at := range definition().FindAllSubmatchIndex(source, -1) {
		from, to := at[2], at[3]
		if from < 0 {
			from, to = at[4], at[5]
		}
		tests = append(tests, Test{File: f, Name: string(source[from:to]), Line: 1 + bytes.Count(source[:from], []byte("\n"))})
	}
	return tests
}

// Code is a script that runs the test: the file, and then a call of the test.
func (t Test) Code() string {
	if t.File.Language == script.JavaScript {
		return t.File.Source + "\nreturn await " + t.Name + "();\n"
	}
	return t.File.Source + "\nreturn " + t.Name + "()\n"
}
