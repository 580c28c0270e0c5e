// Package approvaltools are the tools with which people approve what scripts do.
package approvaltools

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// Tools makes the tools with which people approve what scripts do.
func Tools(o *approval.Store, r *session.Sessions) []toolset.Tool {
	t := approvalTools{o, r}
	look := tool.Hints{ReadOnly: true, ClosedWorld: true}
	return []toolset.Tool{
		toolset.Define(texts, "approval_list", look, t.list),
		toolset.Define(texts, "approval_status", look, t.status),
		toolset.Checked(toolset.Define(texts, "approval_decide", tool.Hints{}, t.decide), refusesDecision),
		toolset.Checked(toolset.Define(texts, "approval_forget", tool.Hints{Idempotent: true, ClosedWorld: true}, t.forget), refusesForgetting),
		toolset.Define(texts, "approval_delegate", tool.Hints{Idempotent: true, ClosedWorld: true}, t.delegate),
	}
}

type approvalTools struct {
	store   *approval.Store
	resumer *session.Sessions
}

// ApprovalView is an approval as these tools show it.
type ApprovalView struct {
	ID         string     `json:"approval_id"`
	Status     string     `json:"status" enum:"pending,allowed,denied,withdrawn"`
	Subject    string     `json:"subject" jsonschema:"the tool or function it is about"`
	Script     string     `json:"script" jsonschema:"name of the script"`
	ScriptHash string     `json:"script_hash"`
	JobID      string     `json:"job_id,omitempty" jsonschema:"the job that waits"`
	Certain    bool       `json:"certain" jsonschema:"true when no entry of the plan follows a mocked answer"`
	Complete   bool       `json:"complete" jsonschema:"true when the plan is complete"`
	Incomplete string     `json:"incomplete,omitempty" jsonschema:"why the plan is not complete"`
	PlanDigest string     `json:"plan_digest" jsonschema:"identifies the plan that is shown"`
	Undoes     string     `json:"undoes_job,omitempty" jsonschema:"the job that it undoes"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at" jsonschema:"without a decision by then it is denied"`
	DecidedAt  *time.Time `json:"decided_at,omitempty"`
	DecidedBy  string     `json:"decided_by,omitempty"`
	AskedBy    string     `json:"asked_by"`
	Role       string     `json:"role,omitempty" jsonschema:"those who decide must have this role"`
	Needed     int        `json:"needed" jsonschema:"how many people must agree"`
	Agreed     int        `json:"agreed" jsonschema:"how many have"`
	MayDecide  bool       `json:"may_decide" jsonschema:"true if you may allow it"`
	WhyNot     string     `json:"why_not,omitempty" jsonschema:"why you may not"`

	Decisions []DecisionView `json:"decisions" jsonschema:"what each person said, in order"`

	Plan    []host.Planned    `json:"plan" schema:"-"`
	Output  []builtin.LogLine `json:"output" schema:"-"`
	Outcome toolset.JSON      `json:"outcome,omitempty" schema:"-"` // of a run that is not a job
}

// DecisionView is what one person said.
type DecisionView struct {
	By       string    `json:"by"`
	For      string    `json:"for,omitempty" jsonschema:"in whose place they decided"`
	Decision string    `json:"decision" enum:"allow,deny"`
	At       time.Time `json:"at"`
}

func (t approvalTools) view(ctx context.Context, a *approval.Approval) ApprovalView {
	v := ApprovalView{
		ID: a.ID, Status: string(a.State), Subject: a.Subject, Script: a.Name, ScriptHash: a.Hash, JobID: a.Job(),
		Certain: a.Certain, Complete: a.Complete, Incomplete: a.Incomplete, PlanDigest: a.PlanDigest(), Undoes: a.Undoes, CreatedAt: a.Created, ExpiresAt: a.Expires, DecidedBy: a.By,
		AskedBy: a.Asker.Title(), Role: a.Role, Needed: a.Needed, Agreed: a.Agreed(), Decisions: []DecisionView{},
		Plan: append([]host.Planned{}, a.Plan...), Output: append([]builtin.LogLine{}, builtin.LogLines(a.Output)...), Outcome: outcomeOf(a),
	}
	for _, d := range a.Decisions {
		said := DecisionView{By: d.By.Title(), Decision: decisionOf(d.Allow), At: d.At}
		if d.Person != "" && d.Person != d.By.User {
			said.For = t.store.NameOf(ctx, d.Person)
		}
		v.Decisions = append(v.Decisions, said)
	}
	if a.State == approval.Pending {
		why := t.store.Refusal(ctx, a)
		if v.MayDecide = why == nil; why != nil {
			v.WhyNot = why.Error()
		}
	}
	if !a.Decided.IsZero() {
		v.DecidedAt = &a.Decided
	}
	return v
}

// outcomeOf is the outcome as people see it: of a direct call the value of its result.
func outcomeOf(a *approval.Approval) toolset.JSON {
	o, err := script.ReadOutcome(a.Outcome)
	if err != nil || o.Made == nil {
		return a.Outcome
	}
	o.Made = nil
	raw, err := json.Marshal(o)
	if err != nil {
		return a.Outcome
	}
	return raw
}

// line returns the approval as a line of a list.
func (d ApprovalView) line() string {
	run := d.Script
	if d.JobID != "" {
		run = "job " + d.JobID
	}
	if d.Undoes != "" {
		run += ", which undoes job " + d.Undoes
	}
	line := fmt.Sprintf("%s  %s  %s, for %s (%d planned), asked by %s", d.ID, d.Status, d.Subject, run, len(d.Plan), d.AskedBy)
	if d.Status == string(approval.Pending) {
		line += ", " + timeLeft(time.Until(d.ExpiresAt))
	}
	if d.Role != "" {
		line += fmt.Sprintf(", %d of %d with the role %s agreed", d.Agreed, d.Needed, d.Role)
	}
	return line
}

// timeLeft says how long a request stays open.
func timeLeft(left time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case left >= 2*day:
		return fmt.Sprintf("%d days left", left/day)
	case left >= day:
		return "1 day left"
	default:
		return fmt.Sprintf("%v left", max(left, 0).Round(time.Minute))
	}
}

// Text returns all of it for people.
func (d ApprovalView) Text() string {
	var out strings.Builder
	out.WriteString(d.line())
	if d.DecidedBy != "" {
		fmt.Fprintf(&out, ", by %s", d.DecidedBy)
	}
	if len(d.Outcome) > 0 {
		out.WriteString("\n" + outcomeText(d.Outcome))
		return out.String()
	}
	out.WriteString("\n" + host.PlanText(d.Plan))
	if !d.Complete && len(d.Plan) > 0 {
		out.WriteString("\n" + script.IncompleteText(d.Incomplete))
	}
	for i, line := range d.Output {
		if i == 0 {
			out.WriteString("\nOutput so far:")
		}
		fmt.Fprintf(&out, "\n  %s", line.Text)
	}
	return out.String()
}

type approvalListIn struct {
	Status string `json:"status,omitempty" jsonschema:"only those with this status; default pending" enum:"pending,allowed,denied,withdrawn,any"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum number; default 50" min:"1" max:"500"`
}

// ApprovalList is the result of approval_list.
type ApprovalList struct {
	Approvals  []ApprovalView `json:"approvals" jsonschema:"the newest first"`
	Remembered []RuleView     `json:"remembered" jsonschema:"stored decisions; approval_forget deletes one"`

	Delegations []DelegationView `json:"delegations,omitempty" jsonschema:"by and to you"`
}

// Text returns one line per entry.
func (l ApprovalList) Text() string {
	var lines []string
	for _, a := range l.Approvals {
		lines = append(lines, a.line())
	}
	if len(lines) == 0 {
		lines = append(lines, "No approvals are pending.")
	}
	for i, r := range l.Remembered {
		if i == 0 {
			lines = append(lines, "Remembered:")
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s %s", r.ID, r.Decision, r.Scope, r.Subject))
	}
	for _, d := range l.Delegations {
		lines = append(lines, d.line())
	}
	return strings.Join(lines, "\n")
}

// RuleView is a stored decision.
type RuleView struct {
	ID        string    `json:"id"`
	Decision  string    `json:"decision" enum:"allow,deny"`
	Scope     string    `json:"scope" enum:"tool,namespace,script"`
	Subject   string    `json:"subject" jsonschema:"the tool, the namespace, or the hash of the script"`
	CreatedAt time.Time `json:"created_at"`
	By        string    `json:"by,omitempty"`
}

func (t approvalTools) list(ctx context.Context, call tool.Call, in approvalListIn) (ApprovalList, error) {
	in.Limit = cmp.Or(in.Limit, 50)
	state := approval.State(in.Status)
	switch in.Status {
	case "":
		state = approval.Pending
	case "any":
		state = ""
	}
	found, err := t.store.List(ctx, call.Owner(), state, in.Limit)
	if err != nil {
		return ApprovalList{}, err
	}
	rules, err := t.store.Rules(ctx)
	if err != nil {
		return ApprovalList{}, err
	}
	l := ApprovalList{Approvals: []ApprovalView{}, Remembered: []RuleView{}}
	for i := range found {
		l.Approvals = append(l.Approvals, t.view(ctx, &found[i]))
	}
	for _, r := range rules {
		l.Remembered = append(l.Remembered, RuleView{r.ID, decisionOf(r.Allow), r.Scope, r.Subject, r.Created, r.By})
	}
	l.Delegations, err = t.delegations(ctx)
	return l, err
}

func decisionOf(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

type approvalStatusIn struct {
	ID        string `json:"approval_id" jsonschema:"id of an approval" min:"1" max:"64"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" jsonschema:"how long to wait while it is pending" min:"0" max:"60000"`
}

func (t approvalTools) status(ctx context.Context, call tool.Call, in approvalStatusIn) (ApprovalView, error) {
	a, err := t.store.Open(ctx, call.Owner(), in.ID)
	if err != nil {
		return ApprovalView{}, err
	}
	if a.State == approval.Pending && in.TimeoutMS > 0 {
		within, cancel := context.WithTimeout(ctx, time.Duration(in.TimeoutMS)*time.Millisecond)
		_ = t.store.Await(within, in.ID) // the current state is shown
		cancel()
		if a, err = t.store.Open(ctx, call.Owner(), in.ID); err != nil {
			return ApprovalView{}, err
		}
	}
	return t.view(ctx, &a), nil
}

type approvalDecideIn struct {
	ID       string `json:"approval_id" jsonschema:"id of a pending approval" min:"1" max:"64"`
	Decision string `json:"decision" jsonschema:"allow: the script may do what its plan shows; deny: the call is refused" enum:"allow,deny"`
	Remember string `json:"remember,omitempty" jsonschema:"store the decision for this tool, its namespace, or this script" enum:"tool,namespace,script"`
	Plan     string `json:"plan,omitempty" jsonschema:"plan_digest of the plan that the person saw: if it has changed, nothing is decided" max:"64"`
}

func refusesDecision(ctx context.Context, _ tool.Call, in approvalDecideIn) error {
	switch {
	case host.ParentOf(ctx) != nil:
		return fault.New(fault.Denied, "scripts cannot approve anything").WithHint("a person decides: luanette approval allow %s", in.ID)
	case principal.Of(ctx).IsGuest():
		return fault.New(fault.Denied, "guests cannot approve anything").WithHint("the owner of the machine decides: luanette approval allow %s, or on the page (luanette open)", in.ID)
	default:
		return nil
	}
}

func (t approvalTools) decide(ctx context.Context, call tool.Call, in approvalDecideIn) (ApprovalView, error) {
	if err := refusesDecision(ctx, call, in); err != nil {
		return ApprovalView{}, err
	}
	answer := host.Answer{Allow: in.Decision == "allow", Remember: in.Remember, Plan: in.Plan}
	if call.Caller != nil {
		answer.By = call.Caller.Agent
	}
	a, err := t.store.Decide(ctx, call.Owner(), in.ID, answer)
	if err != nil {
		return ApprovalView{}, err
	}
	if a.Resume != nil && a.State != approval.Pending {
		call.Caller.Report(0, "Resuming the script")
		// The run continues even if the caller disconnects.
		a.Outcome, err = t.resumer.Resume(context.WithoutCancel(ctx), a.ID, a.RunInfo, a.Resume, script.Request{Caller: call.Caller})
		if err != nil {
			return ApprovalView{}, err
		}
	}
	return t.view(ctx, &a), nil
}

func outcomeText(raw toolset.JSON) string {
	var o script.ResumeResult
	if json.Unmarshal(raw, &o) != nil {
		return string(raw)
	}
	lines := []string{}
	for i, line := range o.Output {
		if i == 0 {
			lines = append(lines, "Output:")
		}
		lines = append(lines, "  "+line.Text)
	}
	switch {
	case o.Approval != nil:
		lines = append(lines, o.Approval.Text())
	case o.Status == script.StatusWaiting:
		lines = append(lines, "The script waits for another approval.")
	case o.Error != nil:
		lines = append(lines, fmt.Sprintf("The script failed (%s): %s", o.Error.Code, o.Error.Message))
	default:
		lines = append(lines, "Result: "+script.Pretty(o.Result))
	}
	return strings.Join(lines, "\n")
}

// OutcomeResult returns the outcome of a run that waited for an approval, as the result of
// a tool. If the run waits again, next is the approval.
func OutcomeResult(a *approval.Approval) (result tool.Result, next string, err error) {
	if len(a.Outcome) == 0 {
		return tool.Result{}, "", fault.New(fault.Cancelled, "%s no longer waits for approval %s", a.Subject, a.ID)
	}
	o, problem := script.ReadOutcome(a.Outcome)
	switch {
	case problem != nil:
		result, err = tool.Output(string(a.Outcome), nil)
		return result, "", err
	case o.Made != nil:
		return tool.Result{Raw: o.Made}, "", nil
	case o.Approval != nil:
		return tool.Result{}, o.Approval.ID, nil
	case o.Error != nil:
		return tool.Failure(fault.New(fault.Code(o.Error.Code), "%s", o.Error.Message).WithHint("%s", o.Error.Hint)), "", nil
	}
	result, err = tool.Output(outcomeText(a.Outcome), o)
	return result, "", err
}

type approvalForgetIn struct {
	ID string `json:"id" jsonschema:"id of a stored decision, from approval_list" min:"1" max:"64"`
}

// ApprovalForgotten is the result of approval_forget.
type ApprovalForgotten struct {
	ID string `json:"id"`
}

// Text returns it as one line.
func (f ApprovalForgotten) Text() string { return "Forgotten: " + f.ID }

func refusesForgetting(ctx context.Context, _ tool.Call, in approvalForgetIn) error {
	switch {
	case host.ParentOf(ctx) != nil:
		return fault.New(fault.Denied, "scripts cannot change stored decisions")
	case principal.Of(ctx).IsGuest():
		return fault.New(fault.Denied, "guests cannot change stored decisions").WithHint("the owner of the machine does: luanette approval forget %s", in.ID)
	default:
		return nil
	}
}

func (t approvalTools) forget(ctx context.Context, call tool.Call, in approvalForgetIn) (ApprovalForgotten, error) {
	if err := refusesForgetting(ctx, call, in); err != nil {
		return ApprovalForgotten{}, err
	}
	return ApprovalForgotten(in), t.store.Forget(ctx, in.ID)
}

type approvalDelegateIn struct {
	Role  string `json:"role" jsonschema:"a role of yours that decides requests" min:"1" max:"64"`
	To    string `json:"to" jsonschema:"who decides in your place: name, email address or id of somebody in your organisation" min:"1" max:"256"`
	Until string `json:"until" jsonschema:"for how long: 3d, 12h, a day or a time, 90d at most; now ends it" min:"1" max:"64"`
}

// ApprovalDelegated is the result of approval_delegate.
type ApprovalDelegated struct {
	Role  string    `json:"role"`
	To    string    `json:"to"`
	ToID  string    `json:"to_id"`
	Until time.Time `json:"until"`
	Ended bool      `json:"ended,omitempty"`
}

// Text returns it as one line.
func (d ApprovalDelegated) Text() string {
	if d.Ended {
		return fmt.Sprintf("You decide for the role %s yourself again.", d.Role)
	}
	return fmt.Sprintf("%s decides for the role %s in your place until %s.", d.To, d.Role, d.Until.Format(time.RFC3339))
}

func (t approvalTools) delegate(ctx context.Context, _ tool.Call, in approvalDelegateIn) (ApprovalDelegated, error) {
	if host.ParentOf(ctx) != nil {
		return ApprovalDelegated{}, fault.New(fault.Denied, "scripts cannot delegate decisions")
	}
	now := time.Now()
	until, ended := now, in.Until == "now"
	if !ended {
		var err error
		if until, err = httpauth.ParseExpiry(in.Until, now); err != nil {
			return ApprovalDelegated{}, err
		}
	}
	d, err := t.store.Delegate(ctx, in.Role, in.To, until)
	if err != nil {
		return ApprovalDelegated{}, err
	}
	return ApprovalDelegated{Role: d.Role, To: t.store.NameOf(ctx, d.To), ToID: d.To, Until: d.Until, Ended: ended}, nil
}

// DelegationView is a delegation in force.
type DelegationView struct {
	Role  string    `json:"role"`
	From  string    `json:"from" jsonschema:"who has the role"`
	To    string    `json:"to" jsonschema:"who decides"`
	ToID  string    `json:"to_id"`
	Until time.Time `json:"until"`
}

func (d DelegationView) line() string {
	return fmt.Sprintf("%s decides for %s with the role %s until %s.", d.To, d.From, d.Role, d.Until.Format(time.RFC3339))
}

// delegations returns those by and to the caller.
func (t approvalTools) delegations(ctx context.Context) (list []DelegationView, err error) {
	found, err := t.store.Delegations(ctx)
	for _, d := range found {
		list = append(list, DelegationView{d.Role, t.store.NameOf(ctx, d.Person), t.store.NameOf(ctx, d.To), d.To, d.Until})
	}
	return list, err
}
