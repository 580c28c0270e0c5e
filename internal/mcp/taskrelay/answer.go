package taskrelay

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

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
