package scripttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Preview makes the tool that shows what a script would do. tools has the output
// schemas for mocked answers.
func Preview(r *script.Runner, s *session.Sessions, scripts *artifact.Store, tools tool.Source) []toolset.Tool {
	t := previewTools{r, s, scripts, tools}
	return []toolset.Tool{toolset.DefineResult[previewIn, Previewed](texts, "lua_preview", tool.Hints{ReadOnly: true}, t.preview)}
}

type previewTools struct {
	runner   *script.Runner
	sessions *session.Sessions
	scripts  *artifact.Store
	tools    tool.Source
}

type previewIn struct {
	Code       string         `json:"code,omitempty" jsonschema:"the script; give this or script_hash" max:"1048576"`
	Language   string         `json:"language,omitempty" jsonschema:"of code; default: the session's, otherwise lua" enum:"lua,javascript"`
	ScriptHash string         `json:"script_hash,omitempty" jsonschema:"hash of a stored script"`
	Params     toolset.Object `json:"params,omitempty" jsonschema:"the argument of main; without it code runs as in lua_eval"`
	SessionID  string         `json:"session_id,omitempty" jsonschema:"the session to copy; default: a fresh environment" max:"64"`
	Mocks      toolset.Object `json:"mocks,omitempty" jsonschema:"mocked answers by tool or function: {\"github.create_issue\": {\"number\": 7}}"`
}

// Previewed is the result of lua_preview.
type Previewed struct {
	Plan     []host.Planned       `json:"plan" jsonschema:"what it would do, in order"`
	Reads    []host.Planned       `json:"reads" jsonschema:"the reads that were made"`
	Complete bool                 `json:"complete" jsonschema:"true when the script ran to its end"`
	Certain  bool                 `json:"certain" jsonschema:"true when the script had looked into no made-up answer before any entry of the plan"`
	Mocked   bool                 `json:"mocked" jsonschema:"true when the script looked into a made-up answer, so that output and result may differ in a real run"`
	Error    *builtin.ScriptError `json:"error,omitempty" jsonschema:"how the script failed; the plan ends there"`
	Output   []builtin.LogLine    `json:"output" jsonschema:"what it printed and logged"`
	Result   toolset.JSON         `json:"result,omitempty" schema:"-"`
}

func (t previewTools) preview(ctx context.Context, call tool.Call, in previewIn) (tool.Result, error) {
	q, mocks, err := t.request(ctx, in)
	if err != nil {
		return tool.Result{}, err
	}
	if in.SessionID == "" {
		q = Attributed(call, q)
	}
	if err := t.checkMocks(ctx, mocks); err != nil {
		return tool.Result{}, err
	}
	if q.Main && in.SessionID == "" {
		if q, err = t.runner.Prepare(ctx, q); err != nil {
			return script.ToolFailure(script.Outcome{}, err), nil
		}
	}
	rehearsal, err := t.runner.Rehearsal(ctx, q, mocks)
	if err != nil {
		return tool.Result{}, err
	}
	q.Handler, q.Caller = rehearsal, call.Caller
	outcome, err := t.run(ctx, call, in.SessionID, q)
	var failed *script.Error
	if err != nil && !errors.As(err, &failed) { // no such session
		return tool.Result{}, err
	}
	data := Previewed{
		Plan: rehearsal.Plan(), Reads: rehearsal.Reads(), Complete: err == nil, Certain: rehearsal.Certain(), Mocked: rehearsal.Mocked(),
		Output: append([]builtin.LogLine{}, builtin.LogLines(outcome.Output)...), Result: outcome.Result,
	}
	if failed != nil {
		f := failed.Fault()
		data.Error = builtin.NewScriptError(f.Code, f.Error(), fault.HintOf(f), toolset.JSON(f.Details))
	}
	return tool.Output(data.Text(), data)
}

func (t previewTools) run(ctx context.Context, call tool.Call, session string, q script.Request) (script.Outcome, error) {
	if session == "" {
		return t.runner.Run(ctx, q)
	}
	return t.sessions.Preview(ctx, call.Owner(), session, q)
}

// request returns the run of a preview.
func (t previewTools) request(ctx context.Context, in previewIn) (script.Request, map[string]toolset.JSON, error) {
	q := script.Request{Source: in.Code, Language: in.Language, Params: toolset.JSON(in.Params), Main: len(in.Params) > 0}
	switch {
	case (in.Code == "") == (in.ScriptHash == ""):
		return q, nil, fault.New(fault.InvalidParams, "lua_preview needs either code or script_hash")
	case in.ScriptHash != "":
		ref, source, err := Load(ctx, t.scripts, in.ScriptHash)
		if err != nil {
			return q, nil, err
		}
		q.Source, q.Hash, q.Main, q.Params = source, ref, true, OrEmpty(in.Params)
	}
	var mocks map[string]toolset.JSON
	if len(in.Mocks) > 0 {
		if err := json.Unmarshal(in.Mocks, &mocks); err != nil {
			return q, nil, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read mocks")
		}
	}
	return q, mocks, nil
}

// checkMocks refuses mocks of tools and functions that do not exist: they would be used for
// nothing. A tool may be named in any way.
func (t previewTools) checkMocks(ctx context.Context, mocks map[string]toolset.JSON) error {
	for _, name := range slices.Sorted(maps.Keys(mocks)) {
		if host.HasFunc(t.runner.Modules(), name) {
			continue
		}
		resolver, ok := t.tools.(interface {
			Resolve(ctx context.Context, name string) (tool.Info, error)
		})
		if !ok {
			return nil
		}
		info, err := resolver.Resolve(ctx, name)
		if err != nil {
			return fault.Wrap(fault.InvalidParams, err, "mock of %s", name).WithHint("%s", fault.HintOf(err))
		}
		mocks[info.Ref.String()] = mocks[name]
	}
	return nil
}

// mockedTools are the tools of a plan whose answers were made up.
func (d Previewed) mockedTools() (names []string) {
	for _, p := range d.Plan {
		if name, ok := strings.CutPrefix(p.Action, "call "); ok && p.Effect == "mcp.call" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// mockHint names the mocks that a script would need that looked into made-up answers.
func (d Previewed) mockHint() string {
	names := d.mockedTools()
	if !d.Mocked || len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\nIt had looked into made-up answers of %s. Give better ones as mocks: luanette preview --mock %s:=JSON",
		strings.Join(names, ", "), names[len(names)-1])
}

// Text returns the plan, reads, output and result for people.
func (d Previewed) Text() string {
	var out strings.Builder
	out.WriteString(host.PlanText(d.Plan))
	for i, p := range d.Reads {
		if i == 0 {
			out.WriteString("\nReads:")
		}
		if i == 20 {
			fmt.Fprintf(&out, "\n  … %d more", len(d.Reads)-i)
			break
		}
		fmt.Fprintf(&out, "\n  %s", p.Action)
	}
	for i, line := range d.Output {
		if i == 0 {
			out.WriteString("\nOutput:")
		}
		fmt.Fprintf(&out, "\n  %s", line.Text)
	}
	switch {
	case d.Error != nil:
		fmt.Fprintf(&out, "\nThe script failed, the plan ends there: %s%s", d.Error.Message, d.mockHint())
	case len(d.Result) > 0 && string(d.Result) != "null":
		fmt.Fprintf(&out, "\nResult: %s", script.Pretty(d.Result))
		if d.Mocked {
			out.WriteString(" (depends on made-up answers)")
		}
	}
	return out.String()
}
