package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/tokencount"
	"github.com/luanette/luanette/internal/tools/typedecl/typedecltest"
)

// modelClient is an MCP client that sees what a model sees.
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
		file.WriteString("[upstreams." + name + "]\ncommand = \"node\"\nargs = " + string(quoted) + "\n")
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

// listTools returns the names of the listed tools, and how many tokens their definitions
// and the instructions take.
func (v modelClient) listTools() (names []string, tokens int) {
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
		if slices.Contains(withPages, name) {
			continue
		}
		others := rawjson.Delete(wire.Meta(d), "ui") // what only clients that show Apps are listed
		tokens += tokencount.Estimate(string(wire.SetMeta(d, others)))
	}
	return names, tokens + tokencount.Estimate(string(instructions))
}

// call calls a tool and does not ask for the whole result.
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

// runCode runs code, which must succeed, and returns its result.
func (v modelClient) runCode(code string) json.RawMessage {
	v.t.Helper()
	view := v.call("execute_code", map[string]any{"code": code, "timeout_ms": 30_000})
	if view.IsError {
		v.t.Fatalf("%s\n%s", code, view.Text())
	}
	result, _ := rawjson.Get(view.Structured, "result")
	return result
}

// checkSearch checks that a search finds a tool, with its signature.
func (v modelClient) checkSearch(query, want string) {
	v.t.Helper()
	var found searchtools.Found
	if err := json.Unmarshal(v.call("search_tools", map[string]any{"query": query, "limit": 5}).Structured, &found); err != nil {
		v.t.Fatal(err)
	}
	if !slices.ContainsFunc(found.Tools, func(f searchtools.FoundTool) bool { return f.Name == want && strings.HasPrefix(f.Signature, "(") }) {
		v.t.Errorf("the search for %q finds %+v, want %s", query, found.Tools, want)
	}
}

// withPages are listed beside the menu to clients that show Apps, as this one.
var withPages = []string{"app_call", "approval_status", "job_status"}

// TestCodeMode uses real servers with many tools in code mode: it searches, reads
// definitions and runs code.
func TestCodeMode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v := startModelClient(t, folder, nil)
	if !v.srv.ownTools.Load().Has("execute_code") {
		t.Fatal("there is no tool execute_code")
	}
	names, tokens := v.listTools()
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(withPages, name) })
	if !slices.Equal(names, []string{"call_tool", "call_tool_read", "execute_code", "get_tool_definitions", "search_tools"}) || tokens > 780 {
		t.Errorf("listed %v in %d tokens, want five tools in at most 780", names, tokens)
	}
	v.checkSearch("save text to a file", "fs.write_file")
	v.checkSearch("remember something in the knowledge graph", "memory.create_entities")
	v.checkSearch("report a bug", "github.create_issue")

	var got searchtools.Definitions
	declared := v.call("get_tool_definitions", map[string]any{"names": []string{"fs.write_file", "memory.create_entities"}, "format": "typescript"})
	if err := json.Unmarshal(declared.Structured, &got); err != nil || !strings.Contains(got.Declarations, "write_file(args: {") {
		t.Fatalf("%s, %v", declared.Text(), err)
	}
	result := v.runCode(`
		const path = ` + strconv.Quote(filepath.Join(folder, "note.txt")) + `;
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
	page, err := os.ReadFile("../../docs/code_mode.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := configtest.CodeBlocks(string(page), "js")
	if len(examples) == 0 {
		t.Fatal("docs/code_mode.md has no example in JavaScript")
	}
	for _, code := range examples {
		if result := v.runCode(strings.ReplaceAll(code, "FOLDER", folder)); len(result) < 10 {
			t.Errorf("docs/code_mode.md:\n%s\nreturned %s", code, result)
		}
	}
}

// checkSearchInCode searches for a tool and reads its definition inside the code.
func (v modelClient) checkSearchInCode() {
	v.t.Helper()
	result := v.runCode(`const found = await tools.search("sum of two numbers"); return [found[0].name, await tools.describe(found[0].name, "typescript")]`)
	var found []string
	if err := json.Unmarshal(result, &found); err != nil || found[0] != "everything.get-sum" || !strings.Contains(found[1], "Promise<") {
		v.t.Errorf("found %s, %v", result, err)
	}
}

// checkLearnedShapes checks that the result of a tool without an output schema is learned,
// and that an unknown field is reported with the nearest known one.
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

// checkLargeResults checks that a large result is stored and can be read by later code.
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
		v.t.Errorf("%d bytes of the large result are returned, want at most 4000", n)
	}
	result := v.runCode(`const [page, total] = await results.slice("` + shown.Result.Handle + `", "", 4998, 10); return [page, total]`)
	if !strings.Contains(string(result), `"item 4999"`) || !strings.Contains(string(result), "5000") {
		v.t.Errorf("read back %s", result)
	}
}

// TestDeclarationsCompile compiles the TypeScript declarations of all tools of real
// servers.
func TestDeclarationsCompile(t *testing.T) {
	t.Parallel()
	v := startModelClient(t, t.TempDir(), map[string]string{"mcp.menu": "full"})
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
	upstreamTools := 0
	for _, listed := range listed.Tools {
		name := tool.Ref{Space: listed.Namespace, Name: listed.Name}.String()
		if listed.Namespace != "" {
			upstreamTools++
		}
		var got searchtools.Definitions
		view := v.call("get_tool_definitions", map[string]any{"names": []string{name}, "format": "typescript"})
		if err := json.Unmarshal(view.Structured, &got); err != nil || got.Declarations == "" {
			t.Errorf("%s: %s, %v", name, view.Text(), err)
		}
		sources[name] = got.Declarations
	}
	if upstreamTools < 60 {
		t.Errorf("only %d tools of upstreams", upstreamTools)
	}
	for name, problems := range typedecltest.Check(t, sources) {
		t.Errorf("%s: %v\n%s", name, problems, sources[name])
	}
}
