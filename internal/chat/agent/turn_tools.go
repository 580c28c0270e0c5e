package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/tool"
)

// use runs the tools of one answer in parallel. The results are in the order of the
// calls.
func (t *turn) use(ctx context.Context, uses []llm.Use) llm.Message {
	blocks := make([]llm.Block, len(uses))
	var all sync.WaitGroup
	for i, use := range uses {
		all.Go(func() {
			result := t.useOne(ctx, i+1, use)
			blocks[i] = llm.Block{Result: &result}
		})
	}
	all.Wait()
	return llm.Message{Role: llm.User, Blocks: blocks}
}

// outcome is the outcome of a tool call.
type outcome struct {
	text   string
	media  []llm.Media
	failed bool
	err    error     // the call could not be made, or its end is unknown
	view   tool.View // the tool's result, if there is one
}

func failed(err error) outcome { return outcome{text: failureText(err), failed: true, err: err} }

func (t *turn) useOne(ctx context.Context, number int, use llm.Use) llm.Result {
	shown := t.tools.shown(use.Name)
	t.send(ToolUse{ID: use.ID, Iteration: t.reply.Iterations, Tool: shown, Input: use.Input})
	began := time.Now()
	o := t.recall(ctx, number, use)
	sent := t.showMedia(&o, number, shown)
	result := ToolResult{ID: use.ID, Iteration: t.reply.Iterations, Tool: shown, Text: o.text, Failed: o.failed, Took: time.Since(began)}
	t.send(result)
	t.remember(use.Input, &result)
	return llm.Result{ID: use.ID, Text: o.text, Media: sent, Failed: o.failed}
}

// longestKept limits what is stored of the arguments and of the result of a call, in bytes.
const longestKept = 4000

// remember adds a call to the reply.
func (t *turn) remember(input json.RawMessage, r *ToolResult) {
	if len(input) > longestKept || !json.Valid(input) {
		input, _ = json.Marshal(redact.Cut(string(input), longestKept)) // a string can be encoded
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reply.Tools = append(t.reply.Tools, UsedTool{
		After: len(t.reply.Responses), Tool: r.Tool, Input: input, Result: redact.Cut(r.Text, longestKept),
		Failed: r.Failed, Duration: float64(r.Took.Microseconds()) / 1000,
	})
}

// recall returns the outcome of a call from the journal, or calls the tool. A call whose
// outcome is unknown is repeated only if the tool may be.
func (t *turn) recall(ctx context.Context, number int, use llm.Use) outcome {
	shown, iteration := t.tools.shown(use.Name), t.reply.Iterations
	called := t.tools.called(use)
	var known resultStep
	begun, done := t.journal.restore(iteration, number, &known)
	if done && known.Approval != "" {
		t.calls.Add(1)
		o := t.awaitApproval(ctx, known.Approval, called)
		t.saveResult(ctx, number, shown, o)
		return o
	}
	if done {
		t.calls.Add(1)
		return outcome{text: known.Text, media: known.Media, failed: known.Failed}
	}
	repeatable := t.tools.repeatable(use.Name)
	var o outcome
	switch {
	case begun && !repeatable:
		t.calls.Add(1)
		t.notice("unknown_outcome", "%s may or may not have happened: the server stopped meanwhile, and it was not repeated", called)
		o = failed(unknownOutcome(called))
	case !repeatable:
		if err := t.journal.save(ctx, iteration, number, nil); err != nil {
			return failed(err) // not called: a crash could not be told from a call that never was
		}
		o = t.observedCall(ctx, use, shown)
	default:
		o = t.observedCall(ctx, use, shown)
	}
	if id, waiting := o.view.PendingApproval(); waiting && t.agent.options.Approved != nil {
		if err := t.journal.save(ctx, iteration, number, resultStep{Approval: id}); err != nil {
			return failed(err)
		}
		o = t.awaitApproval(ctx, id, called)
	}
	t.saveResult(ctx, number, shown, o)
	return o
}

// saveResult stores the outcome of a call, unless it was interrupted.
func (t *turn) saveResult(ctx context.Context, number int, shown string, o outcome) {
	if ctx.Err() != nil {
		return
	}
	if err := t.journal.save(ctx, t.reply.Iterations, number, resultStep{Text: o.text, Failed: o.failed, Media: o.media}); err != nil {
		t.note(ctx, slog.LevelError, "journal_error", slog.String("tool_name", shown), slog.String("error", loggable(err)))
	}
}

// awaitApproval waits for the decision about a call, which the person sees meanwhile, and
// returns what became of the call. A person takes longer than tools may.
func (t *turn) awaitApproval(ctx context.Context, id, shown string) outcome {
	t.notice("approval", "%s waits for approval %s", shown, id)
	result, err := t.agent.options.Approved(ctx, id)
	if err != nil {
		return failed(err)
	}
	view, err := result.View()
	if err != nil {
		return failed(err)
	}
	text, media := contentOf(view)
	return outcome{text: cutTo(text, t.limits.ResultBytes), media: media, failed: view.IsError, view: view}
}

// observedCall calls a tool, with a span and log records, and bounds its result.
func (t *turn) observedCall(ctx context.Context, use llm.Use, shown string) outcome {
	ctx, used := t.using(ctx, use, shown)
	o := t.call(ctx, use)
	whole := len(o.text)
	if o.text = cutTo(o.text, t.limits.ResultBytes); len(o.text) < whole {
		t.note(ctx, slog.LevelWarn, "tool_result_truncated", slog.String("tool_name", shown), slog.Int("bytes", whole), slog.Int("kept", t.limits.ResultBytes))
	}
	if strings.TrimSpace(o.text) == "" && len(o.media) == 0 {
		o.text = "(no output)"
	}
	used(o)
	return o
}

// call runs one tool within the limits of the turn. Failures are reported to the model,
// which can react to them.
func (t *turn) call(ctx context.Context, use llm.Use) outcome {
	if !json.Valid(use.Input) {
		return failed(t.invalidArguments(use))
	}
	if err := t.admit(); err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, t.limits.ToolTime)
	defer cancel()
	if own, ok := t.tools.local[use.Name]; ok {
		text, err := own(ctx, use.Input)
		if err != nil {
			return failed(err)
		}
		return outcome{text: text}
	}
	ref, known := t.tools.ref(use.Name)
	if !known {
		return failed(noTool(use.Name))
	}
	args, err := t.arguments(ctx, ref, use.Input)
	if err != nil {
		return failed(err)
	}
	result, err := t.agent.options.Tools.Call(t.scoped(ctx), tool.Call{Ref: ref, Args: args, Caller: t.caller()})
	if _, listed := t.tools.refs[use.Name]; !listed && fault.CodeOf(err) == fault.ToolNotFound {
		err = noTool(use.Name)
	}
	if err != nil {
		return failed(t.explain(ctx, ref, err))
	}
	view, err := result.View()
	if err != nil {
		return failed(err)
	}
	text, media := contentOf(view)
	if len(text) > maxResult {
		return failed(fault.New(fault.Limit, "%s answered with %d bytes; one result may have %d", t.tools.called(use), len(text), maxResult).
			WithHint("ask for less: narrower arguments, a limit, page or filter if the tool has one, or code that calls the tool and returns only the part you need"))
	}
	return outcome{text: text, media: media, failed: view.IsError, view: view}
}

// maxResult is the length of the longest result, in bytes. The beginning of a longer one says
// little about it.
const maxResult = 1 << 20

// invalidArguments is the error of a call whose arguments are not JSON: most often they
// end too early, and the API did not say so.
func (t *turn) invalidArguments(use llm.Use) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(use.Input, new(any)); errors.As(err, &syntax) && syntax.Offset >= int64(len(use.Input)) {
		t.notice("arguments_cut", "the model's call of %s was cut off: its arguments are incomplete, and it was not made", t.tools.shown(use.Name))
		return fault.New(fault.InvalidParams, "the arguments of %s were cut off after %d bytes; it was not called", use.Name, len(use.Input)).
			WithHint("write them again as one JSON object, and send less at once")
	}
	return fault.New(fault.InvalidParams, "the arguments of %s are not valid JSON", use.Name).WithHint("write them again as one JSON object")
}

func noTool(name string) error {
	return fault.New(fault.ToolNotFound, "no tool %q", name).WithHint("search_tools finds tools by what they do")
}

// ref returns the tool of a name. A name that was not listed may belong to a tool that
// the person may not use: it is called anyway, so that the refusal states the reason.
func (b *toolbox) ref(name string) (tool.Ref, bool) {
	if ref, listed := b.refs[name]; listed {
		return ref, true
	}
	space, tail, found := strings.Cut(name, "__")
	return tool.Ref{Space: space, Name: tail}, found && space != ""
}

// explain adds the tool timeout to an error it caused.
func (t *turn) explain(ctx context.Context, ref tool.Ref, err error) error {
	if ctx.Err() != nil && fault.CodeOf(ctx.Err()) == fault.Timeout {
		return fault.Wrap(fault.Timeout, err, "%s took longer than %v", ref, t.limits.ToolTime).
			WithHint("ask for less, or answer without it")
	}
	return err
}

// admit counts a call and refuses it beyond the limit.
func (t *turn) admit() error {
	if n := t.calls.Add(1); n <= int64(t.limits.Calls) {
		return nil
	}
	t.calls.Add(-1)
	t.notice("call_limit", "stopped calling tools after %d calls", t.limits.Calls)
	return fault.New(fault.Limit, "this message has used its %d tool calls", t.limits.Calls).
		WithHint("answer with what you have, and say what is missing")
}

// scoped returns ctx with the tools this turn may use. The first call is counted
// already; calls that it leads to are counted one by one.
func (t *turn) scoped(ctx context.Context) context.Context {
	var first atomic.Bool
	return tool.WithScope(ctx, &tool.Scope{
		Allows: t.allows,
		Admit: func(tool.Ref) error {
			if first.CompareAndSwap(false, true) {
				return nil
			}
			return t.admit()
		},
		Names:    t.names(),
		HideArgs: !t.agent.options.Content,
	})
}

// Scope returns the tools that turns with these servers may use, for what they start
// and what goes on after them. Its calls are not counted.
func (a *Agent) Scope(servers []Server) *tool.Scope {
	t := a.begin(Request{Servers: servers}, nil)
	return &tool.Scope{Allows: t.allows, Names: t.names(), HideArgs: !a.options.Content}
}

// caller returns on whose behalf tools are called.
func (t *turn) caller() *tool.Caller {
	user := t.request.Org + "/" + t.request.User
	return &tool.Caller{ID: "chat:" + user, User: user}
}

// failureText returns the text of an error for the model.
func failureText(err error) string {
	text := string(fault.CodeOf(err)) + ": " + err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += "\n" + hint
	}
	return text
}

// longestNote limits what cutTo adds.
const longestNote = 320

// cutTo shortens a tool's result and adds a note on how to get the rest.
func cutTo(text string, bound int) string {
	if len(text) <= bound {
		return text
	}
	return redact.Cut(text, bound) + fmt.Sprintf("\n\n[TRUNCATED: the first %d of %d bytes are shown. Do not guess the rest: narrow your query. Use narrower arguments, "+
		"a limit, page or filter if the tool has one, or code that calls the tool and returns only the part you need.]", bound, len(text))
}
