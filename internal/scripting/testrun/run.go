// Package testrun finds the tests of scripts in files, runs them in parallel and reports
// the outcomes to people and to CI systems. A test is a function test_* in a file
// *_test.lua, *_test.js or *_test.ts; it fails if it raises an error.
package testrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
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
var definition = lazyregexp.New(`(?m)^(?:(?:local|async)\s+)?function\s+(test_\w+)\s*\(|^(?:(?:local|const|let|var)\s+)?(test_\w+)\s*=\s*(?:async\s*)?(?:function\b|\(|\w+\s*=>)`)

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

// Outcome is how a test ended.
type Outcome struct {
	Test
	Failure  *Failure // nil if it passed
	Output   []string // what it printed and logged
	Duration time.Duration
}

// Failure is why a test failed.
type Failure struct {
	Message string
	Details string // the line in the source, the stack and what to do about it
	Line    int    // in the test's file
}

// Place is where the failure is, as PATH:LINE.
func (o Outcome) Place() string {
	line := o.Line
	if o.Failure != nil && o.Failure.Line > 0 {
		line = o.Failure.Line
	}
	return fmt.Sprintf("%s:%d", o.File.Path, line)
}

// Runner runs one test and returns the result of lua_eval, or why it could not run.
type Runner func(ctx context.Context, t Test) (tool.View, error)

// Run runs tests, at most parallel at a time, and passes each outcome to done in the
// order of the tests.
func Run(ctx context.Context, tests []Test, parallel int, run Runner, done func(Outcome)) {
	outcomes := make([]chan Outcome, len(tests))
	for i := range outcomes {
		outcomes[i] = make(chan Outcome, 1)
	}
	next := make(chan int, len(tests))
	for i := range tests {
		next <- i
	}
	close(next)
	var work sync.WaitGroup
	for range min(max(parallel, 1), len(tests)) {
		work.Go(func() {
			for i := range next {
				outcomes[i] <- runOne(ctx, tests[i], run)
			}
		})
	}
	for _, outcome := range outcomes {
		done(<-outcome)
	}
	work.Wait()
}

func runOne(ctx context.Context, t Test, run Runner) Outcome {
	began := time.Now()
	o := Outcome{Test: t}
	if ctx.Err() != nil {
		o.Failure = &Failure{Message: "not run: " + context.Cause(ctx).Error()}
		return o
	}
	view, err := run(ctx, t)
	o.Duration = time.Since(began)
	if err != nil {
		o.Failure = &Failure{Message: err.Error(), Details: fault.HintOf(err)}
		return o
	}
	o.judge(view)
	return o
}

// judge reads the result of the run.
func (o *Outcome) judge(view tool.View) {
	if !view.IsError {
		var done struct {
			Status string
			Output []struct{ Text string }
		}
		_ = json.Unmarshal(view.Structured, &done) // a result without output has none
		for _, line := range done.Output {
			o.Output = append(o.Output, line.Text)
		}
		if done.Status == script.StatusWaiting {
			o.Failure = &Failure{Message: "it waits for approval", Details: `tests have nobody to ask: set approve = "never" in their configuration`}
		}
		return
	}
	o.Output = outputOf(view.Meta)
	text, _, _ := strings.Cut(view.Text(), script.OutputHeading)
	o.Failure = &Failure{Message: firstLine(text), Details: text}
	raw, _ := rawjson.Get(view.Meta, tool.ErrorKey)
	details, _ := rawjson.Get(raw, "details")
	var failed script.Error
	if json.Unmarshal(details, &failed) == nil && failed.Message != "" {
		o.Failure.Message, o.Failure.Details = failed.Message, detailsOf(failed)
		if at := filepath.Base(o.File.Path); strings.HasSuffix(failed.Script, at) {
			o.Failure.Line = failed.Line
		}
	}
}

// detailsOf is what an error has besides its message.
func detailsOf(e script.Error) string {
	var lines []string
	if e.SourceLine != "" {
		lines = append(lines, fmt.Sprintf("%4d | %s", e.Line, e.SourceLine))
	}
	for _, frame := range e.Stack {
		lines = append(lines, "at "+frame.String())
	}
	return strings.Join(append(lines, e.Suggestions...), "\n")
}

func outputOf(meta json.RawMessage) (lines []string) {
	raw, _ := rawjson.Get(meta, script.OutputKey)
	var output []host.OutputLine
	if json.Unmarshal(raw, &output) == nil {
		for _, line := range output {
			lines = append(lines, line.Text)
		}
	}
	return lines
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
