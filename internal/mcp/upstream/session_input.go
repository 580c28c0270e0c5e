package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// capabilityOf is the client capability that a question of the server requires.
func capabilityOf(method string) string {
	switch method {
	case wire.MethodElicit:
		return "elicitation"
	case wire.MethodSample:
		return "sampling"
	case wire.MethodRoots:
		return "roots"
	}
	return ""
}

// canAnswer reports whether the caller can be asked that. A caller that declares
// no capabilities but has Ask, such as a script, can be asked everything.
func canAnswer(c *tool.Caller, method string) bool {
	if c == nil || c.Ask == nil {
		return false
	}
	if c.Capabilities == nil {
		return true
	}
	value, ok := rawjson.Get(c.Capabilities, capabilityOf(method))
	return ok && rawjson.IsObject(value)
}

// allCapabilities are those that we relay.
const allCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}`

var noneDeclared, allDeclared = json.RawMessage(`{}`), json.RawMessage(allCapabilities)

// declaredFor is what a modern request declares: the caller's capabilities as far as we
// relay them, tasks if it may start one or is about one, and roots if the configuration has some.
func (s *session) declaredFor(r *request) json.RawMessage {
	c := r.caller
	declared := capabilitiesOf(c)
	if r.task {
		declared = rawjson.Set(declared, "extensions", json.RawMessage(`{"`+wire.ExtensionTasks+`":{}}`))
	}
	if s.source == nil || canAnswer(c, wire.MethodRoots) || s.source.configuredRoots() == nil {
		return declared
	}
	return rawjson.Set(declared, "roots", json.RawMessage(`{}`))
}

func capabilitiesOf(c *tool.Caller) json.RawMessage {
	switch {
	case c == nil || c.Ask == nil:
		return noneDeclared
	case c.Capabilities == nil:
		return allDeclared
	}
	return rawjson.DeleteFunc(c.Capabilities, func(key []byte) bool {
		return string(key) != "elicitation" && string(key) != "sampling" && string(key) != "roots"
	})
}

// errCallOver is why a question is no longer answered.
var errCallOver = errors.New("the call that the question belongs to is over")

// askCaller asks the caller of a request. Meanwhile its timeout is paused.
func askCaller(ctx context.Context, caller *tool.Caller, timeout *callTimeout, questions []tool.Question) ([]json.RawMessage, error) {
	timeout.pause()
	defer timeout.extend()
	replies, err := caller.Ask(ctx, questions)
	if err != nil {
		return nil, fmt.Errorf("ask the caller: %w", err)
	}
	if len(replies) != len(questions) {
		return nil, fmt.Errorf("ask the caller: %d answers to %d questions", len(replies), len(questions))
	}
	return replies, nil
}

// provideInput answers a modern result that asks for input: it returns the params
// of the retry. A server that asks no question wants the request again later.
func (s *session) provideInput(ctx context.Context, timeout *callTimeout, r *request, result json.RawMessage) (json.RawMessage, error) {
	questions, err := inputRequests(result)
	if err != nil {
		return nil, err
	}
	params := r.params
	if state, ok := rawjson.Get(result, "requestState"); ok {
		params = rawjson.Set(params, "requestState", state)
	}
	if len(questions) == 0 {
		return params, clock.Real().Sleep(ctx, backoff.Policy{First: 250 * time.Millisecond}.Delay(1))
	}
	responses, err := s.answerAll(ctx, timeout, r.caller, questions)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(params, "inputResponses", responses), nil
}

// answerAll asks the caller what it can answer. Roots that it does not have are those of
// the configuration.
func (s *session) answerAll(ctx context.Context, timeout *callTimeout, caller *tool.Caller, questions []tool.Question) (json.RawMessage, error) {
	responses := json.RawMessage(`{}`)
	open := questions[:0]
	for _, q := range questions {
		switch {
		case canAnswer(caller, q.Method):
			open = append(open, q)
		case q.Method == wire.MethodRoots && s.source != nil && s.source.configuredRoots() != nil:
			responses = rawjson.Set(responses, q.Key, s.source.configuredRoots())
		default:
			return nil, fmt.Errorf("server needs %s, which the caller does not support", q.Method)
		}
	}
	if len(open) == 0 {
		return responses, nil
	}
	replies, err := askCaller(ctx, caller, timeout, open)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	for i, q := range open {
		responses = rawjson.Set(responses, q.Key, replies[i])
	}
	return responses, nil
}

// maxQuestions is how many questions a server may ask at once.
const maxQuestions = 64

// inputRequests reads the questions of a result in their order.
func inputRequests(result json.RawMessage) ([]tool.Question, error) {
	raw, ok := rawjson.Get(result, "inputRequests")
	if !ok {
		return nil, nil
	}
	if !rawjson.IsObject(raw) {
		return nil, errors.New("inputRequests of the result is not an object")
	}
	var questions []tool.Question
	rawjson.Each(raw, func(key string, value json.RawMessage) bool {
		q := tool.Question{Key: key}
		q.Method, _ = rawjson.GetText(value, "method")
		q.Params, _ = rawjson.Get(value, "params")
		questions = append(questions, q)
		return len(questions) <= maxQuestions
	})
	if len(questions) > maxQuestions {
		return nil, fmt.Errorf("server asks more than %d questions at once", maxQuestions)
	}
	return questions, nil
}
