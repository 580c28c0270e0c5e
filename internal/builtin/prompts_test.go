package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/mcp/offers"
)

var _ offers.Prompts = (*builtin.Prompts)(nil)

func (h toolFixture) prompts() *builtin.Prompts {
	return scripttools.Prompts(h.runner, h.scripts, h.catalog)
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := h.prompts()
	hash := h.storeScript(t, greeter, "")
	broken := h.storeScript(t, "function main( oops", "")
	for _, c := range []struct {
		name, args string
		wants      []string
	}{
		{"write-script", `{"task":"read a file"}`, []string{"read a file", "mcp.fs.read_file(path: string, head?: integer)  Does read file.", "Keep it short"}},
		{"write-script", `{"task":"x","style":"production"}`, []string{"ready for production", "clock"}},
		{"debug-script", `{"hash":"` + hash[:12] + `","error":"it fell over"}`, []string{"Hello ", "it fell over", `parent = "` + hash}},
		{"debug-script", `{"hash":"` + broken + `"}`, []string{"function main( oops", "Lua Syntax Error"}},
		{"explain-script", `{"hash":"` + hash + `"}`, []string{"function describe()"}},
		{"midi-workflow", `{"operation":"transpose","params":"up a fifth"}`, []string{"transposes a MIDI file", "up a fifth", "mcp.music.orpheus_generate", "## midi.read("}},
	} {
		raw, err := p.GetPrompt(t.Context(), c.name, json.RawMessage(c.args), nil)
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.args, err)
			continue
		}
		var result struct {
			Description string
			Messages    []struct {
				Role    string
				Content struct{ Type, Text string }
			}
		}
		if err := json.Unmarshal(raw, &result); err != nil || len(result.Messages) != 1 || result.Messages[0].Role != "user" || result.Description == "" {
			t.Fatalf("%s: %s, %v", c.name, raw, err)
		}
		for _, want := range c.wants {
			if !strings.Contains(result.Messages[0].Content.Text, want) {
				t.Errorf("%s %s lacks %q:\n%s", c.name, c.args, want, result.Messages[0].Content.Text)
			}
		}
	}
}

func TestPromptsRefuse(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range [][2]string{
		{"write-scrpt", `{}`}, {"write-script", `{}`}, {"write-script", `{"task":"x","style":"baroque"}`}, {"write-script", `[]`},
		{"explain-script", `{"hash":"short"}`}, {"midi-workflow", `{"operation":"erase"}`},
	} {
		if _, err := h.prompts().GetPrompt(t.Context(), c[0], json.RawMessage(c[1]), nil); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
	listed, err := h.prompts().ListPrompts(t.Context())
	if err != nil || len(listed) != 4 || !strings.Contains(string(listed[0]), `{"name":"task","description":"what the script should do","required":true}`) {
		t.Errorf("ListPrompts = %s, %v", listed, err)
	}
}

func TestScriptResources(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := builtin.NewResources(servertools.Resources(h.catalog, h.servers, h.catalog), scripttools.Resources(h.scripts))
	hash := h.storeScript(t, greeter, "")
	for uri, want := range map[string]string{
		"lua://scripts/" + hash:      "Hello ",
		"lua://scripts/" + hash[:12]: "Hello ",
		"lua://examples/hello":       "The smallest tool",
		"lua://examples/meta_tool":   "generate_and_wait",
	} {
		raw, err := r.ReadResource(t.Context(), uri, nil)
		if err != nil || !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"mimeType":"text/x-lua"`) {
			t.Errorf("read %s: %s, %v", uri, raw, err)
		}
	}
	for _, uri := range []string{"lua://examples/none", "lua://examples/..", "lua://scripts/000000000000"} {
		if _, err := r.ReadResource(t.Context(), uri, nil); fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) == "" {
			t.Errorf("read %s: %v", uri, err)
		}
	}
	listed, _ := r.ListResources(t.Context())
	if !slices.ContainsFunc(listed, func(raw json.RawMessage) bool {
		return strings.Contains(string(raw), `"uri":"lua://examples/parallel_fanout","name":"example-parallel_fanout"`)
	}) {
		t.Errorf("examples are not listed: %s", listed)
	}
}

func TestScriptCompletions(t *testing.T) {
	t.Parallel()
	h := open(t)
	hash := h.storeScript(t, greeter, `,"tags":["style:jazz"]`)
	c := builtin.Join(builtin.NamespaceCompletions(h.catalog), scripttools.Completions(h.scripts))
	for params, want := range map[string]string{
		`{"argument":{"name":"script_hash","value":"` + hash[:3] + `"}}`:                                         `["` + hash + `"]`,
		`{"argument":{"name":"tag","value":"JAZZ"}}`:                                                             `["style:jazz"]`,
		`{"argument":{"name":"style","value":"prod"}}`:                                                           `["production"]`,
		`{"ref":{"type":"ref/resource","uri":"lua://examples/{name}"},"argument":{"name":"name","value":"mid"}}`: `["midi_transpose"]`,
		`{"ref":{"type":"ref/resource","uri":"lua://namespaces/{name}"},"argument":{"name":"name","value":"m"}}`: `["music"]`,
	} {
		got, err := c.Complete(t.Context(), json.RawMessage(params))
		if err != nil || !strings.Contains(string(got), `"values":`+want) {
			t.Errorf("%s: %s, %v", params, got, err)
		}
	}
}
