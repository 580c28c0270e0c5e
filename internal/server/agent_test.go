package server

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// Every configuration docs/chat.md shows is one the program reads, and opens a
// OpenModel with.
func TestChatPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(shown) == 0 {
		t.Fatal("docs/chat.md shows no configuration")
	}
	for _, one := range shown {
		env := config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": "sk-test"}
		loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, one[1]), Env: env})
		if err != nil {
			t.Errorf("%v in\n%s", err, one[1])
			continue
		}
		if _, err := loaded.Chat.OpenModel(env, loaded.SecretFinder(env)); err != nil {
			t.Errorf("%v with\n%s", err, one[1])
		}
	}
}

func TestChatSettings(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	loaded, err := config.Load(config.Sources{Env: config.Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "7", "LUANETTE_CHAT_TEMPERATURE": "0.5"}})
	if err != nil || loaded.Chat.Iterations != 7 || loaded.Chat.Temperature != 0.5 || loaded.Origins["chat.iterations"] != "environment" {
		t.Errorf("got %+v, %v", loaded.Chat, err)
	}
	loaded, err = config.Load(config.Sources{Env: config.Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "7", "LUANETTE_CHAT_ITERATIONS": "8"}})
	if err != nil || loaded.Chat.Iterations != 8 {
		t.Errorf("its own variable is weaker: %+v, %v", loaded.Chat, err)
	}
	if _, err = config.Load(config.Sources{Env: config.Environment{"HOME": home, "MAX_ORCHESTRATION_ITERATIONS": "many"}}); fault.CodeOf(err) != fault.Config {
		t.Errorf("many: %v", err)
	}
	for name, text := range map[string]string{
		"a provider": "[chat]\nprovider = \"oracle\"\n", "an offer": "[chat]\noffer = \"maybe\"\n", "a slot": "[chat.prompts]\nidentiti = \"x\"\n",
		"iterations": "[chat]\niterations = 0\n",
	} {
		if _, err := config.Load(config.Sources{File: configtest.WriteFile(t, text), Env: config.Environment{"HOME": home}}); fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
			t.Errorf("%s that is none: %v", name, err)
		}
	}
}

// A key is shown to nobody.
func TestChatKeyIsNotShown(t *testing.T) {
	t.Parallel()
	env := config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": "sk-very-secret"}
	loaded, err := config.Load(config.Sources{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := loaded.Show(&out); err != nil || strings.Contains(out.String(), "very-secret") {
		t.Errorf("shown: %v\n%s", err, out.String())
	}
}
