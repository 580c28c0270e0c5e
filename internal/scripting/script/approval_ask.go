package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

// mostQuestions is how often a caller is asked when the plan changes while they think.
const mostQuestions = 5

// Settle asks the caller of a tool for the decision and stores it with answer. If the plan
// has changed meanwhile, it asks again, with the new one. ok is false if there is no
// decision.
func Settle(ctx context.Context, caller *tool.Caller, pending host.Pending, paused *host.Paused, answer func(host.Answer) error) (ok bool, err error) {
	for range mostQuestions {
		var said host.Answer
		if said, ok = AskCaller(ctx, caller, pending, paused); !ok {
			return false, nil
		}
		err = answer(said)
		var changed *host.PlanChanged
		if !errors.As(err, &changed) {
			return err == nil, err
		}
		paused.Plan, paused.Certain = changed.Entries, changed.Certain
		paused.Complete, paused.Incomplete = changed.Incomplete == "", changed.Incomplete
	}
	return false, err
}

// AskCaller asks the caller of a tool for the decision about a paused run, if its client
// supports that and may decide. ok is false if the person dismisses the question or never answers.
func AskCaller(ctx context.Context, caller *tool.Caller, pending host.Pending, paused *host.Paused) (answer host.Answer, ok bool) {
	if pending.Others || caller == nil || caller.Ask == nil {
		return answer, false
	}
	if can, found := rawjson.Get(caller.Capabilities, "elicitation"); !found || rawjson.IsNull(can) {
		return answer, false
	}
	params, err := ApprovalQuestion(paused)
	if err != nil {
		return answer, false
	}
	asked := time.Now()
	answers, err := caller.Ask(ctx, []tool.Question{{Key: pending.ID, Method: tool.MethodElicit, Params: params}})
	tool.Waited(ctx, time.Since(asked))
	if err != nil || len(answers) != 1 {
		return answer, false
	}
	answer, ok = ReadApproval(answers[0], caller.Agent)
	answer.Plan = host.PlanDigest(paused.Plan)
	return answer, ok
}

// PlanKey is the key in the question's _meta with the plan and all of its arguments.
const PlanKey = "luanette/plan"

// ApprovalQuestion returns the params of the elicitation that asks for approval.
func ApprovalQuestion(p *host.Paused) (json.RawMessage, error) {
	text := fmt.Sprintf("%s needs approval to continue:\n\n%s", p.Name, host.PlanText(p.Plan))
	if p.Language == directCall {
		text = fmt.Sprintf("A call of %s needs approval:\n\n%s", p.Name, host.PlanText(p.Plan))
	}
	if !p.Complete {
		text += "\n\n" + IncompleteText(p.Incomplete)
	}
	return json.Marshal(map[string]any{
		"_meta": map[string]string{PlanKey: host.PlanWhole(p.Plan)},
		"mode":  "form", "message": shorten(text, 8000),
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"decision"},
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "title": "Decision", "enum": []string{"allow", "deny"}, "default": "deny"},
				"remember": map[string]any{
					"type": "string", "title": "Remember", "description": "store the decision for this tool, its namespace, or this script from now on",
					"enum": []string{"no", "tool", "namespace", "script"}, "default": "no",
				},
			},
		},
	})
}

// ReadApproval reads a person's answer to that question; ok is false if it decides nothing.
func ReadApproval(raw json.RawMessage, by string) (answer host.Answer, ok bool) {
	var said struct {
		Action  string
		Content struct{ Decision, Remember string }
	}
	if json.Unmarshal(raw, &said) != nil {
		return answer, false
	}
	answer.By = by
	switch said.Action {
	case "accept":
		if said.Content.Remember != "no" {
			answer.Remember = said.Content.Remember
		}
		answer.Allow = said.Content.Decision == "allow"
		return answer, answer.Allow || said.Content.Decision == "deny"
	case "decline":
		return answer, true
	default:
		return answer, false
	}
}

// DirectCall is a call of a tool that no script makes and that needs approval. It waits,
// resumes and is recorded like a script with this one effect.
type DirectCall struct {
	Ref  tool.Ref        `json:"tool"`
	Args json.RawMessage `json:"arguments,omitempty"` // as the caller sent them
	Sent json.RawMessage `json:"sent,omitempty"`      // as the tool gets them, for people; nil if they are the same
	Meta json.RawMessage `json:"meta,omitempty"`
	Kind host.Kind       `json:"kind"`
}

// directCall is the language of a stored run that is a DirectCall.
const directCall = "call"

// Effect is the call as people and policies see it.
func (c DirectCall) Effect() host.Effect {
	args := c.Sent
	if args == nil {
		args = c.Args
	}
	e := host.CallOf(c.Ref, args)
	e.Seq, e.Kind = 1, c.Kind
	return e
}

// Hash identifies the call with its arguments.
func (c DirectCall) Hash() string { return cas.Sum([]byte(c.source())).String() }

func (c DirectCall) source() string {
	raw, _ := json.Marshal(c) // it has been read as JSON
	return string(raw)
}

func readDirectCall(source string) (c DirectCall, err error) {
	if err = json.Unmarshal([]byte(source), &c); err != nil {
		err = fault.Wrap(fault.Internal, err, "read a call that waited for approval")
	}
	return c, err
}

// attempt makes the call within a Handler.
func (c DirectCall) attempt(call func(ctx context.Context) (tool.Result, error)) Attempt {
	return func(ctx context.Context, handler host.Handler) (Outcome, error) {
		values, err := handler.Handle(ctx, c.Effect(), func(ctx context.Context) ([]host.Value, error) {
			result, err := call(tool.WithApproved(ctx, c.Ref))
			return []host.Value{result.Raw}, err
		})
		if err != nil || len(values) != 1 {
			return Outcome{}, err
		}
		raw, _ := values[0].(json.RawMessage)
		return Outcome{Result: raw}, nil
	}
}

// directAttempt makes a stored call.
func (r *Runner) directAttempt(q Request) (Attempt, error) {
	c, err := readDirectCall(q.Source)
	return c.attempt(func(ctx context.Context) (tool.Result, error) {
		return r.options.Tools.Call(ctx, tool.Call{Ref: c.Ref, Args: c.Args, Meta: c.Meta, Caller: q.Caller})
	}), err
}

// CallApproved has a call that needs approval wait for it, and then make itself with call.
// It asks the caller if its client supports that; otherwise the result says what the call
// waits for, and Resume makes it after the decision.
func (r *Runner) CallApproved(ctx context.Context, c DirectCall, caller *tool.Caller, call func(ctx context.Context) (tool.Result, error)) (tool.Result, error) {
	var made tool.Result
	a := NewApprovedRun(Request{Source: c.source(), Name: c.Ref.String(), Language: directCall, Caller: caller})
	outcome, err := r.withApprovals(ctx, a, c.attempt(func(ctx context.Context) (result tool.Result, err error) {
		made, err = call(ctx)
		return made, err
	}))
	problem := r.Finish(ctx, a, outcome, nil, err)
	var pending *PendingError
	switch {
	case errors.As(err, &pending):
		waiting := waitingResult(pending, outcome)
		waiting.Task = pending.ID
		return waiting, nil
	case err != nil:
		return tool.Result{}, err
	}
	return made, problem
}

// valueOf is the result of a tool as a value, or as the error that it is.
func valueOf(raw json.RawMessage) (json.RawMessage, error) {
	view, err := tool.Result{Raw: raw}.View()
	if err != nil {
		return nil, err
	}
	if view.IsError {
		return nil, fault.New(fault.Upstream, "%s", view.Text())
	}
	return view.Value(), nil
}
