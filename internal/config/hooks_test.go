package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/webhook"
)

// loadHooks loads a configuration file with this text.
func loadHooks(t *testing.T, text string) (*Loaded, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{File: file, Env: Environment{"HOME": t.TempDir()}})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	loaded, err := loadHooks(t, `
[hooks.deploy]
script = "deploy.lua"
scheme = "github"
secret = "${env:DEPLOY}"
old_secret = "plain-old-one"
headers = { event = "X-GitHub-Event" }
namespaces = ["git*"]
[hooks.other]
script = "note"
secret = "${env:MISSING}"
[hooks.standard]
script = "note"
scheme = "standard"
secret = "not base64!"
`)
	if err != nil {
		t.Fatal(err)
	}
	hooks, problems := loaded.Webhooks(secret.Finder{Getenv: func(name string) (string, bool) { return "s3cret", name == "DEPLOY" }})
	if len(problems) != 2 || len(hooks) != 1 {
		t.Fatalf("%d hooks, problems %v", len(hooks), problems)
	}
	got := hooks["deploy"]
	if got.Script != filepath.Join(filepath.Dir(loaded.File), "deploy.lua") || got.Scheme != webhook.GitHub || len(got.Secrets) != 2 || got.Secrets[0].Reveal() != "s3cret" {
		t.Errorf("deploy: %+v", got)
	}
	if got.Principal.ID != "hook:deploy" || !got.Principal.May(principal.MCP, "") || got.Principal.Admin() || got.Principal.CanSee("fs", "read") {
		t.Errorf("its principal: %+v", got.Principal)
	}
	if got.Window != webhook.DefaultWindow || got.Keep != webhook.DefaultKeep || got.MaxBytes != webhook.DefaultMaxBytes {
		t.Errorf("its limits: %+v", got)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown); err != nil || strings.Contains(shown.String(), "plain-old-one") || !strings.Contains(shown.String(), "${env:DEPLOY}") {
		t.Errorf("show: %v\n%s", err, shown.String())
	}
	if known := loaded.KnownSecrets(Environment{}); len(known) == 0 || known[0] != "plain-old-one" {
		t.Errorf("known secrets: %q", known)
	}
}

func TestHooksThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[hooks."a/b"]`:             "cannot be the name of a hook",
		`[hooks.a]`:                 "it has no script",
		"[hooks.a]\nscript = \"x\"": "it has no secret",
		"[hooks.a]\nscript = \"x\"\nsecret = \"y\"\nscheme = \"gitlab\"":                "is not a choice",
		"[hooks.a]\nscript = \"x\"\nsecret = \"y\"\nscopes = [\"all\"]":                 "is not a choice",
		"[hooks.a]\nscript = \"x\"\nsecret = \"y\"\nmax_kb = -1":                        "too small",
		"[hooks.a]\nscript = \"x\"\nsecret = \"y\"\nscheme = \"slack\"\nheader = \"z\"": "has its own headers",
	} {
		if _, err := loadHooks(t, text); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
