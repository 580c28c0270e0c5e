package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Begin gives ctx a record of labels, unless it has one or there are no labels.
func (p *Policy) Begin(ctx context.Context) context.Context {
	if recordOf(ctx) != nil || !p.settings.Load().follows() {
		return ctx
	}
	return context.WithValue(ctx, recordKey{}, &record{})
}

// Detach returns ctx without a record of labels: what is done for somebody else has not
// read what the caller has.
func (p *Policy) Detach(ctx context.Context) context.Context {
	if recordOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, recordKey{}, (*record)(nil))
}

// follow refuses a call that would send data where its labels are not accepted, and
// records the labels of what it reads.
func (p *Policy) follow(ctx context.Context, s *Settings, info *tool.Info, call tool.Call) error {
	r, ref := recordOf(ctx), info.Ref
	line := 0
	if outer := host.ParentOf(ctx); outer != nil {
		line = outer.Line()
	}
	if ref.Space == "" {
		return p.followOwn(ctx, s, info, call, line)
	}
	if barred := r.barred(slices.Concat(s.Accepts[ref.Space], s.Labels[ref.Space])); len(barred) > 0 {
		return refused(barred, at(ref.String(), line), ref.Space)
	}
	for _, name := range s.Labels[ref.Space] {
		r.add(Label{Name: name, From: ref.String(), Line: line})
	}
	return nil
}

// storeNothing are tools of ours that store no data, so that no label can be lost.
var storeNothing = map[string]bool{
	"session_create": true, "session_close": true, "session_reset": true, "session_fork": true, "job_cancel": true,
}

// followOwn is follow for our own tools. Tools that run a script are followed inside;
// those that read stored data read its labels; others would store data without its
// labels, and are refused.
func (p *Policy) followOwn(ctx context.Context, s *Settings, info *tool.Info, call tool.Call, line int) error {
	if p.delegates(info) {
		return nil
	}
	r := recordOf(ctx)
	if barred := r.barred(s.Accepts["luanette"]); len(barred) > 0 && !info.Hints.ReadOnly && !storeNothing[info.Name] {
		return refused(barred, at(info.Name, line), "luanette")
	}
	family, _, _ := strings.Cut(info.Name, "_")
	switch family {
	case "job", "session":
		return p.recallAny(ctx, family+":", call.Args)
	case "approval": // plans contain what scripts want to send
		for _, name := range s.names() {
			r.add(Label{Name: name, From: info.Name, Line: line})
		}
		return nil
	default:
		return nil
	}
}

// refused is the error for data that must not go to a place, with the way it would have
// gone.
func refused(barred []Label, to, place string) error {
	return fault.New(fault.Denied, "data with the label %s must not go to %s: %s → %s", namesOf(barred), place, barred[0], to).
		WithHint("the owner can allow it: accepts = [%q] for %s in luanette.toml; see docs/policy.md", barred[0].Name, place).
		WithDetails(map[string]any{"labels": barred, "to": to})
}

// Check decides about an effect of a script that is not a tool call; tool calls pass
// CheckCalls.
func (p *Policy) Check(ctx context.Context, e host.Effect) error {
	s := p.settings.Load()
	if _, isTool := e.Tool(); isTool || slices.Contains([]host.Kind{host.Observe, host.Nondeterministic, host.Nested}, e.Kind) {
		return nil
	}
	if err := s.admit(ctx, e); err != nil {
		return err
	}
	sink := sinkOf(e)
	r := recordOf(ctx)
	if sink == "" || r == nil {
		return nil
	}
	if barred := r.barred(s.Accepts[sink]); len(barred) > 0 {
		return refused(barred, at(e.DisplayName(), e.Line), sink)
	}
	return nil
}

// admit applies the rules to an effect that is not a tool call.
func (s *Settings) admit(ctx context.Context, e host.Effect) error {
	who := principal.Of(ctx)
	ref := tool.Ref{Name: e.DisplayName()}
	harmless := e.Kind == host.Read || e.TempOnly
	switch {
	case lookup(e):
		return nil
	case tool.IsOnlyReading(ctx) && !harmless:
		return notReading(ref)
	case !s.applies(who):
		return nil
	}
	if d := s.decideFor(who, ref, "", harmless); d.Verdict == Deny {
		return d.refusal(ctx, ref)
	}
	return nil
}

// lookup reports whether an effect only lists tools.
func lookup(e host.Effect) bool {
	return e.Name == "mcp.has" || e.Name == "mcp.tools" || e.Name == "mcp.namespaces"
}

// sinkOf is where an effect sends data, or "" when it stays with the run.
func sinkOf(e host.Effect) string {
	module, name, dotted := strings.Cut(e.Name, ".")
	if !dotted {
		module, name = "", e.Name
	}
	switch {
	case module == "http": // a URL can carry data too
		return "http"
	case name == "__run" || name == "git_status" || name == "run_command":
		return "commands"
	case module == "results" || e.Kind == host.Read || e.TempOnly:
		return ""
	case module == "cas" || module == "artifact":
		return "contents"
	case module == "tools":
		return "upstreams"
	case name == "emit":
		return "events"
	default:
		return "files"
	}
}

// Answered records the labels of results that come from no tool, and of tool results
// that a journal replays: a resumed run has read what it read before.
func (p *Policy) Answered(ctx context.Context, e host.Effect) {
	r := recordOf(ctx)
	if r == nil {
		return
	}
	s := p.settings.Load()
	if ref, ok := e.Tool(); ok {
		for _, name := range s.Labels[ref.Space] {
			r.add(Label{Name: name, From: ref.String(), Line: e.Line})
		}
		return
	}
	if strings.HasSuffix(e.Name, "__next") { // events contain data of others
		for _, name := range s.names() {
			r.add(Label{Name: name, From: "events", Line: e.Line})
		}
	}
}

// textsIn are all strings in a value.
func textsIn(raw json.RawMessage) (texts []string) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return texts
}

var _ host.Flow = (*Policy)(nil)
