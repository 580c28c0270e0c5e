package workspace

import (
	"bytes"
	"context"
	"io/fs"
	"regexp"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// The limits of a search: lines found, files opened, size of a file, and length of a
// line shown.
const (
	maxFound    = 1000
	maxSearched = 20_000
	maxLooked   = 1 << 20
	maxShown    = 300
)

// found is a line that matched.
type found struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// search(pattern, dir?) finds lines by a regular expression.
func search(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	pattern, err := args.String(1)
	if err != nil {
		return nil, err
	}
	folder, err := args.OptString(2, "")
	if err != nil {
		return nil, err
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "search: %v", err).
			WithHint("the pattern is a regular expression; put a backslash before ( ) [ ] . * + ? | ^ $ to mean the character")
	}
	lines, err := grep(ctx, w.Files, expression, folder)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(lines)
	return []host.Value{table}, err
}

func grep(ctx context.Context, files *host.Files, expression *regexp.Regexp, folder string) ([]found, error) {
	lines, searched := []found{}, 0
	err := files.Walk(folder, skipsFolder, func(path string, info fs.FileInfo, read func() ([]byte, error)) error {
		if searched++; searched > maxSearched || len(lines) >= maxFound || ctx.Err() != nil {
			return fs.SkipAll
		}
		if info.Size() > maxLooked {
			return nil
		}
		content, err := read()
		if err != nil || bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
			return nil //nolint:nilerr // unreadable or no text: nothing to find
		}
		lines = append(lines, matches(expression, path, content, maxFound-len(lines))...)
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return lines, err
}

// skipsFolder reports whether a folder has copies and metadata rather than source files.
func skipsFolder(name string) bool {
	return name == ".git" || name == "node_modules" || name == "vendor" || name == ".cache"
}

func matches(expression *regexp.Regexp, path string, content []byte, limit int) []found {
	var lines []found
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if !expression.Match(line) {
			continue
		}
		lines = append(lines, found{path, number, shown(line)})
		if len(lines) == limit {
			break
		}
	}
	return lines
}

// shown shortens a line and makes it valid text.
func shown(line []byte) string {
	if end := maxShown; len(line) > end {
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end]
	}
	return string(bytes.ToValidUTF8(line, []byte("�")))
}
