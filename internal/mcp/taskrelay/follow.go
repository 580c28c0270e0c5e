package taskrelay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/store/db"
)

// The causes with which following a task ends.
var (
	errCancelled = errors.New("the task was cancelled")
	errTakenOver = errors.New("another node follows the task")
	errExpired   = errors.New("the task has expired")
)

// follow follows a task in the background until it ends, unless it is being followed.
func (r *Relay) follow(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spawn == nil || r.following[id] != nil {
		return
	}
	r.following[id] = func(error) {} // until it has begun
	r.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		r.mu.Lock()
		r.following[id] = cancel
		r.mu.Unlock()
		defer func() {
			cancel(nil)
			r.mu.Lock()
			delete(r.following, id)
			r.mu.Unlock()
		}()
		if err := r.followToEnd(ctx, id); err != nil && ctx.Err() == nil && fault.CodeOf(err) != fault.NotFound {
			r.options.Log.WarnContext(ctx, "task of an upstream not followed", "task", id, "error", err)
		}
	})
}

// retries are the pauses while an upstream cannot be reached.
var retries = backoff.Policy{First: 250 * time.Millisecond, Max: 30 * time.Second}

// followToEnd follows a task to its end. While its upstream cannot be reached, it tries
// again.
func (r *Relay) followToEnd(ctx context.Context, id string) error {
	for attempt := 1; ; attempt++ {
		t, err := r.load(ctx, id)
		if err != nil || t.state.Final() || t.node != r.options.Node {
			return err
		}
		end, err := r.followOnce(ctx, t)
		switch {
		case err == nil:
			return r.finish(ctx, id, end)
		case ctx.Err() != nil || errors.Is(err, errExpired):
			return nil //nolint:nilerr // it need not be followed any more
		case fault.CodeOf(err) == fault.NotFound:
			lost := fault.Wrap(fault.Unavailable, errors.New(err.Error()), "task lost").WithHint("%s", fault.HintOf(err))
			return r.finish(ctx, id, tool.Task{State: tool.TaskFailed, Message: lost.Error(), Err: lost})
		}
		r.options.Log.DebugContext(ctx, "task of an upstream not readable", "task", id, "error", err)
		r.report(ctx, id, tool.Task{Message: err.Error()})
		_ = clock.Real().Sleep(ctx, retries.Delay(attempt)) // ended with ctx: the task cannot be read then
	}
}

// followOnce follows a task until it ends, expires or cannot be read.
func (r *Relay) followOnce(ctx context.Context, t task) (tool.Task, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, t.expires, errExpired)
	defer cancel()
	caller := &tool.Caller{ID: "task:" + t.id, User: t.owner, Stateless: true}
	if t.caps != "" {
		caller.Capabilities = json.RawMessage(t.caps)
	}
	caller.Ask = func(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
		return r.ask(ctx, t.id, questions)
	}
	end, err := r.upstreams.FollowTask(t.as(ctx), t.space, t.remote, caller, func(now tool.Task) { r.report(ctx, t.id, now) })
	if err != nil && errors.Is(context.Cause(ctx), errExpired) {
		err = errExpired
	}
	return end, err
}

// as is ctx for requests to the upstream, over the connection with which the task was
// started.
func (t task) as(ctx context.Context) context.Context {
	return principal.WithShared(ctx, &principal.Principal{ID: cmp.Or(t.account, t.owner)})
}

// report stores what the upstream says about a task that continues. That it waits for
// input is stored with its questions.
func (r *Relay) report(ctx context.Context, id string, now tool.Task) {
	err := r.updateOwn(ctx, id, func(t *task) error {
		t.message = now.Message
		if now.Poll > 0 {
			t.poll = now.Poll
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		r.options.Log.WarnContext(ctx, "state of a task not stored", "task", id, "error", err)
	}
}

// finish stores how a task ended.
func (r *Relay) finish(ctx context.Context, id string, end tool.Task) error {
	return r.updateOwn(ctx, id, func(t *task) error {
		t.state, t.message, t.questions, t.answers = end.State, end.Message, nil, nil
		t.result = string(end.Result.Raw)
		if end.Err != nil {
			raw, err := wire.ErrorFrom(end.Err).MarshalJSON()
			if err != nil {
				return err
			}
			t.failure = string(raw)
		}
		return nil
	})
}

// cancelTimeout limits how long an upstream may take to cancel a task.
const cancelTimeout = 30 * time.Second

// forwardCancel cancels a task at its upstream, once.
func (r *Relay) forwardCancel(ctx context.Context, t task) {
	first := false
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE relayed_tasks SET cancelled = 0 WHERE id = $1 AND cancelled = 1`, t.id)
		first = n > 0
		return err
	})
	if err == nil && first {
		within, cancel := context.WithTimeout(t.as(ctx), cancelTimeout)
		err = r.upstreams.CancelTask(within, t.space, t.remote)
		cancel()
		if err != nil && ctx.Err() != nil {
			err = r.leaveCancel(ctx, t.id)
		}
		r.mu.Lock()
		if end := r.following[t.id]; end != nil {
			end(errCancelled)
		}
		r.mu.Unlock()
	}
	if err != nil {
		r.options.Log.DebugContext(ctx, "task not cancelled at its upstream", "task", t.id, "error", err)
	}
}

// leaveCancel has the next process cancel a task at its upstream: this one stopped before it
// was done.
func (r *Relay) leaveCancel(ctx context.Context, id string) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	return r.db.Exec(late, `UPDATE relayed_tasks SET cancelled = 1 WHERE id = $1`, id)
}

// Owners returns the nodes that follow tasks.
func (r *Relay) Owners(ctx context.Context) (nodes []string, err error) {
	return db.Find(ctx, r.db, scanText, `SELECT DISTINCT node FROM relayed_tasks WHERE `+unfinished)
}

// TakeOver follows the tasks of nodes that are gone.
func (r *Relay) TakeOver(ctx context.Context, gone []string) error {
	for _, node := range gone {
		var ids []string
		err := r.db.Write(ctx, func(tx *db.Tx) (err error) {
			ids, err = db.All(ctx, tx, scanText, `UPDATE relayed_tasks SET node = $2, questions = '{}' WHERE node = $1 AND `+unfinished+` RETURNING id`, node, r.options.Node)
			return err
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			r.follow(id)
			r.mu.Lock()
			r.note(id)
			r.mu.Unlock()
		}
	}
	return nil
}

// Recheck stops following tasks that other nodes have taken over.
func (r *Relay) Recheck(ctx context.Context) error {
	var mine []string
	mine, err := db.Find(ctx, r.db, scanText, `SELECT id FROM relayed_tasks WHERE node = $1 AND `+unfinished, r.options.Node)
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, id := range mine {
		own[id] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, end := range r.following {
		if !own[id] {
			end(errTakenOver)
		}
	}
	return nil
}

// AnswerTask passes answers by the keys of the questions. It ignores other keys.
func (r *Relay) AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	if _, err := r.visible(ctx, id); err != nil {
		return err
	}
	return r.update(ctx, id, func(t *task) error {
		for key, answer := range answers {
			if _, open := t.questions[key]; open && rawjson.IsObject(answer) {
				delete(t.questions, key)
				t.answers[key] = answer
			}
		}
		return nil
	})
}

// ask stores questions of an upstream with its task and waits for the answers.
func (r *Relay) ask(ctx context.Context, id string, questions []tool.Question) ([]json.RawMessage, error) {
	var keys []string
	err := r.updateOwn(ctx, id, func(t *task) error {
		keys = t.addQuestions(questions)
		return nil
	})
	if err != nil {
		return nil, err
	}
	now, err := r.await(ctx, func(ctx context.Context) (task, error) { return r.load(ctx, id) },
		func(t *task) bool { return t.state.Final() || t.hasAnswers(keys) }, id)
	if err == nil && now.state.Final() {
		return nil, errEnded
	}
	replies := make([]json.RawMessage, len(keys))
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	taken := r.updateOwn(late, id, func(t *task) error {
		for i, key := range keys {
			replies[i] = t.answers[key]
			delete(t.answers, key)
			delete(t.questions, key) // the upstream may have withdrawn it
		}
		return nil
	})
	if err == nil {
		err = taken
	}
	return replies, err
}

// errEnded is why a question of a task is not answered.
var errEnded = fault.New(fault.Cancelled, "the task has ended")

// withdrawTimeout limits how long removing questions, or leaving work to the next process,
// may take.
const withdrawTimeout = 5 * time.Second

// addQuestions adds questions and returns their keys. A question without a key gets one
// that the task has never had, because clients may ignore a key they have answered.
func (t *task) addQuestions(questions []tool.Question) (keys []string) {
	for _, q := range questions {
		key := q.Key
		if t.asked++; key == "" {
			kind, _, _ := strings.Cut(q.Method, "/")
			key = kind + "-" + strconv.FormatInt(t.asked, 10)
		}
		keys = append(keys, key)
		if _, answered := t.answers[key]; answered {
			continue // before the node that asked has ended
		}
		params := q.Params
		if !rawjson.IsObject(params) {
			params = json.RawMessage("{}")
		}
		t.questions[key] = rawjson.Set(rawjson.SetText(nil, "method", q.Method), "params", params)
	}
	return keys
}

func (t *task) hasAnswers(keys []string) bool {
	for _, key := range keys {
		if _, found := t.answers[key]; !found {
			return false
		}
	}
	return true
}
