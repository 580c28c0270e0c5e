package builtin_test

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// quoted writes text as a JSON string.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// greeter is a script that describes itself.
const greeter = `function describe()
  return { name = "greet", description = "Greets somebody politely", params = { name = { type = "string", required = true, description = "who" } }, tags = { "mood:kind" } }
end
function main(params)
  print("greeting", params.name)
  return { text = "Hello " .. params.name }
end`

func TestEval(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct{ args, result, text string }{
		{`{"code":"return 2 + 2"}`, `4`, "Execution completed in Nms\nResult: 4"},
		{`{"code":"2 + 2"}`, `4`, "Execution completed in Nms\nResult: 4"},
		{`{"code":"print('a') eprint('b') return {1, {x = 'y'}}"}`, `[1,{"x":"y"}]`, "Execution completed in Nms\nResult: [\n  1,\n  {\n    \"x\": \"y\"\n  }\n]\nOutput:\n  a\n  b"},
		{`{"code":"return mcp.fs.read_file{path = 'x'}.path"}`, `"x"`, "Execution completed in Nms\nResult: x"},
		{`{"code":"return #mcp.search_tools{query = 'read file'}.tools > 0"}`, `true`, "Execution completed in Nms\nResult: true"},
		{`{"code":` + quoted(greeter) + `,"params":{"name":"Ada"}}`, `{"text":"Hello Ada"}`, "Execution completed in Nms\nResult: {\n  \"text\": \"Hello Ada\"\n}\nOutput:\n  greeting\tAda"},
		{`{"code":"function main(p) return p end","params":{}}`, `{}`, "Execution completed in Nms\nResult: {}"},
	} {
		var out struct {
			Result     json.RawMessage
			DurationMS *int64 `json:"duration_ms"`
			Output     []struct{ Stream, Text string }
		}
		view := h.mustCall(t, "lua_eval", c.args, &out)
		text := regexp.MustCompile(`in \d+ms`).ReplaceAllString(view.Text(), "in Nms")
		if string(out.Result) != c.result || text != c.text || out.DurationMS == nil || out.Output == nil {
			t.Errorf("%s\n got %s\n%s\nwant %s\n%s", c.args, view.Structured, text, c.result, c.text)
		}
	}
}

func TestEvalFails(t *testing.T) {
	t.Parallel()
	h := open(t)
	for args, want := range map[string]string{
		`{"code":"x ="}`:                               "Lua Syntax Error in script",
		`{"code":"return mcp.fs.raed_file{}"}`:         "Did you mean 'mcp.fs.read_file'?",
		`{"code":"return 1","params":{}}`:              "Missing main() in script",
		`{"code":"return mcp.fs.read_file{}"}`:         "path: required but missing",
		`{"code":` + quoted(greeter) + `,"params":{}}`: "Parameter validation failed:\n- Missing required parameter 'name' (who)",
		`{"code":"print('said before') error('x')"}`:   "Output:\n  said before",
	} {
		view, err := h.call(t, "lua_eval", args)
		var meta struct {
			Error struct {
				Code    fault.Code
				Details struct{ Kind string }
			} `json:"luanette/error"`
		}
		if err != nil || !view.IsError || !strings.Contains(view.Text(), want) || view.Structured != nil {
			t.Errorf("%s: %v\n got %s\nwant %s", args, err, view.Text(), want)
		}
		if err := json.Unmarshal(view.Meta, &meta); err != nil || meta.Error.Code == "" || meta.Error.Details.Kind == "" {
			t.Errorf("%s: meta = %s, %v", args, view.Meta, err)
		}
	}
}

func TestEvalReportsProgress(t *testing.T) {
	t.Parallel()
	h := open(t)
	var progress []float64
	caller := &tool.Caller{Progress: func(p tool.Progress) { progress = append(progress, p.Progress/p.Total) }}
	_, err := h.catalog.Call(t.Context(), tool.Call{
		Ref: tool.Ref{Name: "lua_eval"}, Args: json.RawMessage(`{"code":"progress(0.5, 'half')"}`), Caller: caller,
	})
	if err != nil || !slices.Equal(progress, []float64{0, 0.5, 1}) {
		t.Errorf("progress %v, %v", progress, err)
	}
}

// storeScript stores a script and returns its hash.
func (h toolFixture) storeScript(t *testing.T, source, more string) string {
	t.Helper()
	var out struct{ Hash string }
	h.mustCall(t, "script_store", `{"content":`+quoted(source)+more+`}`, &out)
	return out.Hash
}

func TestStoredScripts(t *testing.T) {
	t.Parallel()
	h := open(t)
	var stored scripttools.Stored
	h.mustCall(t, "script_store", `{"content":`+quoted(greeter)+`,"tags":["a"],"creator":"ada"}`, &stored)
	if !stored.Created || stored.Name != "greet" || !slices.Equal(stored.Tags, []string{"a", "mood:kind", "type:lua"}) {
		t.Errorf("stored %+v", stored)
	}
	h.mustCall(t, "script_store", `{"content":`+quoted(greeter)+`,"tags":["b"]}`, &stored)
	if stored.Created || len(stored.Tags) != 4 {
		t.Errorf("stored again: %+v", stored)
	}
	child := h.storeScript(t, "function main() return 7 end", `,"parent":"cas:`+stored.Hash[:12]+`","tags":["type:draft"]`)

	var described scripttools.Described
	view := h.mustCall(t, "lua_describe", `{"script_hash":"`+stored.Hash[:12]+`"}`, &described)
	if described.Name != "greet" || string(described.Params) != `{"name":{"type":"string","required":true,"description":"who"}}` ||
		!strings.HasPrefix(view.Text(), "Script: greet\nDescription: Greets somebody politely\nParams: ") {
		t.Errorf("described %+v\n%s", described, view.Text())
	}
	if view := h.mustCall(t, "lua_describe", `{"script":"cas:`+stored.Hash+`"}`, nil); view.Text() != h.mustCall(t, "lua_describe", `{"script_hash":"`+stored.Hash+`"}`, nil).Text() {
		t.Errorf("by cas: %s", view.Text())
	}
	for _, wrong := range []string{`{}`, `{"script":"cas:` + stored.Hash + `","script_hash":"` + stored.Hash + `"}`} {
		if view, err := h.call(t, "lua_describe", wrong); err != nil || !view.IsError || !strings.Contains(view.Text(), "either script_hash or script") {
			t.Errorf("lua_describe %s: %s, %v", wrong, view.Text(), err)
		}
	}
	if view := h.mustCall(t, "lua_describe", `{"script_hash":"`+child+`"}`, nil); !strings.Contains(view.Text(), "Script does not define a describe() function") {
		t.Errorf("a script without describe(): %s", view.Text())
	}

	var got scripttools.GotScript
	h.mustCall(t, "script_get", `{"script_hash":"cas:`+child+`"}`, &got)
	if got.Content != "function main() return 7 end" || got.Parent != stored.Hash || !slices.Equal(got.Ancestors, []string{stored.Hash}) {
		t.Errorf("got %+v", got)
	}
	h.mustCall(t, "script_get", `{"script_hash":"`+stored.Hash+`"}`, &got)
	if !slices.Equal(got.Children, []string{child}) || got.Creator != "ada" {
		t.Errorf("got %+v", got)
	}
}

// TestLanguageOfStoredScripts checks that the language of stored content does not
// change, since its hash identifies it.
func TestLanguageOfStoredScripts(t *testing.T) {
	t.Parallel()
	h := open(t)
	const source = "const describe = () => ({ name: 'shout' }); const main = ({ who }) => `${who}!`"
	for language, content := range map[string]string{"": source, "lua": source + "\n", "javascript": greeter} {
		want := script.JavaScript
		if content == greeter {
			want = script.Lua
		}
		var stored scripttools.Stored
		h.mustCall(t, "script_store", `{"content":`+quoted(content)+`,"language":"`+cmp.Or(language, "lua")+`"}`, &stored)
		if stored.Language != want || len(stored.Warnings) > 0 || !slices.Contains(stored.Tags, "type:"+want) {
			t.Errorf("language %q: %+v", language, stored)
		}
		raw, err := builtin.NewResources(scripttools.Resources(h.scripts)).ReadResource(t.Context(), "lua://scripts/"+stored.Hash[:12], nil)
		mime := map[string]string{script.Lua: "text/x-lua", script.JavaScript: "text/javascript"}[want]
		if err != nil || !strings.Contains(string(raw), `"mimeType":"`+mime+`"`) {
			t.Errorf("read as %s, %v", raw, err)
		}
	}
	view, err := h.call(t, "lua_eval", `{"code":"const x = 1; return x"}`)
	if err != nil || !view.IsError || !strings.Contains(view.Text(), "This looks like JavaScript") {
		t.Errorf("JavaScript as Lua: %s, %v", view.Text(), err)
	}
}

func TestBrokenScriptsAreStoredWithAWarning(t *testing.T) {
	t.Parallel()
	h := open(t)
	var stored scripttools.Stored
	h.mustCall(t, "script_store", `{"content":"function main( oops"}`, &stored)
	if len(stored.Warnings) != 1 || !strings.Contains(stored.Warnings[0], "Lua Syntax Error") {
		t.Errorf("stored %+v", stored)
	}
	for content, language := range map[string]string{"return 1": "lua", "const x = 1": "javascript"} {
		var plain scripttools.Stored
		h.mustCall(t, "script_store", `{"content":"`+content+`"}`, &plain)
		if plain.Language != language || len(plain.Warnings) != 1 || !strings.Contains(plain.Warnings[0], "defines no main(params)") {
			t.Errorf("without main: %+v", plain)
		}
	}
	view, err := h.call(t, "lua_describe", `{"script_hash":"`+stored.Hash+`"}`)
	if err != nil || !view.IsError || !strings.HasPrefix(view.Text(), "Lua Syntax Error in script cas:"+stored.Hash[:12]+"\n") {
		t.Errorf("described: %v, %s", err, view.Text())
	}
}

func TestScriptSearch(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.storeScript(t, greeter, `,"creator":"ada"`)
	h.storeScript(t, strings.ReplaceAll(greeter, "greet", "insult"), `,"creator":"bob","tags":["rude"]`)
	h.storeScript(t, "return 1", `,"tags":["type:draft"]`)
	for args, want := range map[string]string{
		`{}`:                        "insult greet",
		`{"tag":"rude"}`:            "insult",
		`{"creator":"ada"}`:         "greet",
		`{"vibe":"greet politely"}`: "greet insult",
		`{"vibe":"politely","tag":"mood:kind","limit":1}`: "insult",
		`{"tag":"type:draft"}`:                            "",
		`{"vibe":"nothing like it"}`:                      "",
	} {
		var found scripttools.FoundScripts
		view := h.mustCall(t, "script_search", args, &found)
		var names []string
		for _, s := range found.Scripts {
			names = append(names, s.Name)
		}
		if strings.Join(names, " ") != want || view.Text() == "" {
			t.Errorf("%s found %q, want %q", args, names, want)
		}
	}
	var page scripttools.FoundScripts
	h.mustCall(t, "script_search", `{"limit":1}`, &page)
	if page.Total != 2 || page.NextCursor == "" {
		t.Errorf("first page: %+v", page)
	}
	h.mustCall(t, "script_search", `{"limit":1,"cursor":"`+page.NextCursor+`"}`, &page)
	if len(page.Scripts) != 1 || page.Scripts[0].Name != "greet" {
		t.Errorf("second page: %+v", page)
	}
}

func TestPublishing(t *testing.T) {
	t.Parallel()
	h := open(t)
	hash := h.storeScript(t, greeter, "")
	var published scripttools.PublishedTool
	h.mustCall(t, "script_publish", `{"script_hash":"`+hash[:16]+`"}`, &published)
	if published.Name != "greet" || published.Version != 1 || published.Hash != hash {
		t.Errorf("published %+v", published)
	}
	if view := h.mustCall(t, "greet", `{"name":"Ada"}`, nil); string(view.Structured) != `{"text":"Hello Ada"}` {
		t.Errorf("greet = %s", view.Structured)
	}
	if view := h.mustCall(t, "lua_eval", `{"code":"return mcp.greet{name = 'Lua'}.text"}`, nil); !strings.Contains(view.Text(), "Result: Hello Lua") {
		t.Errorf("from a script: %s", view.Text())
	}
	if _, err := h.call(t, "greet", `{}`); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("greet without a name: %v", err)
	}

	second := h.storeScript(t, strings.ReplaceAll(greeter, "Hello", "Hi"), `,"parent":"`+hash+`"`)
	h.mustCall(t, "script_publish", `{"script_hash":"`+second+`"}`, nil)
	if view := h.mustCall(t, "greet", `{"name":"Ada"}`, nil); string(view.Structured) != `{"text":"Hi Ada"}` {
		t.Errorf("greet = %s", view.Structured)
	}
	var history scripttools.PublishedHistory
	view := h.mustCall(t, "script_history", `{"name":"greet"}`, &history)
	if len(history.Versions) != 2 || history.Versions[0].Hash != second || !history.Versions[0].Current || !strings.Contains(view.Text(), "(current)") {
		t.Errorf("history %+v", history)
	}
	h.mustCall(t, "script_unpublish", `{"name":"greet"}`, nil)
	if _, err := h.call(t, "greet", `{"name":"Ada"}`); fault.CodeOf(err) != fault.ToolNotFound {
		t.Errorf("withdrawn: %v", err)
	}
	for args, want := range map[string]string{
		`{"script_hash":"` + h.storeScript(t, "return 1", "") + `"}`:                                "the script has no describe()",
		`{"script_hash":"` + hash + `","name":"lua_eval"}`:                                          "is the name of a built-in tool",
		`{"script_hash":"000000000000"}`:                                                            "no content with hash",
		`{"script_hash":"` + h.storeScript(t, "function describe() return {name=1} end", "") + `"}`: "describe().name must be a string",
	} {
		view, err := h.call(t, "script_publish", args)
		if err != nil || !view.IsError || !strings.Contains(view.Text(), want) {
			t.Errorf("%s: %v, %s", args, err, view.Text())
		}
	}
}

func TestLuaHelp(t *testing.T) {
	t.Parallel()
	h := open(t)
	for args, want := range map[string]string{
		`{}`:                    "- **json**: json.encode",
		`{"topic":"mcp"}`:       "## mcp.call(",
		`{"topic":"clock.now"}`: "## clock.now()",
		`{"topic":"globals"}`:   "## print(",
		`{"topic":"progress"}`:  "progress(fraction",
	} {
		var help scripttools.Help
		h.mustCall(t, "lua_help", args, &help)
		if !strings.Contains(help.Page, want) || !slices.Contains(help.Topics, "mcp") {
			t.Errorf("%s: %+v", args, help)
		}
	}
	if view, err := h.call(t, "lua_help", `{"topic":"jsno"}`); err != nil || !view.IsError || !strings.Contains(view.Text(), "did you mean json") {
		t.Errorf("%v, %s", err, view.Text())
	}
}

func TestSourceWriterStoresAnOlderVersionAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	w := scripttools.NewSourceWriter(h.runner, h.scripts)
	first, err := w.Store(t.Context(), []byte(greeter), "greet.lua", cas.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Store(t.Context(), []byte(greeter+" "), "greet.lua", first)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := w.Store(t.Context(), []byte(greeter), "greet.lua", second); err != nil || back != first {
		t.Errorf("Store = %s, %v", back.Short(), err)
	}
	a, err := h.scripts.Get(t.Context(), second)
	if err != nil || a.Parent != first || !slices.Contains(a.Tags, "file:greet.lua") || a.Name != "greet" {
		t.Errorf("Get = %+v, %v", a, err)
	}
}

// TestStoreAgain checks that an author may save twice, and return to an earlier version.
func TestStoreAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	store := func(content, parent string) (stored scripttools.Stored) {
		args, _ := json.Marshal(map[string]string{"content": content, "parent": parent})
		h.mustCall(t, "script_store", string(args), &stored)
		return stored
	}
	first := store("return 1", "")
	if again := store("return 1", first.Hash); again.Created || again.Hash != first.Hash {
		t.Errorf("the same text again: %+v", again)
	}
	second := store("return 2", first.Hash)
	if back := store("return 1", second.Hash); back.Created || back.Hash != first.Hash {
		t.Errorf("an earlier version: %+v", back)
	}
	var view struct{ Parent string }
	h.mustCall(t, "script_get", `{"script_hash":"`+second.Hash+`"}`, &view)
	if view.Parent != first.Hash {
		t.Errorf("the parent is %q", view.Parent)
	}
}
