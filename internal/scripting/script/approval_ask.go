package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// askCaller asks the caller for the decision and reports whether it decided. If not, the
// run waits for another decision.
func (a *approvedRun) askCaller(ctx context.Context, pending host.Pending, paused *host.Paused) bool {
	ok, err := Settle(ctx, a.request.Caller, pending, paused, func(answer host.Answer) error {
		return a.runner.options.Approvals.Answer(ctx, pending.ID, answer)
	})
	return ok && err == nil
}

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
	answers, err := caller.Ask(ctx, []tool.Question{{Key: pending.ID, Method: tool.MethodElicit, Params: params}})
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
