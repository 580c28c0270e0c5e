package setup_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/setup"
)

// openWith is a fixture whose file has a text, and whose configuration follows it.
func openWith(t *testing.T, programs bool, text string) *fixture {
	t.Helper()
	f := open(t, programs)
	f.write(text)
	f.service.Current = func() *config.Loaded {
		loaded, err := config.LoadOrNew(f.service.Sources)
		if err != nil {
			t.Error(err)
		}
		loaded.Data = f.home
		return loaded
	}
	return f
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.service.Sources.File, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) file() string {
	f.t.Helper()
	text, err := os.ReadFile(f.service.Sources.File)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func TestSettingsAreChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	f := openWith(t, true, "# mine\n\n[log]\n# loud\nlevel = \"debug\" # for now\n")
	shown := f.send(http.StatusOK, "GET", "/api/v1/setup/settings", "")
	if shown["changeable"] != true || shown["lines"].(map[string]any)["log.level"] != 5.0 {
		t.Errorf("shown %v", shown)
	}
	before := f.send(http.StatusOK, "PATCH", "/api/v1/setup/settings", `{"values":{"log.level":"warn","read_only":true,"mcp.menu":"full"}}`)["before"].(map[string]any)
	if want := "# mine\n\nread_only = true\n[log]\n# loud\nlevel = \"warn\" # for now\n\n[mcp]\nmenu = \"full\"\n"; f.file() != want || f.reloads.Load() != 1 {
		t.Errorf("the file is\n%s", f.file())
	}
	if before["log.level"] != "debug" || before["read_only"] != nil {
		t.Errorf("before: %v", before)
	}
	f.send(http.StatusOK, "PATCH", "/api/v1/setup/settings", `{"values":{"log.level":"debug","read_only":null,"mcp.menu":null}}`)
	if text := f.file(); strings.Contains(text, "read_only") || strings.Contains(text, "menu") || !strings.Contains(text, `level = "debug" # for now`) {
		t.Errorf("taken back:\n%s", text)
	}
}

func TestSettingsThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := openWith(t, true, "")
	f.service.Sources.Env["LUANETTE_LOG_LEVEL"] = "error"
	for body, status := range map[string]int{
		`{"values":{"log.level":"warn"}}`:  http.StatusConflict,   // the environment sets it
		`{"values":{"listen":"x"}}`:        http.StatusBadRequest, // not while the server runs
		`{"values":{"chat.key":"sk-1"}}`:   http.StatusBadRequest, // a secret
		`{"values":{"mcp.menu":"huge"}}`:   http.StatusBadRequest,
		`{"values":{"read_only":"maybe"}}`: http.StatusBadRequest,
		`{"values":{"nothing":1}}`:         http.StatusBadRequest,
	} {
		f.send(status, "PATCH", "/api/v1/setup/settings", body)
	}
	if f.file() != "" || f.reloads.Load() != 0 {
		t.Errorf("the file is %q, %d reloads", f.file(), f.reloads.Load())
	}
	elsewhere := openWith(t, false, "")
	elsewhere.send(http.StatusForbidden, "PATCH", "/api/v1/setup/settings", `{"values":{"mcp.menu":"full"}}`)
	elsewhere.send(http.StatusForbidden, "POST", "/api/v1/setup/rules", `{"tool":"a.b","do":"allow"}`)
	elsewhere.send(http.StatusForbidden, "PUT", "/api/v1/setup/model", `{"provider":"openai"}`)
}

func TestRulesDecideFirst(t *testing.T) {
	t.Parallel()
	const other = "[[policy]]\ntool = \"a.*\"\ndo = \"deny\"\n"
	f := openWith(t, true, other)
	const rule = `{"key":"laptop","tool":"a.b","do":"allow"}`
	f.send(http.StatusOK, "POST", "/api/v1/setup/rules", rule)
	if rules := f.service.Current().Policy; len(rules) != 2 || rules[0].Tool != "a.b" || rules[0].Key != "laptop" {
		t.Errorf("rules %+v", rules)
	}
	f.send(http.StatusOK, "POST", "/api/v1/setup/rules/remove", rule)
	if f.file() != other {
		t.Errorf("the file is %q", f.file())
	}
	f.send(http.StatusNotFound, "POST", "/api/v1/setup/rules/remove", rule)
	f.send(http.StatusBadRequest, "POST", "/api/v1/setup/rules", `{"tool":"a.b","do":"perhaps"}`)
}

func TestModelIsTriedAndStored(t *testing.T) {
	t.Parallel()
	f := openWith(t, true, "")
	var tried []string
	f.service.TryModel = func(_ context.Context, m *config.ChosenModel) error {
		tried = append(tried, m.Key.Reveal())
		if m.Key.Reveal() == "wrong" {
			return fault.New(fault.NeedsAuth, "the key is wrong")
		}
		return nil
	}
	f.send(http.StatusBadRequest, "PUT", "/api/v1/setup/model", `{"provider":"openai","model":"m","key":"wrong"}`)
	if f.file() != "" {
		t.Errorf("a model that does not answer was stored: %s", f.file())
	}
	for _, key := range []string{"first", "second"} {
		f.send(http.StatusOK, "PUT", "/api/v1/setup/model", `{"provider":"openai","model":"m","key":"`+key+`"}`)
	}
	files, err := filepath.Glob(filepath.Join(f.home, "model_key_*"))
	if err != nil || len(files) != 1 || strings.Contains(f.file(), "second") || !strings.Contains(f.file(), `provider = "openai"`) {
		t.Fatalf("%v, %v:\n%s", files, err, f.file())
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if len(tried) != 3 {
		t.Errorf("tried %v", tried)
	}
}

func TestKeysAreSentToNobodyElse(t *testing.T) {
	t.Parallel()
	var got []string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		http.Error(w, "{}", http.StatusUnauthorized)
	}))
	t.Cleanup(endpoint.Close)
	f := openWith(t, true, "[chat]\nprovider = \"openai\"\nbase_url = \"https://models.example/v1\"\n")
	env := config.Environment{"OPENAI_API_KEY": "sk-kept"}
	chosen := &config.ChosenModel{Provider: "openai", BaseURL: endpoint.URL, Model: "m"}
	if err := chosen.Try(t.Context(), f.service.Current(), env, secret.Finder{}); err == nil || len(got) == 0 || got[0] != "" {
		t.Errorf("%v: sent %q", err, got)
	}
}

func TestSetsAreMadeChangedAndRemoved(t *testing.T) {
	t.Parallel()
	const mine = "# mine\n\n[keys.intern]\nenv = \"INTERN_KEY\"\n"
	f := openWith(t, true, mine)
	f.service.SetCosts = func(context.Context) (setup.SetCosts, error) { return setup.SetCosts{}, nil }
	const path = "/api/v1/setup/sets/research"
	if made := f.send(http.StatusOK, "PUT", path, `{"tools":["brave.*","notes.search"],"prompts":["notes.*"],"menu":"direct"}`); made["before"] != nil {
		t.Errorf("made: %v", made)
	}
	const made = mine + "\n[sets.research]\ntools = ['brave.*', 'notes.search']\nprompts = ['notes.*']\nmenu = 'direct'\n"
	if f.file() != made || f.reloads.Load() != 1 {
		t.Errorf("the file is\n%s", f.file())
	}
	shown := f.send(http.StatusOK, "GET", "/api/v1/setup/sets", "")
	if shown["changeable"] != true || shown["lines"].(map[string]any)["research"] != 6.0 || shown["sets"].(map[string]any)["research"].(map[string]any)["menu"] != "direct" {
		t.Errorf("shown %v", shown)
	}
	f.send(http.StatusConflict, "PUT", path, `{"tools":["a.b"]}`)
	f.send(http.StatusBadRequest, "PUT", path, `{"tools":[],"replace":true}`)
	f.send(http.StatusBadRequest, "PUT", path, `{"tools":["a.b"],"menu":"huge","replace":true}`)
	f.send(http.StatusBadRequest, "PUT", "/api/v1/setup/sets/Re%20search", `{"tools":["a.b"]}`)
	if f.file() != made {
		t.Errorf("refused, the file is\n%s", f.file())
	}
	before := f.send(http.StatusOK, "PUT", path, `{"tools":["a.b"],"replace":true}`)["before"].(map[string]any)
	if len(before["tools"].([]any)) != 2 || before["menu"] != "direct" {
		t.Errorf("before: %v", before)
	}
	f.send(http.StatusOK, "DELETE", path, "")
	if f.file() != mine {
		t.Errorf("removed:\n%s", f.file())
	}
	f.send(http.StatusNotFound, "DELETE", path, "")
}

func TestSetsThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	const bound = "[sets.research]\ntools = [\"a.b\"]\n\n[keys.intern]\nenv = \"INTERN_KEY\"\nset = \"research\"\n"
	f := openWith(t, true, bound)
	f.send(http.StatusBadRequest, "DELETE", "/api/v1/setup/sets/research", "")
	elsewhere := openWith(t, false, bound)
	elsewhere.send(http.StatusForbidden, "DELETE", "/api/v1/setup/sets/research", "")
	elsewhere.send(http.StatusForbidden, "PUT", "/api/v1/setup/sets/other", `{"tools":["a.b"]}`)
	if f.file() != bound || elsewhere.file() != bound {
		t.Errorf("%q, %q", f.file(), elsewhere.file())
	}
}
