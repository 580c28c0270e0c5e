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

// capabilityOf is the client capability a question of the server needs.
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

// canAnswer tells whether a caller can be asked that. One that declares nothing
// but has a way to be asked, as a script has, can be asked everything.
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

// allCapabilities is what we relay.
const allCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

var noneDeclared, allDeclared = json.RawMessage(`{}`), json.RawMessage(allCapabilities)

// capabilitiesOf is what a modern request declares: what its caller can do of
// what we relay.
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

// errCallOver is why nobody answers a question any more.
var errCallOver = errors.New("the call it belongs to is over")

// ask asks the caller of a request. The request's patience rests while the caller
// thinks; asking ends with the request.
//
//nolint:contextcheck // f.clock is the request's: its end ends the asking as well
func (f *flight) ask(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(f.clock, func() { cancel(context.Cause(f.clock)) })
	defer stop()
	f.clock.pause()
	defer f.clock.resume()
	replies, err := f.caller.Ask(ctx, questions)
	if f.clock.Err() != nil {
		return nil, fmt.Errorf("%w: %w", errCallOver, context.Cause(f.clock))
	}
	if err != nil {
		return nil, fmt.Errorf("ask the caller: %w", err)
	}
	if len(replies) != len(questions) {
		return nil, fmt.Errorf("ask the caller: %d answers to %d questions", len(replies), len(questions))
	}
	return replies, nil
}

// provideInput answers a modern result that asks for input: it returns the params of
// the retry. A server that asks for nothing only wants us to come again later.
func (s *session) provideInput(ctx *patience, r *request, result json.RawMessage) (json.RawMessage, error) {
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
	for _, q := range questions {
		if !canAnswer(r.caller, q.Method) {
			return nil, fmt.Errorf("server needs %s of the caller, which cannot give it", q.Method)
		}
	}
	replies, err := (&flight{draft: draft{request: r}, clock: ctx}).ask(ctx, questions)
	if err != nil {
		return nil, err
	}
	responses := json.RawMessage(`{}`)
	for i, q := range questions {
		responses = rawjson.Set(responses, q.Key, replies[i])
	}
	return rawjson.Set(params, "inputResponses", responses), nil
}

// maxQuestions is how much a server may want to know at once.
const maxQuestions = 64

// inputRequests reads the questions of a result in their order.
func inputRequests(result json.RawMessage) ([]tool.Question, error) {
	raw, ok := rawjson.Get(result, "inputRequests")
	if !ok {
		return nil, nil
	}
	if !rawjson.IsObject(raw) {
		return nil, errors.New("server asks for input in a way nobody understands")
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
		return nil, errors.New("server asks too many questions at once")
	}
	return questions, nil
}
