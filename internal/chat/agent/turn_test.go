package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
)

func TestTurnUsesToolsAndEmitsEvents(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource().with("fs.read", "Reads.", answers("hi")), `
		expect what is in a?
		offer fs__read
		say "Let me look. "
		use fs__read {"path":"a"}
		---
		expect hi
		say "It says "
		say hi.
	`)
	reply := s.turn(t, "what is in a?")
	if got := reply.Text(); got != "Let me look. \nIt says hi." || reply.Iterations != 2 || reply.ToolCalls != 1 || reply.Stop != llm.StopEnd {
		t.Errorf("reply %+v", reply)
	}
	want := `status Processing your request...
text 0 Let me look. 
status Executing 1 tool(s)...
use 1 fs.read {"path":"a"}
result 1 fs.read failed=false hi
status Preparing your response...
text 1 It says 
text 1 hi.`
	if got := s.lines(); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	if u := reply.Usage; u.Input != 200 || u.Output != 40 || u.Cost == 0 || u.CacheRead == 0 {
		t.Errorf("usage %+v", u)
	}
}

// TestToolsRunInParallel checks that tools of one answer run in parallel: each of these
// ends when the other has started.
func TestToolsRunInParallel(t *testing.T) {
	t.Parallel()
	a, b := make(chan struct{}), make(chan struct{})
	meet := func(mine, others chan struct{}, text string) func(context.Context, tool.Call) (tool.Result, error) {
		return func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			close(mine)
			select {
			case <-others:
				return tool.Output(text, nil)
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		}
	}
	s := play(t, newToolSource().with("x.a", "", meet(a, b, "one")).with("x.b", "", meet(b, a, "two")),
		"use x__a\nuse x__b\n---\nexpect onetwo\nsay done")
	if reply := s.turn(t, "go"); reply.Text() != "done" {
		t.Errorf("reply %+v", reply)
	}
}

// TestToolErrorsReachTheModel checks that the model receives the error of a tool and the
// chat continues.
func TestToolErrorsReachTheModel(t *testing.T) {
	t.Parallel()
	fails := func(err error) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, err }
	}
	source := newToolSource().
		with("x.unreachable", "", fails(fault.New(fault.Unavailable, "x is unreachable").WithHint("try again later"))).
		with("x.failed", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Failure(fault.New(fault.NotFound, "no such page")), nil
		}).
		with("x.panics", "", func(context.Context, tool.Call) (tool.Result, error) { panic("boom") }).
		with("x.nonsense", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`[`)}, nil
		}).
		with("x.silent", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		})
	s := play(t, source, `
		use x__unreachable
		use x__failed
		use x__panics
		use x__nonsense
		use x__silent
		use unknown
		---
		expect "unavailable: x is unreachable\ntry again later"
		expect no such page
		expect boom
		expect read tool result
		expect (no output)
		expect "no tool \"unknown\""
		say sorry
	`)
	if reply := s.turn(t, "go"); reply.Text() != "sorry" {
		t.Errorf("reply %+v", reply)
	}
}

// TestToolTimeoutsReachTheModel checks that the model receives the timeout of a tool.
func TestToolTimeoutsReachTheModel(t *testing.T) {
	t.Parallel()
	source := newToolSource().with("x.slow", "", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, fault.Wrap(fault.Timeout, ctx.Err(), "wait")
	})
	s := play(t, source, "use x__slow\n---\nexpect took longer than\nsay sorry")
	reply := s.turn(t, "go", func(r *agent.Request) { r.Limits.ToolTime = 50 * time.Millisecond })
	if reply.Text() != "sorry" {
		t.Errorf("reply %+v", reply)
	}
}

func TestIterationLimit(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource().with("x.a", "", answers("more")), strings.Repeat("use x__a\n---\n", 3)+"say never")
	reply := s.turn(t, "go", func(r *agent.Request) { r.Limits.Iterations = 3 })
	if reply.Stop != agent.StopIterations || !strings.Contains(reply.Text(), "3 steps") || reply.ToolCalls != 3 {
		t.Errorf("reply %+v", reply)
	}
	if len(reply.Notices) != 1 || reply.Notices[0].Code != "iteration_limit" {
		t.Errorf("notices %+v", reply.Notices)
	}
	if !strings.Contains(s.lines(), "text 0 I stopped here") {
		t.Errorf("events\n%s", s.lines())
	}
}

// TestCallLimit checks that calls of scripts count against the limit too.
func TestCallLimit(t *testing.T) {
	t.Parallel()
	var s *fixture
	var refused atomic.Int32
	many := func(ctx context.Context, call tool.Call) (tool.Result, error) {
		for range 5 {
			if _, err := s.catalog.Call(ctx, tool.Call{Ref: tool.Ref{Space: "x", Name: "a"}, Caller: call.Caller}); fault.CodeOf(err) == fault.Limit {
				refused.Add(1)
			}
		}
		return tool.Output("done", nil)
	}
	s = play(t, newToolSource().with("lua_eval", "", many).with("x.a", "", answers("ok")),
		"use lua_eval {}\n---\nexpect done\nuse x__a\n---\nexpect has used its 4 tool calls\nsay enough")
	reply := s.turn(t, "go", func(r *agent.Request) { r.Limits.Calls = 4 })
	if refused.Load() != 2 || reply.ToolCalls != 4 || reply.Text() != "enough" {
		t.Errorf("%d refused, reply %+v", refused.Load(), reply)
	}
	if len(reply.Notices) != 1 || reply.Notices[0].Code != "call_limit" {
		t.Errorf("notices %+v", reply.Notices)
	}
}

func TestLongResultsAreCut(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource().with("x.a", "", answers(strings.Repeat("ä", 20_000))),
		"use x__a\n---\nexpect the first 32768 of 40000 bytes\nexpect narrow your query\nsay ok")
	s.turn(t, "go")
	if body := string(s.model.Requests()[1].Body); strings.Count(body, "ä") != 16384 {
		t.Errorf("%d letters were sent", strings.Count(body, "ä"))
	}
}

// TestPromptSizeLimit checks that a conversation that grows too large drops
// results that can be requested again, and that the turn succeeds.
func TestPromptSizeLimit(t *testing.T) {
	t.Parallel()
	source := newToolSource().with("x.a", "", answers(strings.Repeat("a", 6000))).with("x.b", "", answers(strings.Repeat("b", 6000)))
	s := play(t, source, "use x__a\n---\nexpect aaaa\nuse x__b\nuse x__b\n---\nexpect bbbb\nsay ok")
	history := []agent.Exchange{{User: "old question", Assistant: strings.Repeat("c", 4000)}}
	reply := s.turn(t, "go", func(r *agent.Request) { r.Limits.PromptBytes, r.History = 10_000, history })
	if reply.Text() != "ok" {
		t.Errorf("reply %+v", reply)
	}
	for i, r := range s.model.Requests() {
		size := 0
		for _, turn := range r.Turns {
			size += len(turn.Text)
		}
		if size > 10_000 {
			t.Errorf("request %d has %d bytes", i, size)
		}
	}
	last := string(s.model.Requests()[2].Body)
	if strings.Contains(last, "aaaa") || !strings.Contains(last, "removed to shorten the conversation") || strings.Contains(last, "old question") {
		t.Errorf("the last request contains results that should have been removed")
	}

	_, err := s.Turn(t.Context(), agent.Request{User: "anna", Message: strings.Repeat("long ", 3000), Limits: agent.Limits{PromptBytes: 10_000}}, nil)
	if fault.CodeOf(err) != fault.Limit || fault.HintOf(err) == "" {
		t.Errorf("a message that is too long: %v", err)
	}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ scenario, text, notice string }{
		"refusal with words":    {"say \"I would rather not.\"\nstop refusal", "I would rather not.", "refusal"},
		"refusal without words": {"stop refusal", "The model declined to answer this message.", "refusal"},
		"cut":                   {"say \"To begin with\"\nstop max_tokens", "To begin with", "max_tokens"},
		"cut arguments":         {"use pay__push {\"a\":1}\nstop max_tokens", "I could not call pay__push: what I wanted to send was longer than an answer may be (max_tokens). Ask for less at a time.", "arguments_cut"},
		"nothing":               {"stop end_turn", "The model returned an empty answer. Try to rephrase the message.", ""},
		"pause":                 {"say one\nstop pause_turn\n---\nsay two", "one\ntwo", ""},
		"busy":                  {"status 529 overloaded_error Overloaded\n---\nsay ok", "ok", "model_busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, err := llmtest.Parse(tt.scenario)
			if err != nil {
				t.Fatal(err)
			}
			start := func(t *testing.T) *llmtest.Server { return llmtest.Play(t, steps...) }
			onBothAPIs(t, start, func(t *testing.T, server *llmtest.Server, model func(*agent.Options)) {
				if name == "pause" && strings.HasSuffix(t.Name(), "openai") {
					return // an API of Anthropic only
				}
				reply := playModel(t, newToolSource(), server, model).turn(t, "go")
				notice := ""
				if len(reply.Notices) > 0 {
					notice = reply.Notices[0].Code
				}
				if reply.Text() != tt.text || notice != tt.notice {
					t.Errorf("got %q, notices %v", reply.Text(), reply.Notices)
				}
			})
		})
	}
}

// TestResultsOfAMegabyte checks that a result beyond the longest is an error that names the
// tool and says what to do, and that a shorter one is cut.
func TestResultsOfAMegabyte(t *testing.T) {
	t.Parallel()
	source := newToolSource().with("big.read", "", answers(strings.Repeat("x", 3<<20))).with("big.less", "", answers(strings.Repeat("x", 1<<20)))
	s := playModel(t, source, llmtest.Play(t,
		llmtest.Step{Use: []llmtest.Use{{Name: "big__read", Input: "{}"}}},
		llmtest.Step{Expect: []string{"limit_exceeded: big.read answered with 3145728 bytes; one result may have 1048576", "ask for less"}, Use: []llmtest.Use{{Name: "big__less", Input: "{}"}}},
		llmtest.Step{Expect: []string{"of 1048576 bytes are shown"}, Say: []string{"ok"}}))
	if reply := s.turn(t, "read"); reply.Text() != "ok" || len(reply.Tools) != 2 || !reply.Tools[0].Failed || reply.Tools[1].Failed {
		t.Errorf("%+v", reply)
	}
}

// TestHalfArguments checks that a call whose arguments end in the middle, without the API
// saying that it cut them, is not made, and that the model is told.
func TestHalfArguments(t *testing.T) {
	t.Parallel()
	steps := func(t *testing.T) *llmtest.Server {
		return llmtest.Play(t,
			llmtest.Step{Use: []llmtest.Use{{Name: "pay__push", Input: `{"amount": 1`}}},
			llmtest.Step{Expect: []string{"the arguments of pay__push were cut off after 12 bytes"}, Say: []string{"sorry"}})
	}
	onBothAPIs(t, steps, func(t *testing.T, server *llmtest.Server, model func(*agent.Options)) {
		source := newToolSource().with("pay.push", "", func(context.Context, tool.Call) (tool.Result, error) {
			t.Error("it was called")
			return tool.Result{}, nil
		})
		if reply := playModel(t, source, server, model).turn(t, "go"); reply.Text() != "sorry" || len(reply.Notices) != 1 || reply.Notices[0].Code != "arguments_cut" {
			t.Errorf("%+v", reply)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource(), "status 400 invalid_request_error no")
	if _, err := s.Turn(t.Context(), agent.Request{User: "anna", Message: " \n"}, nil); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("an empty message: %v", err)
	}
	if _, err := s.Turn(t.Context(), agent.Request{User: "anna", Message: "go"}, nil); fault.CodeOf(err) != fault.Upstream {
		t.Errorf("a model that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = play(t, newToolSource().with("x.a", "", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		cancel()
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}), "use x__a\n---\nsay never")
	if _, err := s.Turn(ctx, agent.Request{User: "anna", Message: "go"}, nil); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("a cancelled turn: %v", err)
	}
	for _, o := range []agent.Options{{}, {Model: noModel{}, Offer: "perhaps"}, {Model: noModel{}, Prompts: agent.Prompts{"identiti": "x"}}} {
		if _, err := agent.New(o); err == nil || fault.HintOf(err) == "" {
			t.Errorf("New(%+v) = %v", o, err)
		}
	}
}

type noModel struct{}

func (noModel) About() llm.About { return llm.About{} }
func (noModel) Answer(context.Context, llm.Prompt, func(llm.Delta)) (llm.Answer, error) {
	return llm.Answer{}, errors.New("there is no model")
}

func TestHistoryIsSent(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource(), "say ok")
	s.turn(t, "and now?", func(r *agent.Request) {
		r.History = []agent.Exchange{{User: "first", Assistant: "answer one \n"}, {User: "second", Assistant: ""}, {User: "third", Assistant: "answer three"}}
	})
	var all []string
	for _, turn := range s.model.Requests()[0].Turns {
		all = append(all, turn.Role+" "+turn.Text)
	}
	if got := strings.Join(all, "|"); got != "user first|assistant answer one|user third|assistant answer three|user and now?" {
		t.Errorf("sent %s", got)
	}
}
