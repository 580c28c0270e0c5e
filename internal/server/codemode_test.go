package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/tokencount"
	"github.com/luanette/luanette/internal/tools/typedecl/typedecltest"
)

// modelClient is an MCP client as a model has it: what it is shown is what comes over
// the wire.
type modelClient struct {
	t    *testing.T
	srv  *Server
	peer *upstream.Peer
}

// startModelClient starts a server with real MCP servers as upstreams and connects to it.
func startModelClient(t *testing.T, folder string, settings map[string]string) modelClient {
	t.Helper()
	var file strings.Builder
	for name, args := range map[string][]string{
		"fs": {"mcp-server-filesystem", folder}, "memory": {"mcp-server-memory"},
		"everything": {"mcp-server-everything", "stdio"}, "github": {"mcp-server-github"},
	} {
		quoted, err := json.Marshal(append([]string{npmtest.Program(t, args[0])}, args[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		file.WriteString("[upstreams." + name + "]\ncommand = \"node\"\nexpose = \"all\"\nargs = " + string(quoted) + "\n")
		if name == "memory" {
			file.WriteString("env = { MEMORY_FILE_PATH = '" + filepath.Join(folder, "memory.jsonl") + "' }\n")
		}
	}
	path := configtest.WriteFile(t, file.String())
	env := config.ProcessEnvironment(os.Environ())
	url, srv := start(t, config.Sources{File: path, Env: config.Environment{"PATH": env["PATH"], "HOME": folder}, Flags: settings})
	srv.upstreams.AwaitAttempts(t.Context(), 2*time.Minute)
	srv.catalog.Refresh(t.Context())
	return modelClient{t, srv, connectPeer(t, url)}
}

// listTools is the names of the tools shown, and what they and the instructions cost.
func (v modelClient) listTools() (names []string, cost int) {
	v.t.Helper()
	_, _, instructions, err := v.peer.Describe(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	raw, err := v.peer.Request(v.t.Context(), wire.MethodToolsList, nil, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	listed, _ := rawjson.Get(raw, "tools")
	definitions, _ := rawjson.Items(listed)
	for _, d := range definitions {
		name, _ := rawjson.GetText(d, "name")
		names = append(names, name)
		cost += tokencount.Estimate(string(d))
	}
	return names, cost + tokencount.Estimate(string(instructions))
}

// call calls a tool as a model does, without asking for more than is shown.
func (v modelClient) call(name string, args any) tool.View {
	v.t.Helper()
	params, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		v.t.Fatal(err)
	}
	raw, err := v.peer.Request(v.t.Context(), wire.MethodToolsCall, params, nil)
	if err != nil {
		v.t.Fatalf("%s: %v", name, err)
	}
	view, err := tool.Result{Raw: raw}.View()
	if err != nil {
		v.t.Fatal(err)
	}
	return view
}

// runCode executes code that must end well, and returns what it returned.
func (v modelClient) runCode(code string) json.RawMessage {
	v.t.Helper()
	view := v.call("execute_code", map[string]any{"code": code, "timeout_ms": 30_000})
	if view.IsError {
		v.t.Fatalf("%s\n%s", code, view.Text())
	}
	result, _ := rawjson.Get(view.Structured, "result")
	return result
}

// checkSearch is the first tool that a search finds of those a name begins with.
func (v modelClient) checkSearch(query, want string) {
	v.t.Helper()
	var found builtin.Found
	if err := json.Unmarshal(v.call("search_tools", map[string]any{"query": query, "limit": 5}).Structured, &found); err != nil {
		v.t.Fatal(err)
	}
	if !slices.ContainsFunc(found.Tools, func(f builtin.FoundTool) bool { return f.Name == want && strings.HasPrefix(f.Signature, "(") }) {
		v.t.Errorf("%q finds %+v, not %s", query, found.Tools, want)
	}
}

// TestCodeMode is what a client does with real servers and more tools than it
// wants to read: search, read definitions, execute.
func TestCodeMode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v := startModelClient(t, folder, nil)
	if !v.srv.ownTools.Has("execute_code") {
		t.Fatal("the menu has no execute_code")
	}
	names, cost := v.listTools()
	if !slices.Equal(names, []string{"execute_code", "get_tool_definitions", "search_tools"}) || cost > 700 {
		t.Errorf("the menu is %v in %d tokens, want three tools in 700", names, cost)
	}
	v.checkSearch("save text to a file", "fs.write_file")
	v.checkSearch("remember something in the knowledge graph", "memory.create_entities")
	v.checkSearch("report a bug", "github.create_issue")

	var got builtin.Definitions
	declared := v.call("get_tool_definitions", map[string]any{"names": []string{"fs.write_file", "memory.create_entities"}, "format": "typescript"})
	if err := json.Unmarshal(declared.Structured, &got); err != nil || !strings.Contains(got.Declarations, "write_file(args: {") {
		t.Fatalf("%s, %v", declared.Text(), err)
	}
	result := v.runCode(`
		const path = ` + quoted(filepath.Join(folder, "note.txt")) + `;
		const [written, stored] = await Promise.all([
			mcp.fs.write_file({ path, content: "from code" }),
			mcp.memory.create_entities({ entities: [{ name: "Ada", entityType: "person", observations: ["wrote programs"] }] }),
		]);
		const graph = await mcp.memory.search_nodes({ query: "programs" });
		return { name: graph.entities[0].name, text: await mcp.fs.read_text_file({ path }) };`)
	if !strings.Contains(string(result), `"name":"Ada"`) || !strings.Contains(string(result), "from code") {
		t.Errorf("the code returned %s", result)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "note.txt")); err != nil || string(text) != "from code" {
		t.Errorf("note.txt is %q, %v", text, err)
	}
	v.checkSearchInCode()
	v.checkLearnedShapes()
	v.checkLargeResults()
	for _, code := range codeModeExamples(t, "js") {
		if result := v.runCode(strings.ReplaceAll(code, "FOLDER", folder)); len(result) < 10 {
			t.Errorf("docs/code_mode.md:\n%s\nreturned %s", code, result)
		}
	}
}

// codeModeExamples are the examples in a language of the page about code mode.
func codeModeExamples(t *testing.T, language string) (examples []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/code_mode.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "\n```")
		examples = append(examples, code)
	}
	if len(examples) == 0 {
		t.Fatalf("docs/code_mode.md shows no %s", language)
	}
	return examples
}

func TestCodeModeSettingsAreReal(t *testing.T) {
	t.Parallel()
	path := configtest.WriteFile(t, codeModeExamples(t, "toml")[0])
	loaded, err := config.Load(config.Sources{File: path})
	if err != nil || len(loaded.MCP.Pinned) != 2 || loaded.MCP.CodeThreshold != builtin.DefaultThreshold {
		t.Errorf("%+v, %v", loaded, err)
	}
	for _, wrong := range []string{"mode = 'cod'", "result_kb = 0"} {
		if _, err := config.Load(config.Sources{File: configtest.WriteFile(t, "[mcp]\n"+wrong)}); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// checkSearchInCode finds and reads tools without leaving the code.
func (v modelClient) checkSearchInCode() {
	v.t.Helper()
	result := v.runCode(`const found = await tools.search("sum of two numbers"); return [found[0].name, await tools.describe(found[0].name, "typescript")]`)
	var found []string
	if err := json.Unmarshal(result, &found); err != nil || found[0] != "everything.get-sum" || !strings.Contains(found[1], "Promise<") {
		v.t.Errorf("found %s, %v", result, err)
	}
}

// checkLearnedShapes has a tool without an output schema answer, and then a field be
// misspelt.
func (v modelClient) checkLearnedShapes() {
	v.t.Helper()
	v.runCode(`return await mcp.everything.echo({ message: '{"title": {"text": "x"}, "size": 3}' })`)
	text := v.call("get_tool_definitions", map[string]any{"names": []string{"everything.echo"}, "format": "typescript"}).Text()
	if !strings.Contains(text, "learned from 1 result") {
		v.t.Errorf("declared as\n%s", text)
	}
	for language, code := range map[string]string{
		"javascript": `const w = await mcp.everything["get-structured-content"]({ location: "Chicago" }); return w.temprature.value`,
		"lua":        "local w = mcp.everything['get-structured-content'] { location = 'Chicago' }\nreturn w.temprature.value",
	} {
		failed := v.call("execute_code", map[string]any{"code": code, "language": language, "timeout_ms": 30_000})
		if want := "no field 'temprature' in results of everything.get-structured-content; did you mean 'temperature'?"; !failed.IsError || !strings.Contains(failed.Text(), want) {
			v.t.Errorf("%s: %s", language, failed.Text())
		}
	}
}

// checkLargeResults keeps what is too much out of the way, for later code.
func (v modelClient) checkLargeResults() {
	v.t.Helper()
	view := v.call("execute_code", map[string]any{"code": `return Array.from({ length: 5000 }, (_, i) => ({ id: i, name: "item " + i }))`})
	var shown struct {
		Result struct{ Handle, Shape string }
	}
	if err := json.Unmarshal(view.Structured, &shown); err != nil || shown.Result.Handle == "" || shown.Result.Shape != "{id: integer, name: string}[]" {
		v.t.Fatalf("%v: %.500s", err, view.Structured)
	}
	if n := len(view.Structured) + len(view.Text()); n > 4000 {
		v.t.Errorf("%d bytes are shown of it", n)
	}
	result := v.runCode(`const [page, total] = await results.slice("` + shown.Result.Handle + `", "", 4998, 10); return [page, total]`)
	if !strings.Contains(string(result), `"item 4999"`) || !strings.Contains(string(result), "5000") {
		v.t.Errorf("read back %s", result)
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // strings always encode
	return string(raw)
}

// TestRealServersAreDeclared has the compiler judge the declarations of all tools
// that real servers have.
func TestRealServersAreDeclared(t *testing.T) {
	t.Parallel()
	v := startModelClient(t, t.TempDir(), map[string]string{"mcp.mode": "direct"})
	raw, err := v.peer.Request(t.Context(), "resources/read", json.RawMessage(`{"uri":"lua://tools"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Contents []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Contents) == 0 {
		t.Fatalf("%s: %v", raw, err)
	}
	var listed struct {
		Tools []struct{ Name, Namespace string }
	}
	if err := json.Unmarshal([]byte(result.Contents[0].Text), &listed); err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	others := 0
	for _, one := range listed.Tools {
		name := tool.Ref{Space: one.Namespace, Name: one.Name}.String()
		if one.Namespace != "" {
			others++
		}
		var got builtin.Definitions
		view := v.call("get_tool_definitions", map[string]any{"names": []string{name}, "format": "typescript"})
		if err := json.Unmarshal(view.Structured, &got); err != nil || got.Declarations == "" {
			t.Errorf("%s: %s, %v", name, view.Text(), err)
		}
		sources[name] = got.Declarations
	}
	if others < 60 {
		t.Errorf("only %d tools of others", others)
	}
	for name, problems := range typedecltest.Check(t, sources) {
		t.Errorf("%s: %v\n%s", name, problems, sources[name])
	}
}
