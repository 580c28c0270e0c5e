// Package configtest has what tests of configurations share.
package configtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WriteFile writes a luanette.toml into a new temporary folder and returns its path.
func WriteFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ReplaceFile writes a file as editors do: it renames a new file to path, so that no
// reader sees half of the text.
func ReplaceFile(t testing.TB, path, text string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// CodeBlocks returns the code blocks of a Markdown page that are in one language.
func CodeBlocks(page, language string) (blocks []string) {
	inside := false
	for line := range strings.Lines(page) {
		switch mark := strings.TrimSpace(line); {
		case mark == "```"+language:
			blocks, inside = append(blocks, ""), true
		case mark == "```":
			inside = false
		case inside:
			blocks[len(blocks)-1] += line
		}
	}
	return blocks
}
