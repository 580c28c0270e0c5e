package config

import (
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config/configtest"
)

func TestFormerKeysStillWork(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "linger = \"6s\"\n[sessions]\nready_mb = 7\n")
	loaded, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(loaded.ShutdownDelay) != 6*time.Second || loaded.Sessions.CacheMB != 7 {
		t.Errorf("shutdown_delay = %v, sessions.cache_mb = %d", loaded.ShutdownDelay, loaded.Sessions.CacheMB)
	}
	if loaded.origin("shutdown_delay") != "file" {
		t.Errorf("origin = %q", loaded.origin("shutdown_delay"))
	}
	want := file + ":1: linger is now called shutdown_delay\n" + file + ":3: sessions.ready_mb is now called sessions.cache_mb"
	if got := strings.Join(loaded.Warnings, "\n"); got != want {
		t.Errorf("warnings:\n%s\nwant:\n%s", got, want)
	}
}

func TestFormerMenus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ menu, warning string }{
		"mode = 'auto'\ncode_threshold = 5\n": {builtin.MenuCode, ":2: mcp.mode is now called mcp.menu, and auto is code"},
		"mode = 'direct'\n":                   {builtin.MenuFull, ":2: mcp.mode is now called mcp.menu, and direct is full"},
		"mode = 'code'\n":                     {builtin.MenuCode, ":2: mcp.mode is now called mcp.menu"},
	} {
		loaded, err := Load(Sources{File: configtest.WriteFile(t, "[mcp]\n"+text)})
		if err != nil {
			t.Fatal(err)
		}
		if loaded.MCP.Menu != want.menu || !strings.HasSuffix(loaded.Warnings[0], want.warning) {
			t.Errorf("%s: menu %s, warnings %q", text, loaded.MCP.Menu, loaded.Warnings)
		}
		if strings.Contains(text, "threshold") && (len(loaded.Warnings) != 2 || !strings.Contains(loaded.Warnings[1], ":3: mcp.code_threshold is ignored")) {
			t.Errorf("warnings %q", loaded.Warnings)
		}
	}
	loaded, err := Load(Sources{File: configtest.WriteFile(t, ""), Env: Environment{"LUANETTE_MCP_MODE": "direct", "LUANETTE_MCP_CODE_THRESHOLD": "5"}})
	if err != nil || loaded.MCP.Menu != builtin.MenuFull || len(loaded.Warnings) != 2 {
		t.Errorf("%s, %q, %v", loaded.MCP.Menu, loaded.Warnings, err)
	}
}

// TestFormerMusicSection checks that a file with the section hoot still starts the music
// tools, which always started before the section was renamed.
func TestFormerMusicSection(t *testing.T) {
	t.Parallel()
	for text, enabled := range map[string]bool{
		"[hoot]\nexpose = ['all', 'b']\n[hoot.services]\nclap = 'http://127.0.0.1:1'\n":          true,
		"hoot = { expose = ['all', 'b'], services = { clap = 'http://127.0.0.1:1' } }\n":         true,
		"hoot.expose = ['all', 'b']\nhoot.services.clap = 'http://127.0.0.1:1'\n":                true,
		"[hoot]\nenabled = false\nexpose = ['all', 'b']\nservices.clap = 'http://127.0.0.1:1'\n": false,
		"[music]\nexpose = ['all', 'b']\n[music.services]\nclap = 'http://127.0.0.1:1'\n":        false,
	} {
		loaded, err := Load(Sources{File: configtest.WriteFile(t, text)})
		if err != nil {
			t.Errorf("%s%v", text, err)
			continue
		}
		if loaded.Music.Enabled != enabled || strings.Join(loaded.Music.Expose, "+") != "all+b" || loaded.Music.Services.CLAP != "http://127.0.0.1:1" {
			t.Errorf("%s%+v", text, loaded.Music)
		}
		if (len(loaded.Warnings) > 0) != strings.Contains(text, "hoot") {
			t.Errorf("%swarnings %q", text, loaded.Warnings)
		}
	}
	loaded, err := Load(Sources{File: configtest.WriteFile(t, ""), Env: Environment{"LUANETTE_HOOT_SERVICES_CLAP": "http://127.0.0.1:1"}})
	if err != nil || !loaded.Music.Enabled || len(loaded.Warnings) != 2 {
		t.Errorf("%+v, %q, %v", loaded.Music, loaded.Warnings, err)
	}
}

func TestFormerVariablesStillWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  Environment
		want time.Duration
	}{
		"former": {Environment{"LUANETTE_LINGER": "6s"}, 6 * time.Second},
		"both":   {Environment{"LUANETTE_LINGER": "6s", "LUANETTE_SHUTDOWN_DELAY": "7s"}, 7 * time.Second},
	} {
		loaded, err := Load(Sources{File: configtest.WriteFile(t, ""), Env: c.env})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(loaded.ShutdownDelay); got != c.want {
			t.Errorf("%s: shutdown_delay = %v, want %v", name, got, c.want)
		}
		if want := "environment: LUANETTE_LINGER is now called LUANETTE_SHUTDOWN_DELAY"; len(loaded.Warnings) != 1 || loaded.Warnings[0] != want {
			t.Errorf("%s: warnings %q", name, loaded.Warnings)
		}
		if c.env["LUANETTE_LINGER"] == "" {
			t.Errorf("%s: the caller's environment was changed", name)
		}
	}
}

func TestMistakesInFormerKeysAreReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"linger = \"6s\"\nshutdown_delay = \"7s\"\n": ":1: linger is the former name of shutdown_delay, which the file also sets",
		"[sessions]\nready_mb = \"much\"\n":          ":2: sessions.ready_mb: \"much\" is not a whole number",
		"[hoot]\nexposed = [\"all\"]\n":              ":1:2: unknown key \"hoot.exposed\"",
		"linger = \"6s\"\nlisten_adress = \"x\"\n":   ":2:1: unknown key \"listen_adress\"",
	} {
		_, err := Load(Sources{File: configtest.WriteFile(t, text)})
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v, want %s", text, err, want)
		}
	}
}
