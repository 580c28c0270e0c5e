package hootenanny

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/modelspec"
	"github.com/luanette/luanette/internal/tools/toolset/toolsettest"
)

func TestConfiguredModelsBecomeTools(t *testing.T) {
	t.Parallel()
	spec := modelspec.Spec{URL: "http://127.0.0.1:1", Description: "Makes a riff.", Result: modelspec.MIDI, Arguments: map[string]modelspec.Argument{"like": {Type: "midi"}}}
	open := func(name string, s modelspec.Spec) (*Backend, error) {
		d := dbtest.Open(t, dbtest.Fresh(t))
		return Open(t.Context(), d, Options{Files: noFiles(t, d), Models: map[string]modelspec.Spec{name: s}})
	}
	b, err := open("riff_generate", spec)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	tools, err := b.Tools().Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, info := range tools {
		if info.Name == "riff_generate" {
			found = true
			toolsettest.Check(t, info)
			if !strings.Contains(string(info.Input), `"variation_set_id"`) || info.Title != "riff generate" {
				t.Errorf("%s: %s", info.Title, info.Input)
			}
		}
	}
	if !found {
		t.Error("there is no tool riff_generate")
	}
	for _, name := range []string{"cas_store", "anticipatory_embed", "orpheus_generate"} {
		if _, err := open(name, spec); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "there is a tool of this name") {
			t.Errorf("a model named %s: %v", name, err)
		}
	}
	spec.Result = ""
	if _, err := open("riff", spec); fault.CodeOf(err) != fault.Config {
		t.Errorf("a model without a result: %v", err)
	}
}
