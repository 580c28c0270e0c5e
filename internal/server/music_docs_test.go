package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/scripting/script"
)

// TestMusicPage runs every script of docs/music.md.
func TestMusicPage(t *testing.T) {
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
	scripts := configtest.CodeBlocks(string(page), "lua")
	if len(scripts) < 5 {
		t.Fatalf("only %d scripts in docs/music.md", len(scripts))
	}
	for _, source := range scripts {
		source = strings.ReplaceAll(source, "/usr/share/sounds/sf2/TimGM6mb.sf2", font)
		outcome, err := srv.scripts.runner.Run(t.Context(), script.Request{Source: source})
		if err != nil {
			t.Errorf("%v\n%s", err, source)
		}
		if strings.Contains(source, "chorus") && string(outcome.Result) != `"chorus"` {
			t.Errorf("the marker is %s, want chorus", outcome.Result)
		}
		if strings.Contains(source, "no music today") && (len(outcome.Output) != 1 || !strings.HasPrefix(outcome.Output[0].Text, "made artifact_")) {
			t.Errorf("output %v, want the artifact of the model", outcome.Output)
		}
	}
}
