package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/core/tool"
)

// evaluated is the result of lua_eval.
type evaluated = scripttools.Evaluated

// begin makes a session.
func (h toolFixture) begin(t *testing.T) string {
	t.Helper()
	var made scripttools.SessionView
	h.mustCall(t, "session_create", `{"name":"scratch","language":"lua"}`, &made)
	return made.SessionID
}

// inSession runs code in a session and returns its result.
func (h toolFixture) inSession(t *testing.T, id, code string) string {
	t.Helper()
	var out evaluated
	args, _ := json.Marshal(map[string]string{"code": code, "session_id": id})
	h.mustCall(t, "lua_eval", string(args), &out)
	return string(out.Result)
}

func TestSessionsPersist(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.begin(t)
	h.inSession(t, id, "x = 10")
	if got := h.inSession(t, id, "return x"); got != "10" {
		t.Errorf("x = %s", got)
	}
	var fresh evaluated
	if h.mustCall(t, "lua_eval", `{"code":"return x"}`, &fresh); string(fresh.Result) != "null" {
		t.Errorf("without a session x = %s", fresh.Result)
	}

	var forked scripttools.SessionView
	h.mustCall(t, "session_fork", `{"session_id":"`+id+`"}`, &forked)
	h.inSession(t, forked.SessionID, "x = 11")
	if got := h.inSession(t, id, "x"); got != "10" || forked.Name != "scratch" {
		t.Errorf("after the fork x = %s, fork = %+v", got, forked)
	}

	h.mustCall(t, "session_reset", `{"session_id":"`+id+`"}`, nil)
	if got := h.inSession(t, id, "return x, #map({1}, tostring)"); got != "[null,1]" {
		t.Errorf("after the reset: %s", got)
	}

	h.mustCall(t, "session_close", `{"session_id":"`+id+`"}`, nil)
	var list scripttools.SessionList
	view := h.mustCall(t, "session_list", `{}`, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].SessionID != forked.SessionID || !strings.Contains(view.Text(), "(scratch): 3 turns") {
		t.Errorf("list = %+v\n%s", list, view.Text())
	}
	for _, name := range []string{"session_close", "session_reset", "session_fork"} {
		view, err := h.call(t, name, `{"session_id":"`+id+`"}`)
		if err != nil || !view.IsError || !strings.Contains(view.Text(), "no such session") {
			t.Errorf("%s of a closed session: %v %s", name, err, view.Text())
		}
	}
}

func TestFailedTurnReportsItsOutputAndKeepsGlobals(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.begin(t)
	view, err := h.call(t, "lua_eval", `{"code":"x = 1 print('so far') error('no')","session_id":"`+id+`"}`)
	if err != nil || !view.IsError || !strings.Contains(view.Text(), "so far") {
		t.Errorf("failed: %v %s", err, view.Text())
	}
	if got := h.inSession(t, id, "x"); got != "1" {
		t.Errorf("x = %s", got)
	}
	view, err = h.call(t, "lua_eval", `{"code":"x = 2 print('so far') local s = 'x' while true do s = s .. s end","session_id":"`+id+`"}`)
	if err != nil || !view.IsError || !strings.Contains(view.Text(), "so far") || !strings.Contains(view.Text(), "the session is as it was before") {
		t.Errorf("stopped: %v %s", err, view.Text())
	}
	if got := h.inSession(t, id, "x"); got != "1" {
		t.Errorf("x = %s after the turn was stopped", got)
	}
}

func TestParamsReachMainInASession(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.begin(t)
	h.inSession(t, id, "base = 40")
	var out evaluated
	h.mustCall(t, "lua_eval", `{"code":"function main(p) return base + p.n end","params":{"n":2},"session_id":"`+id+`"}`, &out)
	if string(out.Result) != "42" {
		t.Errorf("result %s", out.Result)
	}
}

func TestSessionsOfOtherUsersAreNotFound(t *testing.T) {
	t.Parallel()
	h := open(t)
	ask := func(user, name, args string) tool.View {
		t.Helper()
		result, err := h.catalog.Call(t.Context(), tool.Call{
			Ref: tool.Ref{Name: name}, Args: json.RawMessage(args), Caller: &tool.Caller{ID: "session:1", User: user},
		})
		if err != nil {
			t.Fatal(err)
		}
		view, err := result.View()
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	var made scripttools.SessionView
	if err := json.Unmarshal(ask("ada", "session_create", `{}`).Structured, &made); err != nil {
		t.Fatal(err)
	}
	args := `{"code":"x = 1","session_id":"` + made.SessionID + `"}`
	if view := ask("bob", "lua_eval", args); !view.IsError || !strings.Contains(string(view.Meta), string(fault.NotFound)) {
		t.Errorf("bob: %s %s", view.Text(), view.Meta)
	}
	if view := ask("ada", "lua_eval", args); view.IsError {
		t.Errorf("ada: %s", view.Text())
	}
	if text := ask("bob", "session_list", `{}`).Text(); !strings.HasPrefix(text, "No sessions") {
		t.Errorf("bob sees %s", text)
	}
}
