package main

import (
	"os"
	"strings"
	"testing"
)

// TestPages holds pages to what stories run: every luanette command shown on one
// stands, word for word, in its story.
func TestPages(t *testing.T) {
	t.Parallel()
	for page, story := range map[string]string{
		"../../README.md":         "../../examples/readme.txtar",
		"../../docs/upstreams.md": "../../examples/upstream.txtar",
		"../../docs/code_mode.md": "../../examples/tokens.txtar",
		"../../docs/jobs.md":      "../../examples/jobs.txtar",
		"../../docs/backends.md":  "../../examples/backend.txtar",
		"../../docs/chat.md":      "../../examples/chat.txtar",
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		run, err := os.ReadFile(story)
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for line := range strings.Lines(string(text)) {
			command := strings.TrimSpace(line)
			if !strings.HasPrefix(command, "luanette ") {
				continue
			}
			shown++
			if !strings.Contains(string(run), "exec "+command+"\n") {
				t.Errorf("%s: no story runs %q", page, command)
			}
		}
		if shown == 0 {
			t.Errorf("%s shows no command", page)
		}
	}
}
