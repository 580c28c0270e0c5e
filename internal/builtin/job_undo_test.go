package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// undoFixture has jobs whose payments are undone by paying to the receipt.
type undoFixture struct {
	*stage
	queue *job.Queue
	asked []string // the questions
}

func openUndo(t *testing.T) *undoFixture {
	t.Helper()
	f := &undoFixture{stage: openStageWith(t, approval.Policy{})}
	f.start(t)
	t.Cleanup(func() { f.stop(t) })
	return f
}

// start starts the queue, which continues what an earlier one had begun.
func (f *undoFixture) start(t *testing.T) {
	t.Helper()
	queue, err := job.Open(context.Background(), f.database, asJobs{f.runner}, job.Options{
		Grace: time.Nanosecond, TempDir: f.temp,
		Approvals: f.approvals, Tools: f.catalog, Kept: f.scripts, Revert: func(ref tool.Ref) (tool.Revert, bool) {
			return tool.Revert{Tool: "pay", Arguments: json.RawMessage(`{"to":"$result/receipt"}`)}, ref.Name == "pay"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.queue = queue
}

func (f *undoFixture) stop(t *testing.T) {
	t.Helper()
	if err := f.queue.Close(); err != nil {
		t.Error(err)
	}
}

// run runs a script as a job and returns its id.
func (f *undoFixture) run(t *testing.T, code string) string {
	t.Helper()
	j, err := f.queue.Submit(t.Context(), job.Spec{Source: "function main() " + code + " end"})
	if err != nil {
		t.Fatal(err)
	}
	if done, _, err := f.queue.Poll(t.Context(), []string{j.ID}, time.Minute, true); err != nil || len(done) != 1 || done[0].State != job.Complete {
		t.Fatalf("%+v, %v", done, err)
	}
	return j.ID
}

// undo calls job_undo as a client whose user gives an answer; "" is a client that cannot
// be asked.
func (f *undoFixture) undo(t *testing.T, id, answer string) jobtools.Undone {
	t.Helper()
	caller := &tool.Caller{ID: "client"}
	if answer != "" {
		caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		caller.Ask = func(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
			f.asked = append(f.asked, string(questions[0].Params))
			return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"decision":"` + answer + `","remember":"tool"}}`)}, nil
		}
	}
	set := toolset.NewSet("", jobtools.Tools(f.queue, f.scripts, f.runner))
	result, err := set.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "job_undo"}, Args: json.RawMessage(`{"job_id":"` + id + `"}`), Caller: caller})
	if err != nil {
		t.Fatal(err)
	}
	view, err := result.View()
	var out jobtools.Undone
	if err != nil || view.IsError || json.Unmarshal(view.Structured, &out) != nil {
		t.Fatalf("%s, %v", view.Text(), err)
	}
	return out
}

// A person is asked before anything is undone; a denial can be followed by another
// question, and what is undone stays so.
func TestUndoAsks(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	id := f.run(t, `mcp.bank.pay { to = "a" } mcp.bank.look {} http.post("`+f.web.URL+`", "x") mcp.call_tool { name = "bank.pay", arguments = { to = "b" } }`)
	if out := f.undo(t, id, "deny"); out.Status != "denied" || out.UndoJobID != "" {
		t.Errorf("denied: %+v", out)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a b]" {
		t.Errorf("after a denial: %s", got)
	}
	out := f.undo(t, id, "allow")
	if out.Status != "complete" || len(out.Steps) != 3 || out.Steps[1].Problem != "only calls of tools and changes of files can be undone" || string(out.Steps[2].Arguments) != `{"to":"R-a"}` {
		t.Errorf("allowed: %+v", out)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a b R-b R-a]" {
		t.Errorf("after the permission: %s", got)
	}
	if len(f.asked) != 2 || !strings.Contains(f.asked[1], `1. would call bank.pay {\"to\":\"R-b\"}\n2. would call bank.pay`) {
		t.Errorf("asked %q", f.asked)
	}
	if out := f.undo(t, id, "allow"); out.Status != "nothing" || len(out.Steps) != 1 {
		t.Errorf("undone again: %+v", out)
	}
	// The undo is a job too, and a remembered permission does not replace the question.
	if again := f.undo(t, out.UndoJobID, "allow"); again.Status != "complete" || len(f.asked) != 3 {
		t.Errorf("the undo is undone: %+v, asked %d times", again, len(f.asked))
	}
}

// Without someone to ask, the undo waits for a decision, and a second one is refused.
func TestUndoWaits(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	id := f.run(t, `mcp.bank.pay { to = "a" }`)
	out := f.undo(t, id, "")
	if out.Status != "waiting" || out.ApprovalID == "" {
		t.Fatalf("%+v", out)
	}
	if _, err := f.queue.Undo(t.Context(), id); err == nil || !strings.Contains(err.Error(), "undoes it already") {
		t.Errorf("a second undo: %v", err)
	}
	f.decide(t, out.ApprovalID, "allow", "")
	done, _, err := f.queue.Poll(t.Context(), []string{out.UndoJobID}, time.Minute, true)
	if err != nil || len(done) != 1 || done[0].State != job.Complete {
		t.Errorf("%+v, %v", done, err)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a R-a]" {
		t.Errorf("paid %s", got)
	}
}

// files returns the content of the folder's files, by name, with the permissions of those
// that are not the usual ones.
func (f *undoFixture) files(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(f.folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %o %q", e.Name(), info.Mode().Perm(), f.read(t, filepath.Join(f.folder, e.Name()))))
	}
	return strings.Join(all, "\n")
}

// put writes a file, as somebody beside the server.
func (f *undoFixture) put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inFolder is a script in which D is the folder.
func (f *undoFixture) inFolder(code string) string { return `local D = "` + f.folder + `/" ` + code }

// Files are what they were before the job, however it changed them, and the undo can be
// undone itself.
func TestUndoRestoresFiles(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	f.put(t, "gone", "kept\n")
	f.put(t, "patched", "a\nb\n")
	f.put(t, "empty", "")
	before := f.files(t)
	id := f.run(t, f.inFolder(`
		fs.write(D .. "notes", "new") fs.append(D .. "notes", "er") fs.write(D .. "notes", "N", 0)
		fs.write(D .. "made", "1") fs.append(D .. "made", "2")
		fs.remove(D .. "gone") write_file(D .. "empty", "full")
		patch_file(D .. "patched", "@@ -1,2 +1,2 @@\\n a\\n-b\\n+B\\n")
		local out = io.open(D .. "lines", "w") out:write("x") out:close()
		fs.write(D .. "brief", "1") fs.remove(D .. "brief")
		mcp.bank.pay { to = "a" }
		fs.write(temp.path("t"), "1")`))
	after := f.files(t)
	out := f.undo(t, id, "allow")
	if out.Status != "complete" || len(out.Steps) != 7 {
		t.Errorf("%s", out.Text())
	}
	if got := f.files(t); got != before {
		t.Errorf("after the undo:\n%s\nwant\n%s", got, before)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a R-a]" {
		t.Errorf("paid %s", got)
	}
	if len(f.asked) != 1 || !strings.Contains(f.asked[0], "-Newer") || !strings.Contains(f.asked[0], "+old") {
		t.Errorf("the question does not show what changes: %s", f.asked)
	}
	if again := f.undo(t, id, "allow"); again.Status != "nothing" || len(again.Steps) != 0 {
		t.Errorf("undone again: %s", again.Text())
	}
	if back := f.undo(t, out.UndoJobID, "allow"); back.Status != "complete" || f.files(t) != after {
		t.Errorf("the undo is undone: %s\n%s\nwant\n%s", back.Text(), f.files(t), after)
	}
}

// A file that somebody changed is left as it is, and the plan says so.
func TestUndoLeavesChangedFiles(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	f.put(t, "other", "1")
	id := f.run(t, f.inFolder(`fs.write(D .. "notes", "new") fs.write(D .. "other", "2") fs.write(D .. "made", "3")`))
	f.put(t, "notes", "mine")
	out := f.undo(t, id, "allow")
	if out.Status != "complete" || len(out.Steps) != 3 || !strings.Contains(out.Steps[2].Problem, "somebody changed the file after the job") {
		t.Errorf("%s", out.Text())
	}
	if got := f.files(t); got != "notes 600 \"mine\"\nother 600 \"1\"" {
		t.Errorf("files: %s", got)
	}
}

// Somebody may change a file after the plan was made, too.
func TestUndoLeavesFilesChangedMeanwhile(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	id := f.run(t, f.inFolder(`fs.write(D .. "notes", "new")`))
	out := f.undo(t, id, "")
	f.put(t, "notes", "mine")
	f.decide(t, out.ApprovalID, "allow", "")
	done, _, err := f.queue.Poll(t.Context(), []string{out.UndoJobID}, time.Minute, true)
	if err != nil || len(done) != 1 || done[0].State != job.Failed || !strings.Contains(done[0].Error.Message, "somebody changed the file after the job") {
		t.Errorf("%+v, %v", done, err)
	}
	if got := f.files(t); got != "notes 600 \"mine\"" {
		t.Errorf("files: %s", got)
	}
}

// A file that is too large to be kept is written, the job says that it cannot be undone, and
// so does the plan.
func TestUndoOfLargeFiles(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	f.put(t, "large", strings.Repeat("x", host.MaxKept+1))
	id := f.run(t, f.inFolder(`fs.write(D .. "large", "small") fs.append(D .. "large", "er") print("end")`))
	const why = "the file is larger than 10 MiB"
	j, err := f.queue.Status(t.Context(), id)
	if err != nil || len(j.Output) != 2 || !strings.Contains(j.Output[0].Text, "cannot be undone: "+why) {
		t.Errorf("output %+v, %v", j.Output, err)
	}
	if out := f.undo(t, id, "allow"); out.Status != "nothing" || len(out.Steps) != 1 || !strings.Contains(out.Steps[0].Problem, why) {
		t.Errorf("%s", out.Text())
	}
}

// A write that fails half way can be undone as well: here nothing was written.
func TestUndoAfterAFailure(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	before := f.files(t)
	id := f.run(t, f.inFolder(`fs.write(D .. "notes", "new") pcall(fs.remove, D .. "nothing") pcall(fs.write, D .. "notes/x", "1")`))
	if out := f.undo(t, id, "allow"); out.Status != "complete" || len(out.Steps) != 1 || f.files(t) != before {
		t.Errorf("%s\n%s", out.Text(), f.files(t))
	}
}

// What a job wrote before the server stopped can be undone too, also by the job that continues
// it.
func TestUndoAfterACrash(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	before := f.files(t)
	j, err := f.queue.Submit(t.Context(), job.Spec{Source: "function main() " + f.inFolder(`
		fs.write(D .. "notes", "1") fs.write(D .. "made", "1") mcp.bank.pay { to = "slow" } fs.append(D .. "notes", "2")`) + " end"})
	if err != nil {
		t.Fatal(err)
	}
	<-f.bank.wait
	f.stop(t)
	f.start(t)
	if _, _, err := f.queue.Poll(t.Context(), []string{j.ID}, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	next, err := f.queue.Resume(t.Context(), j.ID, job.Assumption{Done: true, Result: json.RawMessage(`{"receipt":"R-slow"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if done, _, err := f.queue.Poll(t.Context(), []string{next.ID}, time.Minute, true); err != nil || done[0].State != job.Complete || f.read(t, filepath.Join(f.folder, "notes")) != "12" {
		t.Fatalf("%+v, %v", done, err)
	}
	if out := f.undo(t, next.ID, "allow"); out.Status != "complete" || len(out.Steps) != 3 || f.files(t) != before {
		t.Errorf("%s\n%s", out.Text(), f.files(t))
	}
	if out := f.undo(t, j.ID, "allow"); out.Status != "nothing" || len(out.Steps) != 1 || f.files(t) != before {
		t.Errorf("the first job: %s\n%s", out.Text(), f.files(t))
	}
}
