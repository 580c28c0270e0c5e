package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestMissingToolsAreExplained(t *testing.T) {
	t.Parallel()
	m := newMemory().with("", "search_tools", "", nil).
		with("fs", "read_file", "", nil).with("fs", "write_file", "", nil).with("music", "orpheus_generate", "", nil).
		with("gh", "create_pull_request", "", nil).with("gh", "list_labels", "", nil)
	tests := []struct {
		space, name string
		msg, hint   string
	}{
		{"fs", "raed_file", `no tool "fs.raed_file"`, "did you mean fs.read_file"},
		{"fs", "nothing_alike", "no tool", "available in fs: read_file, write_file"},
		{"", "read_file", `no tool "read_file"`, "did you mean fs.read_file?"},
		{"", "serch_tools", "no tool", "did you mean search_tools?"},
		{"fss", "read_file", `there is no namespace "fss"`, "namespaces: fs, gh, music"},
		{"musik", "orpheus_generat", `no namespace "musik"`, "did you mean music.orpheus_generate?"},
		{"gh", "open_new_pull_requests", "no tool", "did you mean gh.create_pull_request? available"},
		{"", "open_new_pull_requests", "no tool", "did you mean gh.create_pull_request? available"},
	}
	for _, tt := range tests {
		t.Run(tt.space+"."+tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := open(catalog.Options{}, m).Call(t.Context(), call(tt.space, tt.name, ""))
			f := wantFault(t, err, fault.ToolNotFound)
			if !strings.Contains(f.Msg, tt.msg) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got %q, hint %q\nwant %q, hint %q", f.Msg, f.Hint, tt.msg, tt.hint)
			}
		})
	}
}

func TestListsInErrorsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 200 {
		m.with("big", fmt.Sprintf("tool_%03d", i), "", nil)
	}
	_, err := open(catalog.Options{}, m).Call(t.Context(), call("big", "quite_different", ""))
	f := wantFault(t, err, fault.ToolNotFound)
	if !strings.Contains(f.Hint, "and 170 more") || len(f.Hint) > 1000 {
		t.Errorf("hint = %q", f.Hint)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	m := newMemory().with("", "lua_eval", "", nil).with("fs", "read.file", "", nil).with("fs", "list", "", nil).with("fs", "get-sum", "", nil).
		with("fs", "two-of", "", nil).with("fs", "two.of", "", nil)
	c := open(catalog.Options{}, m)
	for name, want := range map[string]string{
		"lua_eval": "lua_eval", "fs.read.file": "fs.read.file", "fs__read_file": "fs.read.file",
		"mcp.fs.list": "fs.list", "fs__list": "fs.list", "fs.get_sum": "fs.get-sum", "mcp.fs.get_sum": "fs.get-sum",
	} {
		info, err := c.Resolve(t.Context(), name)
		if err != nil || info.Ref.String() != want {
			t.Errorf("Resolve(%q) = %v, %v, want %s", name, info.Ref, err, want)
		}
	}
	for name, hint := range map[string]string{
		"fs.lst": "did you mean fs.list?", "fs__lst": "did you mean fs.list?", "fs/lst": "did you mean fs.list?",
		"lst": "available: lua_eval", "no.lst": "namespaces: fs", "fs.two_of": "did you mean fs.two-of or fs.two.of",
	} {
		_, err := c.Resolve(t.Context(), name)
		if f := wantFault(t, err, fault.ToolNotFound); !strings.Contains(f.Hint, hint) {
			t.Errorf("Resolve(%q): hint %q, want %q", name, f.Hint, hint)
		}
	}
}

// TestOutputOf checks that the learned schema stands in for one that a server does not declare.
func TestOutputOf(t *testing.T) {
	t.Parallel()
	m := newMemory().with("fs", "list", "", nil).with("fs", "read", "", nil)
	c := open(catalog.Options{Learned: func(ref tool.Ref) json.RawMessage {
		return map[string]json.RawMessage{"list": json.RawMessage(`{"type":"array"}`)}[ref.Name]
	}}, m)
	for name, want := range map[string]string{"list": `{"type":"array"}`, "read": "", "nothing": ""} {
		if got := c.OutputOf(t.Context(), tool.Ref{Space: "fs", Name: name}); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
