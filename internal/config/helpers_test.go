package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a luanette.toml into a temporary folder.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rewrite changes a file as editors do: it replaces the file by a new one.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// fenced returns the code blocks of a page in one language.
func fenced(page, language string) (blocks []string) {
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
