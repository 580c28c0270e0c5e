package hootenanny

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/tools/toolset/toolsettest"
)

func TestEveryToolFollowsTheRules(t *testing.T) {
	t.Parallel()
	tools, err := newFixture(t).Tools().Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range tools {
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			toolsettest.Check(t, info)
			if info.Output == nil {
				t.Error("no output schema")
			}
			if info.Name == "sample_llm" {
				t.Error("the tool must not exist")
			}
		})
	}
	pages, err := filepath.Glob("tools/*.md")
	if described := len(ownModels(Services{})); err != nil || len(pages)+described != len(tools) {
		t.Errorf("%d pages and %d described models for %d tools, %v", len(pages), described, len(tools), err)
	}
}

// TestPageOfMusic checks that the page about music lists all tools. UPDATE=1 writes the list.
func TestPageOfMusic(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- tools -->\n", "<!-- end of tools -->\n"
	tools, err := newFixture(t).Tools().Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	list.WriteString("| Tool | |\n|---|---|\n")
	for _, info := range tools {
		fmt.Fprintf(&list, "| `%s` | %s |\n", info.Name, strings.ReplaceAll(info.Description, "|", "\\|"))
	}
	path := filepath.Join("..", "..", "..", "docs", "music.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the page has no place for tools")
	}
	want := before + begin + list.String() + end + after
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Error("docs/music.md is out of date: run UPDATE=1 go test ./internal/music/hootenanny")
	}
}
