package tool_test

import (
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

func TestRefString(t *testing.T) {
	t.Parallel()
	tests := map[tool.Ref]string{
		{Space: "holler", Name: "cas_store"}: "holler.cas_store",
		{Name: "lua_eval"}:                   "lua_eval",
		{Space: "a.b", Name: "c"}:            "a.b.c",
	}
	for ref, want := range tests {
		if got := ref.String(); got != want {
			t.Errorf("%#v reads %q, want %q", ref, got, want)
		}
	}
}

func TestScriptPath(t *testing.T) {
	t.Parallel()
	for ref, want := range map[tool.Ref]string{
		{Space: "files", Name: "read"}:     "mcp.files.read",
		{Space: "files", Name: "read-all"}: `mcp.files["read-all"]`,
		{Space: "x", Name: "end"}:          `mcp.x["end"]`,
		{Space: "2x", Name: "a\"b\n\x7f"}:  `mcp["2x"]["a\"b\x0a\x7f"]`,
		{Name: "lua_eval"}:                 "mcp.lua_eval",
		{Space: "repeat"}:                  `mcp["repeat"]`,
	} {
		if got := ref.ScriptPath(); got != want {
			t.Errorf("%#v is written %s, want %s", ref, got, want)
		}
	}
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hints tool.Hints
		want  bool
	}{
		{tool.Hints{}, false},
		{tool.Hints{ReadOnly: true}, true},
		{tool.Hints{Idempotent: true}, true},
		{tool.Hints{NonDestructive: true, ClosedWorld: true}, false},
	}
	for _, tt := range tests {
		if got := tt.hints.Repeatable(); got != tt.want {
			t.Errorf("%+v: Repeatable = %v, want %v", tt.hints, got, tt.want)
		}
	}
}

func TestDeprecated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Deprecated. Reads it.": true, "[deprecated] Reads it.": true, "Reads it. DEPRECATED: use read_text.": true,
		"Lists deprecated tools.": false, "Dep": false, "": false,
	} {
		if info := (tool.Info{Description: text}); info.Deprecated() != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if info := (tool.Info{Title: "Read File (Deprecated)"}); !info.Deprecated() {
		t.Error("the title is not read")
	}
}
