package typedecl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/typedecl"
	"github.com/luanette/luanette/internal/tools/typedecl/typedecltest"
	"github.com/luanette/luanette/lua"
)

// definition is a tool as a server writes it, with what we add to it.
type definition struct {
	Space, Name, Description  string
	InputSchema, OutputSchema json.RawMessage
	Learned                   int
	Annotations               struct{ ReadOnlyHint bool }
}

func (d *definition) tool() typedecl.Tool {
	declared := typedecl.Of(&tool.Info{
		Ref: tool.Ref{Space: d.Space, Name: d.Name}, Description: d.Description,
		Input: d.InputSchema, Output: d.OutputSchema, Hints: tool.Hints{ReadOnly: d.Annotations.ReadOnlyHint},
	})
	declared.Learned = d.Learned
	return declared
}

// TestDeclarations reads testdata/*.txtar: tools.json and the declarations made of
// them. UPDATE=1 writes the latter.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	sources := map[string]string{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var definitions []definition
		if err := json.Unmarshal(archive.Files[0].Data, &definitions); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var tools []typedecl.Tool
		for i := range definitions {
			tools = append(tools, definitions[i].tool())
		}
		declared := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{
			archive.Files[0],
			{Name: "mcp.d.ts", Data: []byte(typedecl.TypeScript(tools))},
			{Name: "mcp.lua", Data: []byte(typedecl.Lua(tools))},
		}}
		sources[filepath.Base(path)] = typedecl.TypeScript(tools)
		checkLua(t, path, typedecl.Lua(tools))
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(path, txtar.Format(declared), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, want := string(txtar.Format(declared)), string(txtar.Format(archive)); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", path, got, want)
		}
	}
	for name, problems := range typedecltest.Check(t, sources) {
		t.Errorf("%s: %s\n%s", name, strings.Join(problems, "\n"), sources[name])
	}
}

// checkLua runs declarations where only mcp exists, which they must leave with
// nothing but functions.
func checkLua(t *testing.T, name, source string) {
	t.Helper()
	state := lua.New(lua.Options{})
	err := state.Open(lua.Base)
	if err == nil {
		var chunk *lua.Function
		chunk, err = state.Load("mcp = setmetatable({}, { __index = function(t, k) local v = {} rawset(t, k, v) return v end })\n"+source, "@"+name)
		if err == nil {
			_, err = state.Call(t.Context(), chunk.Value())
		}
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, source)
	}
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasSuffix(line, "(args) end") {
			t.Errorf("%s: line outside of comments: %s", name, line)
		}
	}
}
