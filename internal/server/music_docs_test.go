package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Every script on the page about music runs.
func TestPageOfMusicRuns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "music.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := &music{}
	_, srv := start(t, musicSources(t, m, ""))
	font := filepath.Join(m.folder, "tiny.sf2")
	if err := os.WriteFile(font, soundfonttest.Font(), 0o600); err != nil {
		t.Fatal(err)
	}
	scripts := regexp.MustCompile("(?s)```lua\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(scripts) < 5 {
		t.Fatalf("%d scripts on the page", len(scripts))
	}
	for _, found := range scripts {
		source := strings.ReplaceAll(found[1], "/usr/share/sounds/sf2/TimGM6mb.sf2", font)
		outcome, err := srv.scripts.runner.Run(t.Context(), script.Request{Source: source})
		if err != nil {
			t.Errorf("%v\n%s", err, source)
		}
		if strings.Contains(source, "chorus") && string(outcome.Result) != `"chorus"` {
			t.Errorf("the marker said %s", outcome.Result)
		}
		if strings.Contains(source, "no music today") && (len(outcome.Output) != 1 || !strings.HasPrefix(outcome.Output[0].Text, "made artifact_")) {
			t.Errorf("the model said %v", outcome.Output)
		}
	}
}
