package config

import (
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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
		"linger = \"6s\"\nlisten_adress = \"x\"\n":   ":2:1: unknown key \"listen_adress\"",
	} {
		_, err := Load(Sources{File: configtest.WriteFile(t, text)})
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v, want %s", text, err, want)
		}
	}
}
