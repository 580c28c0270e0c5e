package script

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

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

// once makes the call within a Handler.
func (c DirectCall) once(call func(ctx context.Context) (tool.Result, error)) func(context.Context, host.Handler) (Outcome, error) {
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

// CallApproved has a call that needs approval wait for it, and then make itself with call.
// It asks the caller if its client supports that; otherwise the result says what the call
// waits for, and Resume makes it after the decision.
func (r *Runner) CallApproved(ctx context.Context, c DirectCall, caller *tool.Caller, call func(ctx context.Context) (tool.Result, error)) (tool.Result, error) {
	var made tool.Result
	a := &approvedRun{
		runner: r, key: newRunKey(), request: Request{Source: c.source(), Name: c.Ref.String(), Language: directCall, Caller: caller},
		once: c.once(func(ctx context.Context) (result tool.Result, err error) {
			made, err = call(ctx)
			return made, err
		}),
	}
	if caller != nil {
		a.owner = caller.User
	}
	outcome, err := a.run(ctx)
	_, problem := a.finish(ctx, Turn{Outcome: outcome}, err)
	var pending *PendingError
	switch {
	case errors.As(err, &pending):
		return waitingResult(pending, outcome), nil
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
