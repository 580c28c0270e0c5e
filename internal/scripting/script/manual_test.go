package script

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/module/help"
)

// TestManualIsUpToDate checks that the document of all modules consists of their pages.
func TestManualIsUpToDate(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/modules.md"
	want := renderManual(t, help.NewManual(modules()))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/modules.md is out of date (%v): run UPDATE=1 go test ./internal/scripting/script -run Manual", err)
	}
}

// TestManualIsComplete checks that every function a script can call has a section, and that
// every section describes an existing function.
func TestManualIsComplete(t *testing.T) {
	t.Parallel()
	headings := regexp.MustCompile(`(?m)^## ([\w.]+)`)
	documented := map[string]bool{}
	var source strings.Builder
	for _, m := range modules() {
		for _, heading := range headings.FindAllStringSubmatch(m.Page, -1) {
			documented[heading[1]] = true
			source.WriteString("if " + heading[1] + " == nil then missing[#missing + 1] = '" + heading[1] + "' end\n")
		}
	}
	for _, m := range modules() {
		for _, f := range m.Funcs {
			name := f.Name
			if m.Name != "" {
				name = m.Name + "." + f.Name
			}
			if !f.Hidden && !documented[name] && !documented[f.Name] {
				t.Errorf("no page describes %s", name)
			}
		}
	}
	got, err := newRunner(t, nil).Run(t.Context(), Request{Source: "local missing = json.array{}\n" + source.String() + "return missing"})
	if err != nil || string(got.Result) != "[]" {
		t.Errorf("pages describe functions that do not exist: %s, %v", got.Result, err)
	}
}

// TestPreludesLeaveNothingBehind checks that functions only for preludes are not left
// for scripts.
func TestPreludesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	got, err := newRunner(t, nil).Run(t.Context(), Request{Source: `
		local left, seen = json.array{}, {}
		local function look(t, path)
			if seen[t] then return end
			seen[t] = true
			for k, v in next, t do
				if type(k) == "string" and k:sub(1, 2) == "__" and path ~= "" then left[#left + 1] = path .. k end
				if type(k) == "string" and k:sub(1, 2) == "__" and path == "" then left[#left + 1] = k end
				if type(v) == "table" then look(v, path .. tostring(k) .. ".") end
			end
		end
		look(_G, "")
		return left`})
	if err != nil || string(got.Result) != "[]" {
		t.Errorf("left: %s, %v", got.Result, err)
	}
}

// renderManual returns the whole manual as one document.
func renderManual(t *testing.T, m *help.Manual) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("<!-- Made from the pages of internal/scripting/module by UPDATE=1 go test ./internal/scripting/script -run Manual -->\n\n")
	out.WriteString("# Modules\n\nWhat scripts have in addition to Lua itself. `help(\"midi\")` in a script and the tool `lua_help` show the same pages.\n\n")
	for _, topic := range m.Topics() {
		out.WriteString("- [" + topic + "](#" + topic + ")\n")
	}
	for _, topic := range m.Topics() {
		page, err := m.Lookup(topic)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n" + deeper(page) + "\n")
	}
	return out.String()
}

// deeper moves headings one level down.
func deeper(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") {
			lines[i] = "#" + line
		}
	}
	return strings.Join(lines, "\n")
}
