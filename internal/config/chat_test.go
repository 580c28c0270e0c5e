package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestChatPage checks that every configuration in docs/chat.md is valid and names a model
// that can be opened.
func TestChatPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := configtest.CodeBlocks(string(page), "toml")
	if len(shown) == 0 {
		t.Fatal("docs/chat.md shows no configuration")
	}
	for _, text := range shown {
		env := Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": "sk-test"}
		loaded, err := Load(Sources{File: configtest.WriteFile(t, text), Env: env})
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
			continue
		}
		if _, _, err := loaded.Chat.OpenModels(env, loaded.SecretFinder(env)); err != nil {
			t.Errorf("%v with\n%s", err, text)
		}
	}
}

func TestChatSettings(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	loaded, err := Load(Sources{Env: Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "7", "LUANETTE_CHAT_TEMPERATURE": "0.5"}})
	if err != nil || loaded.Chat.Iterations != 7 || loaded.Chat.Temperature != 0.5 || loaded.Origins["chat.iterations"] != "environment" {
		t.Errorf("got %+v, %v", loaded.Chat, err)
	}
	loaded, err = Load(Sources{Env: Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "7", "LUANETTE_CHAT_ITERATIONS": "8"}})
	if err != nil || loaded.Chat.Iterations != 8 {
		t.Errorf("LUANETTE_CHAT_ITERATIONS does not take precedence: %+v, %v", loaded.Chat, err)
	}
	if _, err = Load(Sources{Env: Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "many"}}); fault.CodeOf(err) != fault.Config {
		t.Errorf("iterations that are not a number: %v", err)
	}
	for name, text := range map[string]string{
		"provider": "[chat]\nprovider = \"oracle\"\n", "offer": "[chat]\noffer = \"maybe\"\n", "prompt slot": "[chat.prompts]\nidentiti = \"x\"\n",
		"iterations": "[chat]\niterations = 0\n",
	} {
		if _, err := Load(Sources{File: configtest.WriteFile(t, text), Env: Environment{"HOME": home}}); fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
			t.Errorf("invalid %s: error %v, hint %q", name, err, fault.HintOf(err))
		}
	}
}

// TestCallbackOrigins checks that receivers of the callback token are whole origins.
func TestCallbackOrigins(t *testing.T) {
	t.Parallel()
	for origin, ok := range map[string]bool{
		"https://gateway.example": true, "http://gateway:8080": true, "https://[2001:db8::1]:8443": true,
		"gateway.example": false, "https://gateway.example/": false, "https://user@gateway.example": false, "ftp://gateway.example": false, "": false,
	} {
		_, err := Load(Sources{File: configtest.WriteFile(t, fmt.Sprintf("[chat]\ncallback_origins = [%q]\n", origin)), Env: Environment{"HOME": t.TempDir()}})
		if (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

func TestChatKeyIsNotShown(t *testing.T) {
	t.Parallel()
	env := Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": "sk-very-secret"}
	loaded, err := Load(Sources{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := loaded.Show(&out); err != nil || strings.Contains(out.String(), "very-secret") {
		t.Errorf("shown: %v\n%s", err, out.String())
	}
}

// TestModelVariables checks that the variables of the providers' own programs are read,
// that settings take precedence, that `config show` says which is used, and that empty
// ones count as unset.
func TestModelVariables(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	load := func(text string, env Environment) (*Loaded, string) {
		t.Helper()
		env["HOME"] = home
		loaded, err := Load(Sources{File: configtest.WriteFile(t, text), Env: env})
		if err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		if err := loaded.Show(&shown); err != nil {
			t.Fatal(err)
		}
		return loaded, shown.String()
	}
	loaded, shown := load("", Environment{"ANTHROPIC_BASE_URL": "http://proxy:1", "ANTHROPIC_AUTH_TOKEN": "t", "OPENAI_BASE_URL": "http://no"})
	if loaded.Chat.BaseURL != "http://proxy:1" || !strings.Contains(shown, "environment ANTHROPIC_BASE_URL") || !strings.Contains(shown, "environment ANTHROPIC_AUTH_TOKEN") {
		t.Errorf("base_url %q in\n%s", loaded.Chat.BaseURL, shown)
	}
	loaded, _ = load("[chat]\nprovider = \"openai\"\nmodel = \"m\"\n", Environment{"ANTHROPIC_BASE_URL": "http://no", "OPENAI_BASE_URL": "http://local/v1"})
	if loaded.Chat.BaseURL != "http://local/v1" {
		t.Errorf("base_url %q", loaded.Chat.BaseURL)
	}
	loaded, shown = load("", Environment{"ANTHROPIC_BASE_URL": "http://no", "LUANETTE_CHAT_BASE_URL": "http://yes"})
	if loaded.Chat.BaseURL != "http://yes" || strings.Contains(shown, "environment ANTHROPIC_BASE_URL") {
		t.Errorf("base_url %q in\n%s", loaded.Chat.BaseURL, shown)
	}
	loaded, _ = load("", Environment{"ANTHROPIC_BASE_URL": "", "LUANETTE_CHAT_BASE_URL": "", "LUANETTE_CHAT_ITERATIONS": "", "MAX_ORCHESTRATION_ITERATIONS": "", "ANTHROPIC_API_KEY": ""})
	if loaded.Chat.BaseURL != "" || loaded.Chat.Iterations != 10 {
		t.Errorf("empty variables set %+v", loaded.Chat)
	}
	if _, _, err := loaded.Chat.OpenModels(Environment{"ANTHROPIC_API_KEY": ""}, loaded.SecretFinder(Environment{})); fault.CodeOf(err) != fault.Config {
		t.Errorf("an empty key: %v", err)
	}
}
