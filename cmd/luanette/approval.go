package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// approvalCommand is `luanette approval`: it lists and decides the requests of
// scripts for approval.
type approvalCommand struct {
	List   approvalListCommand   `cmd:"" help:"List pending approvals and remembered decisions."`
	Show   approvalShowCommand   `cmd:"" help:"Show an approval: its plan and the outcome of the script."`
	Allow  decideArg             `cmd:"" decision:"allow" help:"Allow a script to do what its plan shows."`
	Deny   decideArg             `cmd:"" decision:"deny" help:"Deny a script what it asks for; the script continues without it."`
	Forget approvalForgetCommand `cmd:"" help:"Remove a remembered decision."`

	Delegate approvalDelegateCommand `cmd:"" help:"Let a colleague decide in your place for some time."`
}

// Help is shown by `luanette approval --help`.
func (approvalCommand) Help() string {
	return `With approve = "writes" in luanette.toml, for everything or for some tools, a
script pauses before each call that changes something. It waits for a decision,
which is made here, in the web HUD or in the MCP client that called the script.
A restart of the server does not end the wait.`
}

type approvalListCommand struct {
	clientFlags
	Status string `help:"pending, allowed, denied, withdrawn or any." default:"pending"`
}

// Run lists approvals, newest first.
func (c *approvalListCommand) Run(ctx context.Context, proc *process) error {
	return list(ctx, proc, &c.clientFlags, "approval_list", map[string]any{"status": c.Status}, func(found approvaltools.ApprovalList) error {
		return printApprovals(proc, &found)
	})
}

// printApprovals prints approvals, remembered decisions and who decides for whom, each as a
// table of its own.
func printApprovals(proc *process, found *approvaltools.ApprovalList) error {
	ids := make([]string, len(found.Approvals))
	for i := range found.Approvals {
		ids[i] = found.Approvals[i].ID
	}
	length := uniqueLength(ids)
	none := "no approvals are pending; --status any lists those that were decided"
	err := printList(proc, found.Approvals, none, "APPROVAL STATUS SUBJECT SCRIPT ASKED-BY LEFT", func(a approvaltools.ApprovalView) []string {
		left := ""
		if a.DecidedAt == nil {
			left = durationText(time.Until(a.ExpiresAt))
		}
		return []string{a.ID[:min(length, len(a.ID))], a.Status, a.Subject, a.Script, a.AskedBy, left}
	})
	if err == nil && len(found.Remembered) > 0 {
		fmt.Fprintln(proc.Stdout)
		err = printList(proc, found.Remembered, "", "REMEMBERED DECISION SCOPE SUBJECT BY", func(r approvaltools.RuleView) []string {
			return []string{r.ID, r.Decision, r.Scope, r.Subject, r.By}
		})
	}
	if err == nil && len(found.Delegations) > 0 {
		fmt.Fprintln(proc.Stdout)
		err = printList(proc, found.Delegations, "", "DECIDES FOR ROLE UNTIL", func(d approvaltools.DelegationView) []string {
			return []string{d.To, d.From, d.Role, d.Until.Local().Format(time.DateTime)}
		})
	}
	return err
}

type approvalArg struct {
	clientFlags
	ID string `arg:"" complete:"approval" help:"The approval's id, as list shows it, or the beginning of it."`
}

type approvalShowCommand struct {
	approvalArg
	Full bool `help:"Show all arguments."`
}

// Run shows the approval.
func (c *approvalShowCommand) Run(ctx context.Context, proc *process) error {
	view, err := c.resultAbout(ctx, proc, "approval_status", map[string]any{}, subject{"approval_id", c.ID, approvalID})
	if err == nil {
		err = c.print(proc, view)
	}
	if err != nil || !c.Full || c.JSON {
		return err
	}
	return printWhole(proc, view)
}

type decideArg struct {
	approvalArg
	Remember string `placeholder:"SCOPE" enum:",tool,namespace,script" default:"" help:"Remember the decision: for this tool, its namespace, or this script."`
}

// Run decides the request. A script that is not a job continues at once, and its outcome is
// shown.
func (c *decideArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	args := map[string]any{"decision": k.Selected().Tag.Get("decision")}
	if c.Remember != "" {
		args["remember"] = c.Remember
	}
	view, err := c.resultAbout(ctx, proc, "approval_decide", args, subject{"approval_id", c.ID, approvalID})
	if err == nil {
		err = c.print(proc, view)
	}
	if err != nil || args["decision"] == "deny" {
		return err
	}
	return runFailed(view)
}

// runFailed returns why a run that was approved has failed, or nil.
func runFailed(view tool.View) error {
	var decided struct {
		Outcome struct {
			Error *script.ResumeError `json:"error"`
		} `json:"outcome"`
	}
	if _ = json.Unmarshal(view.Structured, &decided); decided.Outcome.Error == nil { // it goes on, or was a direct call
		return nil
	}
	why := decided.Outcome.Error
	return fault.New(fault.Code(why.Code), "approved, but the run failed: %s", why.Message).WithHint("%s", why.Hint)
}

type approvalForgetCommand struct{ approvalArg }

// Run removes a remembered decision.
func (c *approvalForgetCommand) Run(ctx context.Context, proc *process) error {
	return c.callAbout(ctx, proc, "approval_forget", map[string]any{}, subject{"id", c.ID, approvalID})
}

type approvalDelegateCommand struct {
	clientFlags
	Role  string `arg:"" help:"A role of yours that decides requests."`
	To    string `required:"" placeholder:"WHO" help:"Name, email address or id of a person of your organisation."`
	Until string `required:"" placeholder:"WHEN" help:"For how long: 3d, 12h, 2027-01-31; 90 days at most. now ends it."`
}

// Run names who decides in the caller's place.
func (c *approvalDelegateCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "approval_delegate", map[string]any{"role": c.Role, "to": c.To, "until": c.Until})
}
