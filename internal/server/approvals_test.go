package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
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

// set changes a note behind the server's back.
func (n *notes) set(path, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts[path] = text
}

func (n *notes) written() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writes
}

// newNotes serves notes, and returns the entry of the server whose writes need approval.
func newNotes(t *testing.T) (n *notes, entry string) {
	t.Helper()
	n = &notes{texts: map[string]string{}}
	return n, "[upstreams.notes]\nurl = \"" + serveTools(t, "notes", n) + "\"\napprove = \"writes\"\nexpose = \"all\"\n"
}

// startNotes starts a server with notes and two keys.
func startNotes(t *testing.T, database string) (string, *Server, *notes) {
	t.Helper()
	n, entry := newNotes(t)
	text := "[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n[keys.some]\nenv = \"SOME\"\nscopes = [\"mcp\"]\n" + entry
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
		return approvalID.FindString(some.call("call_tool", `{"name":"notes.write_file","arguments":{"path": "note.txt", "content": "`+content+`"}}`)) // as Python writes JSON
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

// A call that waits for approval is made once by the next server, where the task that it is
// has its result.
func TestCallsWaitAcrossARestart(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + t.TempDir() + "/luanette.db"
	tasks, id := taskClient{t: t, key: "some-token"}, ""
	t.Run("before", func(t *testing.T) { // the server ends with the test
		url, _, before := startNotes(t, database)
		id = taskClient{t: t, key: "some-token"}.start(url, "notes__write_file", `{"path":"a","content":"x"}`)
		if before.written() != 0 {
			t.Errorf("%+v", before)
		}
	})
	url, _, after := startNotes(t, database)
	tasks.await(url, id, "working")
	root, some := keyClient{t, url, "root-token"}, keyClient{t, url, "some-token"}
	if text := root.call("approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`); !strings.Contains(text, "written") || after.written() != 1 {
		t.Errorf("decided: %s", text)
	}
	if text := some.call("approval_status", `{"approval_id":"`+id+`"}`); !strings.Contains(text, "written") {
		t.Errorf("status: %s", text)
	}
	if task := tasks.await(url, id, "completed"); !strings.Contains(string(task), `"text":"written"`) {
		t.Errorf("task: %s", task)
	}
}

// A call that waits for approval is a task of clients that take one, in both eras and at the
// address of its server: it has the result of the call, and can be cancelled.
func TestCallsThatWaitAreTasks(t *testing.T) {
	t.Parallel()
	url, _, n := startNotes(t, "")
	root := keyClient{t, url, "root-token"}
	decide := func(id, decision string) string {
		return root.call("approval_decide", `{"approval_id":"`+id+`","decision":"`+decision+`"}`)
	}
	for path, name := range map[string]string{"/mcp": "notes__write_file", "/mcp/notes": "write_file"} {
		c := taskClient{t: t, key: "some-token", path: path}
		ids := map[string]string{}
		for _, decision := range []string{"allow", "deny", "cancel"} {
			ids[decision] = c.start(url, name, `{"path":"`+decision+`","content":"x"}`)
			c.await(url, ids[decision], "working")
		}
		decide(ids["allow"], "allow")
		if task := c.await(url, ids["allow"], "completed"); !strings.Contains(string(task), `"text":"written"`) || strings.Contains(string(task), tool.StatusPending) {
			t.Errorf("%s: after the decision %s", path, task)
		}
		decide(ids["deny"], "deny")
		if task := c.await(url, ids["deny"], "completed"); !strings.Contains(string(task), "was not approved") {
			t.Errorf("%s: after a denial %s", path, task)
		}
		c.ask(url, wire.MethodTasksCancel, ids["cancel"], `"taskId":"`+ids["cancel"]+`"`)
		c.await(url, ids["cancel"], "cancelled")
		if text := decide(ids["cancel"], "allow"); !strings.Contains(text, "withdrawn already") {
			t.Errorf("%s: decided after it was cancelled: %s", path, text)
		}
	}
	if n.written() != 2 {
		t.Errorf("%d calls were made", n.written())
	}

	s := newSession(t, url, "some-token", `{}`)
	call := `"method":"tools/call","params":{"name":"notes__write_file","arguments":{"path":"b","content":"y"}`
	id := approvalID.FindString(s.result(call + `,"task":{}}`))
	decide(id, "allow")
	if text := s.result(`"method":"tasks/result","params":{"taskId":"` + id + `"}`); !strings.Contains(text, `"text":"written"`) {
		t.Errorf("tasks/result: %s", text)
	}
	if text := s.result(call + "}"); !strings.Contains(text, tool.StatusPending) {
		t.Errorf("a call that is no task: %s", text)
	}
}

// A call that waits for approval is a task at the address of a server of the caller's
// organisation, which the caller knows by another name than the server.
func TestCallsToOrganisationsServersAreTasks(t *testing.T) {
	t.Parallel()
	n := &notes{texts: map[string]string{}}
	text := "[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n[keys.member]\nenv = \"MEMBER\"\nscopes = [\"mcp\"]\norg = \"acme\"\n" +
		"[orgs.acme.upstreams.notes]\nurl = \"" + serveTools(t, "notes", n) + "\"\napprove = \"writes\"\n"
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, text), Env: config.Environment{"ROOT": "root-token", "MEMBER": "member-token"}})
	srv.upstreams.Await(t.Context(), "notes@acme")
	srv.catalog.Refresh(t.Context())
	c := taskClient{t: t, key: "member-token", path: "/mcp/notes"}
	id := c.start(url, "write_file", `{"path":"a","content":"x"}`)
	c.await(url, id, "working")
	(keyClient{t, url, "root-token"}).call("approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`)
	if task := c.await(url, id, "completed"); !strings.Contains(string(task), `"text":"written"`) || n.written() != 1 {
		t.Errorf("after the decision: %s, %d calls were made", task, n.written())
	}
}

// testSession is a client of the sessions era.
type testSession struct {
	t        *testing.T
	url, key string
	id       string
}

func newSession(t *testing.T, url, key, capabilities string) *testSession {
	t.Helper()
	s := &testSession{t: t, url: url, key: key}
	s.id = s.post(`"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"x","version":"1"}}`).Header.Get("Mcp-Session-Id")
	s.post(`"method":"notifications/initialized"`)
	return s
}

func (s *testSession) post(message string) *http.Response {
	s.t.Helper()
	name, value := httpjsontest.Bearer(s.key)
	return httpjsontest.Open(s.t, http.MethodPost, s.url+"/mcp", `{"jsonrpc":"2.0",`+message+`}`, name, value, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", s.id)
}

// result sends a request that asks nothing, and returns the response.
func (s *testSession) result(request string) string {
	s.t.Helper()
	text, err := io.ReadAll(s.post(`"id":2,` + request).Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// ask sends a request. It answers each question with what answer returns, and returns the
// response.
func (s *testSession) ask(request string, answer func(question string) string) string {
	s.t.Helper()
	events := sse.NewReader(s.post(`"id":3,`+request).Body, 0)
	for {
		e, err := events.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		m, err := wire.Parse(e.Data)
		switch {
		case len(e.Data) == 0: // the event that only has an id
		case err != nil || m.Method == "":
			return string(e.Data)
		case m.Method == wire.MethodElicit:
			s.post(`"id":` + string(m.ID) + `,"result":` + answer(string(m.Params)))
		}
	}
}

const accept = `{"action":"accept","content":{"decision":"allow"}}`

// A client that can be asked is asked about its own call, with the difference, in both eras.
// If the file changes meanwhile, nothing is decided, and it is asked again.
func TestClientsAreAskedInBothEras(t *testing.T) {
	t.Parallel()
	n, entry := newNotes(t)
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, entry)})
	srv.upstreams.Await(t.Context(), "notes")
	srv.catalog.Refresh(t.Context())

	modern := taskClient{t: t, caps: `"elicitation":{},`}
	call := `"name":"notes__write_file","arguments":{"path":"modern","content":"new"}`
	ask := func(answer string) (question, more string) {
		result := modern.ask(url, wire.MethodToolsCall, "notes__write_file", call+answer)
		state, _ := rawjson.GetText(result, "requestState")
		asked, _ := rawjson.Get(result, "inputRequests")
		return string(result), `,"requestState":"` + state + `","inputResponses":{"` + approvalID.FindString(string(asked)) + `":` + accept + `}`
	}
	question, more := ask("")
	if !strings.Contains(question, `--- /dev/null`) || n.written() != 0 {
		t.Fatalf("the question %s", question)
	}
	n.set("modern", "other")
	if question, more = ask(more); !strings.Contains(question, "-other") || n.written() != 0 {
		t.Fatalf("the question after the file changed: %s", question)
	}
	if done, _ := ask(more); !strings.Contains(done, `"text":"written"`) || n.written() != 1 {
		t.Errorf("after the answer: %s", done)
	}

	s := newSession(t, url, "", `{"elicitation":{}}`)
	write := `"method":"tools/call","params":{"name":"notes__write_file","arguments":{"path":"session","content":"new"}}`
	var questions []string
	done := s.ask(write, func(question string) string {
		if questions = append(questions, question); len(questions) == 1 {
			n.set("session", "other")
		}
		return accept
	})
	if !strings.Contains(done, `"text":"written"`) || len(questions) != 2 || !strings.Contains(questions[0], `--- /dev/null`) || !strings.Contains(questions[1], "-other") || n.written() != 2 {
		t.Errorf("%q, then %s", questions, done)
	}
	denied := s.ask(write, func(string) string { return `{"action":"accept","content":{"decision":"deny"}}` })
	if !strings.Contains(denied, "was not approved") || n.written() != 2 {
		t.Errorf("denied: %s", denied)
	}
	closed := s.ask(write, func(string) string { return `{"action":"cancel"}` })
	if !strings.Contains(closed, tool.StatusPending) || n.written() != 2 {
		t.Errorf("the question was closed: %s", closed)
	}
}

// A question of a task is answered with tasks/update. The run that continues waits for its
// own server, and not for one that does not start.
func TestApprovedRunsWaitForTheirOwnServer(t *testing.T) {
	t.Parallel()
	n, entry := newNotes(t)
	slow, ready := slowServer(t)
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, entry+"[upstreams.slow]\nurl = \""+slow.URL+"\"\napprove = \"all\"\n")})
	srv.upstreams.Await(t.Context(), "notes")
	srv.catalog.Refresh(t.Context())
	c := taskClient{t: t, caps: `"elicitation":{},`}
	allow := func(name, args string) string {
		id := taskClient{t: t}.start(url, "call_tool", `{"name":"`+name+`","arguments":`+args+`}`)
		c.await(url, id, "input_required")
		c.ask(url, wire.MethodTasksUpdate, id, `"taskId":"`+id+`","inputResponses":{"`+id+`":`+accept+`}`)
		return id
	}
	free, waits := allow("notes.write_file", `{"path":"a","content":"x"}`), allow("slow.echo", `{"text":"it started"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if a, err := srv.approvals.AwaitOutcome(principal.With(ctx, principal.Local()), free); err != nil || n.written() != 1 {
		t.Errorf("a call that needs no other server: %v %s", err, a.Outcome)
	}
	close(ready)
	if task := c.await(url, waits, "completed"); !strings.Contains(string(task), "it started") {
		t.Errorf("a call of the server: %s", task)
	}
}

// A call that waits on one node is decided on another, made there once, and its result is
// known on both.
func TestDecisionOnAnotherNode(t *testing.T) {
	t.Parallel()
	n, entry := newNotes(t)
	database := tables.Postgres(t)
	a, b := startNode(t, database, "a", entry), startNode(t, database, "b", entry)
	a.await("notes", "connected")
	b.await("notes", "connected")
	c := taskClient{t: t}
	id := c.start(a.url, "call_tool", `{"name":"notes.write_file","arguments":{"path":"a","content":"x"}}`)
	outcome := make(chan string, 1)
	go func() {
		decided, err := a.srv.approvals.AwaitOutcome(principal.With(context.WithoutCancel(t.Context()), principal.Local()), id)
		outcome <- fmt.Sprint(string(decided.Outcome), err)
	}()
	toolClient{t, connectPeer(t, b.url)}.call("approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`)
	if text := <-outcome; !strings.Contains(text, "written") || n.written() != 1 {
		t.Errorf("who waits on the first node: %s, %d calls", text, n.written())
	}
	for _, node := range []testNode{a, b} {
		if task := c.await(node.url, id, "completed"); !strings.Contains(string(task), `"text":"written"`) {
			t.Errorf("the task: %s", task)
		}
	}
}

// POST /tools/… answers 202 with an address, which tells when the call was made and what its
// result is, to nobody else.
func TestWaitingCallsOverHTTP(t *testing.T) {
	t.Parallel()
	url, _, n := startNotes(t, "")
	get := func(key, method, path, body string) (*http.Response, string) {
		name, value := httpjsontest.Bearer(key)
		return httpjsontest.Read(t, method, url+path, body, name, value)
	}
	asked, text := get("some-token", http.MethodPost, "/tools/notes/write_file", `{"path":"a<b","content":"x"}`)
	where := asked.Header.Get("Location")
	if asked.StatusCode != http.StatusAccepted || !strings.HasPrefix(where, "/approvals/a-") || !strings.Contains(text, tool.StatusPending) {
		t.Fatalf("%s, at %q: %s", asked.Status, where, text)
	}
	for range 2 {
		if answer, text := get("some-token", http.MethodGet, where, ""); answer.StatusCode != http.StatusAccepted || answer.Header.Get("Location") != where || !strings.Contains(text, `"status":"pending"`) {
			t.Errorf("before the decision: %s %s", answer.Status, text)
		}
	}
	keyClient{t, url, "root-token"}.call("approval_decide", `{"approval_id":"`+strings.TrimPrefix(where, "/approvals/")+`","decision":"allow"}`)
	answer, text := get("some-token", http.MethodGet, where, "")
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"outcome":{"result":"written"`) || n.written() != 1 {
		t.Errorf("after it: %s %s", answer.Status, text)
	}
	if answer, text := get("", http.MethodGet, where, ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %s %s", answer.Status, text)
	}
	if answer, text := get("some-token", http.MethodGet, "/approvals/a-0000000000000000", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("one that does not exist: %s %s", answer.Status, text)
	}
}
