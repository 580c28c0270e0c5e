package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// namedLine is a command line that a text names.
type namedLine struct {
	file   string
	line   string
	inText bool // within a sentence, where arguments may be missing
}

// How texts name command lines.
var (
	spanLine    = regexp.MustCompile("(?:`|<code>)(luanette [^`\n<]+?)(?:`|</code>)")
	blockLine   = regexp.MustCompile(`(?m)^(?:\t| {2,})(?:\$ )?(?:[A-Z]+=\$\()?(luanette [a-z_].*?)\)?$`)
	fenceLine   = regexp.MustCompile(`(?m)^(?:\$ )?(luanette [a-z_].*)$`)
	expectation = regexp.MustCompile(`(?m)^!? ?(stdout|stderr|cmp|grep) .*$`)
	bareWords   = regexp.MustCompile(`luanette ((?:[a-z]+ ?)+)`)
)

// namedLines returns the command lines in a file.
func namedLines(file, text string) (lines []namedLine) {
	add := func(inText bool, patterns ...*regexp.Regexp) {
		for _, pattern := range patterns {
			for _, match := range pattern.FindAllStringSubmatch(text, -1) {
				line, _, _ := strings.Cut(match[1], "   ") // what follows explains it
				if strings.HasSuffix(line, "[flags]") {
					continue // of docs/cli.md, which is generated from the commands
				}
				lines = append(lines, namedLine{file, strings.TrimRight(line, "`"), inText})
			}
		}
	}
	add(true, spanLine)
	switch {
	case file == "docs/cli.md", filepath.Ext(file) == ".go": // sentences have several lines
		add(false, blockLine)
	case filepath.Ext(file) == ".md":
		add(false, blockLine, fenceLine)
	}
	return lines
}

// eachText calls visit for every file whose texts people read: documentation, sources with
// their messages and hints, and the page.
func eachText(t *testing.T, visit func(file, text string)) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".cache", "node_modules", "dist", "testdata", "decisions"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		read := slices.Contains([]string{".md", ".go", ".tsx", ".ts", ".html"}, filepath.Ext(file)) && !strings.HasSuffix(file, "_test.go")
		if !read || file == "CHANGELOG.md" || file == "docs/licences.md" {
			return nil
		}
		text, err := fs.ReadFile(root, file)
		visit(file, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamedCommandLinesExist parses every command line that the documentation, a message, a
// hint or the page names: the command, its arguments and its flags must exist.
func TestNamedCommandLinesExist(t *testing.T) {
	t.Parallel()
	found, parsed := 0, map[string]error{}
	eachText(t, func(file, text string) {
		for _, named := range namedLines(file, text) {
			found++
			err, again := parsed[named.line]
			if !again {
				err = parseLine(named.line)
				parsed[named.line] = err
			}
			if err != nil && !(named.inText && isIncomplete(err)) {
				t.Errorf("%s names `%s`: %v", file, named.line, err)
			}
		}
	})
	if found < 250 {
		t.Errorf("only %d command lines found", found)
	}
}

// TestNamedCommandsAreRun checks that a story runs every command that a text names.
func TestNamedCommandsAreRun(t *testing.T) {
	t.Parallel()
	var stories strings.Builder
	files, err := filepath.Glob("../../examples/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stories.WriteString(expectation.ReplaceAllString(string(text), ""))
	}
	stories.WriteString("luanette serve ") // the story command serve starts it
	named := map[string]string{}           // command: file
	root := parserOf(t, new(cli), io.Discard).Model.Node
	eachText(t, func(file, text string) {
		for _, match := range bareWords.FindAllStringSubmatch(text, -1) {
			if path, leaf := commandIn(root, strings.Fields(match[1])); leaf {
				named[path] = file
			}
		}
	})
	if len(named) < 50 {
		t.Errorf("only %d commands found", len(named))
	}
	for path, file := range named {
		if !regexp.MustCompile(`luanette ` + path + `(\s|$)`).MatchString(stories.String()) {
			t.Errorf("%s names luanette %s, which no story in examples/ runs", file, path)
		}
	}
}

// commandIn returns the command that the words begin with, and whether it is a whole one.
func commandIn(node *kong.Node, words []string) (path string, leaf bool) {
	for _, word := range words {
		at := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word })
		if at < 0 {
			break
		}
		node = node.Children[at]
		path = strings.TrimSpace(path + " " + word)
	}
	return path, path != "" && node.Leaf()
}

// isIncomplete reports whether a command line only lacks arguments.
func isIncomplete(err error) bool {
	return strings.HasPrefix(err.Error(), "expected ") || strings.HasPrefix(err.Error(), "missing flags")
}

// parseLine parses a command line as a shell and the program do, without running it.
func parseLine(line string) error {
	words := shellWords(line)
	return parseWords(append(words[:1], expandHelp(words[1:])...))
}

// shellWords splits a command line at spaces outside of quotes, up to a pipe, a redirection,
// a comment or the next command.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && c == ' ':
			end()
		case quote == 0 && (c == '|' || c == '>' || c == ';' || c == '&') || quote == 0 && c == '#' && !begun:
			end()
			return words
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	end()
	return words
}
