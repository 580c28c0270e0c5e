package host

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// fileServer has files that its tools read and write. Only reads may be called.
type fileServer struct {
	files map[string]string
	tools []tool.Info
}

func (s fileServer) Tools(context.Context) ([]tool.Info, error) { return s.tools, nil }

func (s fileServer) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var args struct{ Path string }
	if call.Ref != (tool.Ref{Space: "files", Name: "read_text_file"}) || json.Unmarshal(call.Args, &args) != nil {
		panic("a rehearsal called " + call.Ref.String())
	}
	text, there := s.files[args.Path]
	switch {
	case args.Path == "/secret":
		return tool.Failed("access denied"), nil
	case !there:
		return tool.Failed("ENOENT: no such file or directory"), nil
	}
	return tool.Output(text, nil)
}

func fileTool(space, name, schema string, readOnly bool) tool.Info {
	return tool.Info{Ref: tool.Ref{Space: space, Name: name}, Input: json.RawMessage(schema), Hints: tool.Hints{ReadOnly: readOnly}}
}

func TestRehearsalShowsWhatToolsChangeInFiles(t *testing.T) {
	t.Parallel()
	const onlyPath = `{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]}`
	r := NewRehearsal(fileServer{map[string]string{"/a.txt": "one\ntwo\n"}, []tool.Info{
		fileTool("files", "read_file", onlyPath, true),
		fileTool("files", "read_text_file", onlyPath, true),
		fileTool("files", "write_file", onlyPath, false),
		fileTool("other", "read_file", onlyPath, false),                                               // not known to only read
		fileTool("other", "get_file", `{"properties":{"path":{}},"required":["path","owner"]}`, true), // needs more
	}}, nil, nil)
	call, _ := rehearsed(t, r)
	never := func(*Services, Args) ([]Value, error) { t.Error("the effect was carried out"); return nil, nil }
	for _, c := range []struct{ space, name, args, diff, unread string }{
		{"files", "write_file", `{"path":"/a.txt","content":"one\n2\n"}`, "-two\n+2\n", ""},
		{"files", "edit_file", `{"path":"/a.txt","edits":[{"oldText":"2","newText":"three"}]}`, "-2\n+three\n", ""}, // after the first
		{"files", "edit_file", `{"path":"/a.txt","old_string":"nine","new_string":"ten"}`, "", "the text to replace is not in the file"},
		{"files", "write_file", `{"path":"/new.txt","content":"x\n"}`, "--- /dev/null\n+++ /new.txt\n", ""},
		{"files", "write_file", `{"path":"/secret","content":"x"}`, "", "files.read_text_file: access denied"},
		{"other", "write_file", `{"path":"/a.txt","content":"x"}`, "", "other has no read-only tool that reads one file"},
		{"", "call_tool", `{"name":"files.write_file","arguments":{"path":"/b.txt","content":"y\n"}}`, "+y\n", ""},
		{"files", "create_directory", `{"path":"/dir"}`, "", ""},
		{"other", "send_mail", `{"path":"/x","text":"hello"}`, "", ""},
		{"files", "write_file", `{"path":7,"content":"x"}`, "", ""},
	} {
		if _, err := call("mcp", "call", Write, 0, never, c.space, c.name, json.RawMessage(c.args)); err != nil {
			t.Fatal(err)
		}
		plan := r.Plan()
		if got := plan[len(plan)-1]; got.Unread != c.unread || !strings.Contains(got.Diff, c.diff) || (c.diff == "") != (got.Diff == "") {
			t.Errorf("%s.%s %s: diff %q, unread %q; want %q, %q", c.space, c.name, c.args, got.Diff, got.Unread, c.diff, c.unread)
		}
	}
}
