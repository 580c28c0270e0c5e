package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Budget counts what turns use, and refuses requests to the model beyond a limit.
type Budget interface {
	// Check is called before each request to the model; an error ends the turn.
	Check(ctx context.Context, who Spender) error
	// Spend is called after each request to the model, also if it failed.
	Spend(ctx context.Context, who Spender, model string, u llm.Usage) error
}

// Spender is who uses something, and for what.
type Spender struct {
	Turn      string // Request.ID
	Org, User string
}

// refusedError is a request to the model that the budget refused.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

func (t *turn) spender() Spender {
	return Spender{Turn: t.request.ID, Org: t.request.Org, User: t.request.User}
}

func (t *turn) checkBudget(ctx context.Context) error {
	if t.agent.options.Budget == nil {
		return nil
	}
	err := t.agent.options.Budget.Check(ctx, t.spender())
	if fault.CodeOf(err) == fault.Limit {
		return refusedError{err}
	}
	return err
}

// spend counts an answer. The answer is there, so it is passed on even if that fails.
func (t *turn) spend(ctx context.Context, a *llm.Answer) {
	if t.agent.options.Budget == nil {
		return
	}
	if err := t.agent.options.Budget.Spend(ctx, t.spender(), cmp.Or(a.Model, t.reply.Model), a.Usage); err != nil {
		t.note(ctx, slog.LevelError, "usage_error", slog.String("error", loggable(err)))
	}
}

// stopAtBudget ends a turn that has already called tools with an answer that says why,
// so that what was done is not lost. Other errors are returned.
func (t *turn) stopAtBudget(err error) (done bool, _ error) {
	var refused refusedError
	if !errors.As(err, &refused) || t.reply.Iterations == 1 {
		return false, err
	}
	t.add("I stopped here: %v. What is above may be incomplete.", err)
	t.notice("budget", "%v", err)
	t.reply.Stop = StopBudget
	return true, nil
}
