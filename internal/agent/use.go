package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/llm"
	"github.com/luanette/luanette/internal/redact"
	"github.com/luanette/luanette/internal/tool"
)

// use runs the tools of one answer side by side. The results stand in the order
// they were asked for.
func (t *turn) use(ctx context.Context, uses []llm.Use) llm.Message {
	blocks := make([]llm.Block, len(uses))
	var all sync.WaitGroup
	for i, use := range uses {
		all.Go(func() {
			result := t.useOne(ctx, use)
			blocks[i] = llm.Block{Result: &result}
		})
	}
	all.Wait()
	t.reply.ToolCalls += len(uses)
	return llm.Message{Role: llm.User, Blocks: blocks}
}

func (t *turn) useOne(ctx context.Context, use llm.Use) llm.Result {
	ref, known := t.tools.refs[use.Name]
	shown := use.Name
	if known {
		shown = ref.String()
	}
	t.tell(ToolUse{ID: use.ID, Iteration: t.reply.Iterations, Tool: shown, Input: use.Input})
	began := time.Now()
	text, failed := t.call(ctx, use, ref, known)
	text = t.cut(text)
	t.tell(ToolResult{ID: use.ID, Iteration: t.reply.Iterations, Tool: shown, Text: text, Failed: failed, Took: time.Since(began)})
	return llm.Result{ID: use.ID, Text: text, Failed: failed}
}

func (t *turn) call(ctx context.Context, use llm.Use, ref tool.Ref, known bool) (text string, failed bool) {
	if !known {
		return failure(fault.New(fault.ToolNotFound, "no tool %q", use.Name)), true
	}
	ctx, cancel := context.WithTimeout(ctx, t.limits.ToolTime)
	defer cancel()
	result, err := t.tools.source.Call(ctx, tool.Call{Ref: ref, Args: use.Input, Caller: t.caller()})
	if err != nil {
		return failure(err), true
	}
	view, err := result.View()
	if err != nil {
		return failure(err), true
	}
	if text = view.Text(); text == "" {
		text = string(view.Value())
	}
	return text, view.IsError
}

// caller is who the tools are called for.
func (t *turn) caller() *tool.Caller {
	user := t.request.Org + "/" + t.request.User
	return &tool.Caller{ID: "chat:" + user, User: user}
}

// failure is how an error is told to the model.
func failure(err error) string {
	text := string(fault.CodeOf(err)) + ": " + err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += "\n" + hint
	}
	return text
}

// cut keeps a tool's answer within bounds, with a note on how to get the rest.
func (t *turn) cut(text string) string {
	if len(text) <= t.limits.ResultBytes {
		return text
	}
	return redact.Cut(text, t.limits.ResultBytes) + fmt.Sprintf("\n[cut: %d of %d bytes are shown. Ask for less: narrower arguments, "+
		"a limit or page if the tool has one, or code that returns only the part you need]", t.limits.ResultBytes, len(text))
}
