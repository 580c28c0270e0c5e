package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
)

// openAIAnswer assembles an answer from its chunks.
type openAIAnswer struct {
	emit   func(Delta)
	id     string
	model  string
	text   []byte
	calls  []*openAICall // arguments collected as plain text
	finish string
	refuse bool // the model refused in its own words
	usage  Usage
}

// openAIChunk is one chunk; a complete answer has the same form with message in place of
// delta.
type openAIChunk struct {
	ID      string
	Model   string
	Choices []struct {
		Delta        openAIPiece
		Message      openAIPiece
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Cached int64 `json:"prompt_cache_hit_tokens"` // what some endpoints have in place of the details
	}
	Error json.RawMessage
}

type openAIPiece struct {
	Content   string
	Refusal   string
	ToolCalls []openAICall `json:"tool_calls"`
}

// readStream reads events until the answer is complete. Not all endpoints end with
// [DONE].
func (a *openAIAnswer) readStream(body io.Reader) error {
	events := sse.NewReader(body, 0)
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && a.finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return &failure{err: errBroken, again: true}
		case err != nil:
			return err
		case string(event.Data) == "[DONE]":
			if a.finish == "" {
				return &failure{err: errBroken, again: true}
			}
			return nil
		}
		if err := a.take(event.Data); err != nil {
			return err
		}
	}
}

// readWhole reads the answer of an endpoint that does not stream.
func (a *openAIAnswer) readWhole(body io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(body, sse.MaxEvent))
	if err != nil {
		return err
	}
	if err := a.take(raw); err != nil {
		return err
	}
	if a.finish == "" {
		return &failure{err: errBroken, again: true}
	}
	return nil
}

func (a *openAIAnswer) take(raw []byte) error {
	var c openAIChunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return &failure{err: fault.Wrap(fault.Upstream, err, "read answer"), again: true} // half an event
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		kind, text := errorIn(raw)
		return refusedBy(http.StatusOK, nil, kind, text)
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if u := c.Usage; u != nil {
		hit := min(max(u.Details.Cached, u.Cached), u.Prompt)
		a.usage = Usage{Input: u.Prompt - hit, Output: u.Completion, CacheRead: hit}
	}
	for _, choice := range c.Choices[:min(len(c.Choices), 1)] {
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		for _, piece := range []openAIPiece{choice.Delta, choice.Message} {
			if err := a.add(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *openAIAnswer) add(p openAIPiece) error {
	a.refuse = a.refuse || p.Refusal != ""
	for _, text := range []string{p.Content, p.Refusal} {
		if text != "" {
			a.text = append(a.text, text...)
			a.emit(Delta{Text: text})
		}
	}
	for _, piece := range p.ToolCalls {
		call := a.call(piece)
		if call == nil {
			return &failure{err: fault.New(fault.Upstream, "read answer: a chunk of a tool call has no call to belong to")}
		}
		if call.ID == "" {
			call.ID = piece.ID
		}
		if call.Function.Name == "" && piece.Function.Name != "" {
			call.Function.Name = piece.Function.Name
			a.emit(Delta{Use: call.Function.Name})
		}
		arguments := piece.Function.Arguments
		if text, ok := rawjson.Text(arguments); ok { // some send the object itself
			arguments = json.RawMessage(text)
		}
		call.Function.Arguments = append(call.Function.Arguments, arguments...)
	}
	return nil
}

// maxCalls limits the number of tool calls in an answer.
const maxCalls = 128

// call finds the tool call that a chunk belongs to: by its index, otherwise by its id;
// otherwise a chunk with a name begins a new one and others continue the last.
func (a *openAIAnswer) call(piece openAICall) *openAICall {
	if piece.Index != nil {
		return a.callAt(*piece.Index)
	}
	for _, c := range a.calls {
		if piece.ID != "" && c.ID == piece.ID {
			return c
		}
	}
	if piece.Function.Name != "" && len(a.calls) < maxCalls {
		a.calls = append(a.calls, &openAICall{})
		return a.calls[len(a.calls)-1]
	}
	if len(a.calls) == 0 {
		return nil
	}
	return a.calls[len(a.calls)-1]
}

func (a *openAIAnswer) callAt(index int) *openAICall {
	if index < 0 || index >= maxCalls {
		return nil
	}
	for len(a.calls) <= index {
		a.calls = append(a.calls, &openAICall{})
	}
	return a.calls[index]
}

// stops maps OpenAI's stop reasons to ours.
var stops = map[string]Stop{"stop": StopEnd, "tool_calls": StopTools, "function_call": StopTools, "length": StopLength, "content_filter": StopRefusal}

func (a *openAIAnswer) answer(model string) Answer {
	out := Answer{ID: a.id, Model: cmp.Or(a.model, model), Stop: Stop(a.finish), Usage: a.usage}
	if stop, known := stops[a.finish]; known {
		out.Stop = stop
	}
	if a.refuse {
		out.Stop = StopRefusal
	}
	if len(a.text) > 0 {
		out.Blocks = append(out.Blocks, Block{Text: string(a.text)})
	}
	for i, c := range a.calls {
		if c.Function.Name == "" {
			continue
		}
		if out.Stop == StopLength && i == len(a.calls)-1 {
			out.Cut = c.Function.Name
			continue
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i)
		}
		out.Blocks = append(out.Blocks, Block{Use: &Use{c.ID, c.Function.Name, objectOf(c.Function.Arguments)}})
		if out.Stop == StopEnd { // some endpoints send stop with tool calls
			out.Stop = StopTools
		}
	}
	return out
}
