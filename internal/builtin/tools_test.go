package builtin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset/toolsettest"
)

func TestEveryToolFollowsTheRules(t *testing.T) {
	t.Parallel()
	tools, _ := open(t).set.Tools(t.Context())
	for _, info := range tools {
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			toolsettest.Check(t, info)
			compileSchema(t, info.Input)
			if info.Output != nil {
				compileSchema(t, info.Output)
			} else if !info.Ref.IsRelay() {
				t.Error("no output schema")
			}
		})
	}
}

// compileSchema compiles a schema with a library that did not generate it.
func compileSchema(t *testing.T, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool:schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("tool:schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkOutput validates a result with the tool's output schema.
func (h toolFixture) checkOutput(t *testing.T, name string, view tool.View) {
	t.Helper()
	info, err := h.catalog.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if view.Text() == "" {
		t.Errorf("%s: no text", name)
	}
	if info.Output == nil {
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(view.Structured))
	if err != nil {
		t.Fatal(err)
	}
	if err := compileSchema(t, info.Output).Validate(value); err != nil {
		t.Errorf("%s answers %s: %v", name, view.Structured, err)
	}
}

func TestInstructionsAreShort(t *testing.T) {
	t.Parallel()
	text := builtin.Instructions(builtin.MenuCode)
	if n := strings.Count(text, "\n"); n > 15 || len(text) > 2000 {
		t.Errorf("%d lines, %d bytes", n, len(text))
	}
	for _, name := range []string{"search_tools", "get_tool_definitions", "call_tool_read", "call_tool", "execute_code", "jobs, schedules, sessions whose variables persist, scripts, approvals and connections"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not mentioned", name)
		}
	}
}

// TestPageOfTools checks that the page about the built-in tools is up to date.
// UPDATE=1 writes it.
func TestPageOfTools(t *testing.T) {
	t.Parallel()
	h := open(t)
	tools, _ := h.set.Tools(t.Context())
	var page bytes.Buffer
	page.WriteString("# Tools\n\nOur own tools. Clients are shown five of them, which find and call all others; [code_mode.md](code_mode.md) explains how to list more. Made from the tools' own definitions by `make golden`.\n")
	h.writeFamilies(t, &page)
	for _, info := range tools {
		writeTool(&page, info)
	}
	path := filepath.Join("..", "..", "docs", "tools.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page.Bytes()) {
		t.Error("docs/tools.md is out of date: run UPDATE=1 go test ./internal/builtin")
	}
}

// writeFamilies writes which tools belong together, and which menus list them.
func (h toolFixture) writeFamilies(t *testing.T, page *bytes.Buffer) {
	t.Helper()
	var found searchtools.Found
	h.mustCall(t, "search_tools", `{"query":""}`, &found)
	_, code, _ := listed(t, h.menu(builtin.MenuCode))
	_, standard, _ := listed(t, h.menu(builtin.MenuStandard))
	page.WriteString("\n| Family | Tools; the menu code lists those in bold, standard also those in italics |\n|---|---|\n")
	for _, f := range found.Families {
		for i, name := range f.Tools {
			switch link := "[" + name + "](#" + name + ")"; {
			case slices.Contains(code, name):
				f.Tools[i] = "**" + link + "**"
			case slices.Contains(standard, name):
				f.Tools[i] = "*" + link + "*"
			default:
				f.Tools[i] = link
			}
		}
		fmt.Fprintf(page, "| %s | %s |\n", f.Name, strings.Join(f.Tools, ", "))
	}
}

func writeTool(page *bytes.Buffer, info tool.Info) {
	fmt.Fprintf(page, "\n## %s\n\n**%s.** %s\n", info.Name, info.Title, info.Description)
	var traits []string
	for trait, has := range map[string]bool{
		"changes nothing": info.Hints.ReadOnly, "may be repeated": info.Hints.Idempotent, "reaches outside": !info.Hints.ClosedWorld,
	} {
		if has {
			traits = append(traits, trait)
		}
	}
	slices.Sort(traits)
	if len(traits) > 0 {
		fmt.Fprintf(page, "\nIt %s.\n", strings.Join(traits, ", "))
	}
	writeFields(page, "Argument", info.Input)
	writeFields(page, "Result", info.Output)
}

func writeFields(page *bytes.Buffer, heading string, schema json.RawMessage) {
	var s struct {
		Properties map[string]struct {
			Type        any
			Description string
			Enum        []string
		}
		Required []string
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return
	}
	fmt.Fprintf(page, "\n| %s | Type | Meaning |\n|---|---|---|\n", heading)
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		kind := strings.Trim(fmt.Sprint(p.Type), "[]")
		if len(p.Enum) > 0 {
			kind = strings.Join(p.Enum, ", ")
		}
		if !slices.Contains(s.Required, name) {
			name += "?"
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, kind, p.Description)
	}
}
