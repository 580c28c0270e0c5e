package server

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// notes is a source with a tool that writes a note and one that reads it.
type notes struct {
	mu     sync.Mutex
	texts  map[string]string
	writes int
}

func (n *notes) Tools(context.Context) ([]tool.Info, error) {
	read := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	write := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`)
	return []tool.Info{
		{Ref: tool.Ref{Name: "read_file"}, Input: read, Hints: tool.Hints{ReadOnly: true}},
		{Ref: tool.Ref{Name: "write_file"}, Input: write},
	}, nil
}

func (n *notes) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ Path, Content string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if call.Ref.Name == "write_file" {
		n.texts[in.Path], n.writes = in.Content, n.writes+1
		return tool.Output("written", nil)
	}
	text, ok := n.texts[in.Path]
	if !ok {
		return tool.Failed("ENOENT: no such file " + in.Path), nil
	}
	return tool.Output(text, nil)
}

func startNotes(t *testing.T, database string) (string, *Server, *notes) {
	t.Helper()
	n := &notes{texts: map[string]string{}}
	text := "[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n[keys.some]\nenv = \"SOME\"\nscopes = [\"mcp\"]\n[upstreams.notes]\nurl = \"" + serveTools(t, "notes", n) + "\"\napprove = \"writes\"\n"
	sources := config.Sources{File: configtest.WriteFile(t, text), Env: config.Environment{"ROOT": "root-token", "SOME": "some-token"}}
	if database != "" {
		sources.Flags = map[string]string{"database": database}
	}
	url, srv := start(t, sources)
	srv.upstreams.Await(t.Context(), "notes")
	srv.catalog.Refresh(t.Context())
	return url, srv, n
}

var approvalID = regexp.MustCompile(`a-[a-z0-9]{16}`)

// Two calls wait to write the same file. After the first, the plan of the second is another
// one, and who saw the old one has not decided about it.
func TestDecisionsAreAboutTheTruePlan(t *testing.T) {
	t.Parallel()
	url, srv, n := startNotes(t, "")
	some, root := keyClient{t, url, "some-token"}, keyClient{t, url, "root-token"}
	ask := func(content string) string {
		return approvalID.FindString(some.call("call_tool", `{"name":"notes.write_file","arguments":{"path":"note.txt","content":"`+content+`"}}`))
	}
	decide := func(id string) string {
		return root.call("approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`)
	}
	script := func(content string) string {
		code, _ := json.Marshal(map[string]string{"code": `return mcp.notes.write_file{path="note.txt", content="` + content + `"}`})
		return approvalID.FindString(some.call("lua_eval", string(code)))
	}
	first, second, third := ask("one"), ask("two"), script("three")
	if text := root.call("approval_status", `{"approval_id":"`+second+`"}`); !strings.Contains(text, `--- /dev/null`) || !strings.Contains(text, "6 days left") {
		t.Errorf("before: %s", text)
	}
	if text := decide(first); !strings.Contains(text, "written") {
		t.Fatalf("the first: %s", text)
	}
	if text := decide(second); !strings.Contains(text, "has changed since it was shown") || !strings.Contains(text, "-one") {
		t.Errorf("a plan that was not shown: %s", text)
	}
	if text := decide(second); !strings.Contains(text, "written") {
		t.Errorf("the new plan: %s", text)
	}
	if text := root.call("approval_status", `{"approval_id":"`+third+`"}`); !strings.Contains(text, "-two") || !strings.Contains(text, "+three") {
		t.Errorf("opened: %s", text)
	}
	if text := decide(third); !strings.Contains(text, "written") || n.writes != 3 || n.texts["note.txt"] != "three" {
		t.Errorf("after it was opened: %s, %+v", text, n.texts)
	}
	// What plans read is not the user's: only three calls were made, and none failed.
	if stats, _ := srv.catalog.Stats(t.Context(), "notes"); stats.Calls != 3 || stats.Errors != 0 || stats.InFlight != 0 {
		t.Errorf("statistics %+v", stats)
	}
	if status, _ := srv.upstreams.Manager.Status("notes"); status.Stats.Calls != 3 || status.Stats.Errors != 0 {
		t.Errorf("status %+v", status)
	}
}

// A call that waits for approval is made once by the next server.
func TestCallsWaitAcrossARestart(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/luanette.db"
	args, id := `{"name":"notes.write_file","arguments":{"path":"a","content":"x"}}`, ""
	t.Run("before", func(t *testing.T) { // the server ends with the test
		url, _, before := startNotes(t, database)
		id = approvalID.FindString(keyClient{t, url, "some-token"}.call("call_tool", args))
		if id == "" || before.writes != 0 {
			t.Errorf("%q %+v", id, before)
		}
	})
	url, _, after := startNotes(t, database)
	root, some := keyClient{t, url, "root-token"}, keyClient{t, url, "some-token"}
	if text := root.call("approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`); !strings.Contains(text, "written") || after.writes != 1 {
		t.Errorf("decided: %s", text)
	}
	if text := some.call("approval_status", `{"approval_id":"`+id+`"}`); !strings.Contains(text, "written") {
		t.Errorf("status: %s", text)
	}
}
