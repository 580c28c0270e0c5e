package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadme holds the README to what a story runs: every luanette command shown
// in it stands, word for word, in examples/readme.txtar.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	story, err := os.ReadFile("../../examples/readme.txtar")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for line := range strings.Lines(string(readme)) {
		command := strings.TrimSpace(line)
		if !strings.HasPrefix(command, "luanette ") {
			continue
		}
		shown++
		if !strings.Contains(string(story), "exec "+command+"\n") {
			t.Errorf("no story runs %q", command)
		}
	}
	if shown == 0 {
		t.Error("the README shows no command")
	}
}
