package audit_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/personal"
)

// activityLog records calls with the step that every call passes.
type activityLog struct {
	*testing.T
	log  *audit.Log
	step tool.Step
}

func openActivity(t *testing.T, d *db.DB) activityLog {
	t.Helper()
	l, err := audit.Open(t.Context(), d, audit.Options{Node: "a", Activity: 7 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return activityLog{t, l, l.RecordCalls()}
}

// call records a call that makes others.
func (l activityLog) call(ctx context.Context, i tool.Invocation, inner ...func(ctx context.Context)) {
	l.Helper()
	if i.Began.IsZero() {
		i.Began = time.Now()
	}
	ctx, err := l.step.Before(ctx, &i)
	if err != nil {
		l.Fatal(err)
	}
	for _, do := range inner {
		do(ctx)
	}
	l.step.After(ctx, &i)
}

func invocation(space, name, caller, args, result string) tool.Invocation {
	i := tool.Invocation{Info: &tool.Info{Ref: tool.Ref{Space: space, Name: name}}, Args: json.RawMessage(args), Result: tool.Result{Raw: json.RawMessage(result)}}
	i.Call.Caller = &tool.Caller{ID: caller, Agent: "claude-code 2.1.4"}
	return i
}

func (l activityLog) sessions(who principal.Principal, f audit.SessionFilter) []audit.Session {
	l.Helper()
	list, err := l.log.Sessions(principal.With(l.Context(), who), f)
	if err != nil {
		l.Fatal(err)
	}
	return list
}

func TestActivity(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := openActivity(t, d)
		anna, boris := principal.Principal{ID: "key:anna", Name: "anna"}, principal.Principal{ID: "key:boris", Name: "boris"}
		ctx := principal.With(t.Context(), anna)
		l.call(ctx, invocation("", "search_tools", "session:1", `{"query":"issues older than 30 days"}`, `{"content":[{"type":"text","text":"x"}]}`))
		l.call(ctx, invocation("github", "list_issues", "session:1", `{"token":"hunter2hunter2"}`, `{"content":[{"type":"text","text":"[1,2]"}]}`))
		denied := invocation("github", "delete_branch", "session:1", `{}`, ``)
		denied.Denied, denied.Rule, denied.Err = true, "no deletes", fault.New(fault.Denied, "no deletes")
		l.call(ctx, denied)
		own := invocation("", "job_poll", "session:1", `{}`, ``)
		own.Info.Hints.ReadOnly, own.Call.Caller.Agent = true, "luanette-hud 1"
		l.call(ctx, own)
		l.call(principal.With(t.Context(), boris), invocation("files", "read", "", `{}`, `{}`))
		job := tool.WithJob(ctx, "j1", "stale_issues")
		l.call(job, invocation("files", "write", "", `{}`, `{}`))

		list := l.sessions(anna, audit.SessionFilter{})
		if len(list) != 2 || list[0].Title != "stale_issues" || list[0].ID != "job:j1" || list[1].Title != "issues older than 30 days" {
			t.Fatalf("sessions of anna: %+v", list)
		}
		if s := list[1]; s.ID != "session:1" || s.Calls != 2 || s.Failed != 1 || s.Denied != 1 || s.Steps != 3 || s.Server != "github" {
			t.Errorf("session: %+v", s)
		}
		if all := l.sessions(principal.Local(), audit.SessionFilter{}); len(all) != 3 || all[1].Title != "1 call to files" {
			t.Errorf("sessions of everybody: %+v", all)
		}
		for name, c := range map[string]struct {
			f    audit.SessionFilter
			want int
		}{
			"outcome": {audit.SessionFilter{Outcome: "denied"}, 1}, "tool": {audit.SessionFilter{Tool: "github.list_issues"}, 1}, "server": {audit.SessionFilter{Server: "files"}, 2},
			"words": {audit.SessionFilter{Find: "OLDER days"}, 1}, "agent": {audit.SessionFilter{Agent: "Claude"}, 3}, "who": {audit.SessionFilter{Who: "boris"}, 1},
			"before": {audit.SessionFilter{Before: "session:1"}, 0}, "secret": {audit.SessionFilter{Find: "hunter2"}, 0}, "wildcard": {audit.SessionFilter{Find: "%"}, 0},
			"since": {audit.SessionFilter{Since: time.Now().Add(time.Hour)}, 0}, "ok": {audit.SessionFilter{Outcome: "ok"}, 2},
		} {
			if got := l.sessions(principal.Local(), c.f); len(got) != c.want {
				t.Errorf("%s: %d sessions, want %d", name, len(got), c.want)
			}
		}

		_, steps, err := l.log.Steps(ctx, "session:1", time.Time{}, false)
		if err != nil || len(steps) != 3 {
			t.Fatalf("steps: %+v, %v", steps, err)
		}
		if s := steps[1]; string(s.Args) != `{"token":"[redacted]"}` || string(s.Result) != `[1,2]` {
			t.Errorf("previews %s, %s", s.Args, s.Result)
		}
		if s := steps[2]; s.Decision != "deny" || s.Rule != "no deletes" || s.Message != "no deletes" {
			t.Errorf("denied: %+v", s)
		}
		if _, steps, err := l.log.Steps(ctx, "session:1", time.Time{}, true); err != nil || len(steps) != 4 || !steps[3].Own {
			t.Errorf("with own reads: %d, %v", len(steps), err)
		}
		if _, _, err := l.log.Steps(principal.With(t.Context(), boris), "session:1", time.Time{}, false); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("the session of somebody else: %v", err)
		}
	})
}

// TestReadsOfThePageAreNoSession checks that what our page reads to show it is no session, and
// that what people do there is one that says what they did.
func TestReadsOfThePageAreNoSession(t *testing.T) {
	t.Parallel()
	l := openActivity(t, dbtest.Open(t, dbtest.SQLite(t)))
	call := func(ctx context.Context, space, name string, reads bool) {
		i := invocation(space, name, "", `{}`, `{}`)
		i.Info.Hints.ReadOnly, i.Call.Caller.Agent = reads, "luanette-hud 1"
		l.call(ctx, i)
	}
	call(t.Context(), "", "lua_preview", true)
	call(tool.OnlyReading(t.Context()), "music", "regions", true)
	if list := l.sessions(principal.Local(), audit.SessionFilter{}); len(list) != 0 {
		t.Errorf("reads: %+v", list)
	}
	call(t.Context(), "", "script_store", false)
	if list := l.sessions(principal.Local(), audit.SessionFilter{}); len(list) != 1 || list[0].Title != "script_store" {
		t.Errorf("a saved script: %+v", list)
	}
	call(t.Context(), "", "approval_decide", false)
	if list := l.sessions(principal.Local(), audit.SessionFilter{}); len(list) != 1 || list[0].Title != "script_store and 1 other request" {
		t.Errorf("a decision too: %+v", list)
	}
	call(t.Context(), "files", "read", true)
	if list := l.sessions(principal.Local(), audit.SessionFilter{}); len(list) != 1 || list[0].Steps != 3 || list[0].Title != "1 call to files" {
		t.Errorf("a tool that somebody tried: %+v", list)
	}
}

// TestCallsOfACall checks that calls know what made them, that waiting is counted, and that
// calls of call_tool are shown as what they call.
func TestCallsOfACall(t *testing.T) {
	t.Parallel()
	l := openActivity(t, dbtest.Open(t, dbtest.SQLite(t)))
	l.call(span(t.Context()), invocation("", "call_tool", "session:1", `{}`, `{}`), func(ctx context.Context) {
		l.call(span(ctx), invocation("", "lua_eval", "session:1", `{}`, `{}`), func(ctx context.Context) {
			l.call(span(ctx), invocation("files", "read", "session:1", `{}`, `{}`))
			tool.Waited(ctx, time.Minute)
		})
	})
	_, steps, err := l.log.Steps(t.Context(), "session:1", time.Time{}, false)
	if err != nil || len(steps) != 2 {
		t.Fatalf("steps: %+v, %v", steps, err)
	}
	byTool := map[string]audit.Step{}
	for _, s := range steps {
		byTool[s.Tool] = s
	}
	eval, read := byTool["lua_eval"], byTool["files.read"]
	if eval.Parent != "" || read.Parent != eval.ID || eval.Waited != time.Minute.Microseconds() || read.Waited != 0 {
		t.Errorf("lua_eval %+v\nfiles.read %+v", eval, read)
	}
}

// TestApprovedCallsAreWhereTheyWereAskedFor checks that a call is in the session that asked for
// approval, whoever decides.
func TestApprovedCallsAreWhereTheyWereAskedFor(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"session:1", ""} {
		l := openActivity(t, dbtest.Open(t, dbtest.SQLite(t)))
		asks := invocation("files", "write", client, `{}`, `{"structuredContent":{"status":"pending_approval","approval":{"approval_id":"a-1"}}}`)
		asks.Asked = true
		var asker *tool.Asker
		l.call(span(t.Context()), asks, func(ctx context.Context) { asker = tool.AskerOf(ctx, asks.Call.Caller) })
		made := invocation("files", "write", "session:2", `{}`, `{}`) // of who decides
		made.Call.Caller.Agent = "luanette-hud 1"
		l.call(span(tool.WithAsker(t.Context(), asker)), made)
		list := l.sessions(principal.Local(), audit.SessionFilter{})
		if len(list) != 1 || list[0].Asked != 1 || list[0].Calls != 1 {
			t.Fatalf("%q: sessions %+v", client, list)
		}
		_, steps, err := l.log.Steps(t.Context(), list[0].ID, time.Time{}, false)
		if err != nil || len(steps) != 2 || steps[0].Approval != "a-1" || steps[1].Approval != "" || steps[1].Parent != steps[0].ID {
			t.Errorf("%q: steps %+v, %v", client, steps, err)
		}
	}
}

// TestActivityOfClientsWithoutSessions checks that a pause begins a new session.
func TestActivityOfClientsWithoutSessions(t *testing.T) {
	t.Parallel()
	l := openActivity(t, dbtest.Open(t, dbtest.SQLite(t)))
	began := time.Now().Add(-3 * time.Hour)
	for _, after := range []time.Duration{0, 20 * time.Minute, 45 * time.Minute, 100 * time.Minute} {
		i := invocation("files", "read", "", `{}`, `{}`)
		i.Began = began.Add(after)
		l.call(t.Context(), i)
	}
	list := l.sessions(principal.Local(), audit.SessionFilter{})
	if len(list) != 2 || list[0].Calls != 1 || list[1].Calls != 3 || list[0].ID == list[1].ID {
		t.Errorf("sessions: %+v", list)
	}
}

func TestActivityIsForgotten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := openActivity(t, d)
		for _, ago := range []time.Duration{8 * 24 * time.Hour, time.Hour} {
			for _, session := range []string{"session:long", "session:" + ago.String()} {
				i := invocation("files", "read", session, `{}`, `{}`)
				i.Began = time.Now().Add(-ago)
				l.call(t.Context(), i)
			}
		}
		l.sessions(principal.Local(), audit.SessionFilter{}) // all are written
		if err := l.log.ForgetActivity(t.Context(), time.Now().Add(-7*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if list := l.sessions(principal.Local(), audit.SessionFilter{}); len(list) != 2 {
			t.Errorf("sessions: %+v", list)
		}
		if _, steps, err := l.log.Steps(t.Context(), "session:long", time.Time{}, false); err != nil || len(steps) != 1 {
			t.Errorf("steps of the long session: %d, %v", len(steps), err)
		}
		if found, err := l.log.Verify(t.Context()); err != nil || len(found[0].Problems) > 0 || found[0].Entries != 4 {
			t.Errorf("verify: %+v, %v", found, err)
		}
	})
}

func TestActivityIsErased(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := openActivity(t, d)
		ctx := principal.With(t.Context(), principal.Principal{ID: "person:p77", Name: "Anna", User: "p77"})
		l.call(ctx, invocation("files", "read", "session:1", `{"path":"annas-diary.md"}`, `{}`))
		if err := l.log.Erase(t.Context(), personal.Person{ID: "p77", Pseudonym: "erased-1"}); err != nil {
			t.Fatal(err)
		}
		if list := l.sessions(principal.Local(), audit.SessionFilter{Own: true}); len(list) != 0 {
			t.Errorf("sessions: %+v", list)
		}
		count, err := db.Find(t.Context(), d, db.Column[int], `SELECT count(*) FROM audit_log WHERE session <> '' OR detail <> ''`)
		if err != nil || count[0] != 0 {
			t.Errorf("%v entries have details, %v", count, err)
		}
	})
}

// span returns ctx with a new span.
func span(ctx context.Context) context.Context {
	var id trace.SpanID
	_, _ = rand.Read(id[:])
	config := trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: id}
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(config))
}
