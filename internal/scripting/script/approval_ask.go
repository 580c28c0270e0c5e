package script

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// askCaller asks the caller for the decision and reports whether it decided. If not, the
// run waits for another decision.
func (a *approvedRun) askCaller(ctx context.Context, pending host.Pending, paused *host.Paused) bool {
	answer, ok := AskCaller(ctx, a.request.Caller, pending, paused)
	return ok && a.runner.options.Approvals.Answer(ctx, pending.ID, answer) == nil
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
	return ReadApproval(answers[0], caller.ID)
}

// ApprovalQuestion returns the params of the elicitation that asks for approval.
func ApprovalQuestion(p *host.Paused) (json.RawMessage, error) {
	text := fmt.Sprintf("%s needs approval to continue:\n\n%s", p.Name, host.PlanText(p.Plan))
	if p.Language == directCall {
		text = fmt.Sprintf("A call of %s needs approval:\n\n%s", p.Name, host.PlanText(p.Plan))
	}
	if !p.Complete {
		text += "\n\nThe plan may be incomplete: the script could not be rehearsed to its end."
	}
	return json.Marshal(map[string]any{
		"mode": "form", "message": shorten(text, 8000),
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
