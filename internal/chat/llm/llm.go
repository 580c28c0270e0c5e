// Package llm speaks to language models. A Model is asked with a Prompt and
// answers in blocks: text, and tools it wants used. Behind the one interface stand
// Anthropic's API through its official SDK, and any endpoint that speaks OpenAI's
// chat completions, local ones included. Text is handed on as it arrives; tries
// are repeated where that can help and nothing was handed on yet; tokens and what
// they cost are counted.
package llm

import (
	"context"
	"encoding/json"
)

// Model is a language model at some provider. It is safe for concurrent use.
type Model interface {
	// Answer asks the model. Text is given to emit as it arrives, by the calling
	// goroutine; emit may be nil. An answer that broke off is an error, never a
	// short answer. Errors are *fault.Error: unavailable, timeout, needs_auth,
	// limit_exceeded, invalid_params, upstream_error or cancelled.
	Answer(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error)

	// About tells which model it is, for logs, spans and people.
	About() About
}

// About names a model.
type About struct {
	Provider string // "anthropic" or "openai"
	Model    string
}

// Prompt is everything a model is told.
type Prompt struct {
	// System is what stays the same from turn to turn; providers that can, cache it
	// together with the tools. Context follows it and may change every time.
	System   string
	Context  string
	Tools    []Tool // in a stable order, for the same reason
	Messages []Message
}

// Tool is a tool the model may ask for.
type Tool struct {
	Name        string // at most 64 of [A-Za-z0-9_-]
	Description string
	Input       json.RawMessage // JSON Schema of an object
}

// Role is who speaks.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is what one side said. Results of tools are said by the user.
type Message struct {
	Role   Role
	Blocks []Block
}

// Block is one piece of a message; exactly one field is set.
type Block struct {
	Text   string
	Use    *Use
	Result *Result
	Raw    json.RawMessage // of the provider's own making, to be handed back as it came
}

// Use is the model's wish to use a tool.
type Use struct {
	ID    string
	Name  string
	Input json.RawMessage // as the model wrote it; {} when it wrote nothing
}

// Result is what a tool answered.
type Result struct {
	ID     string // the Use's
	Text   string
	Failed bool
}

// Delta is a piece of an answer that has just arrived. Exactly one field is set.
type Delta struct {
	Text string
	Use  string // the name of a tool the model has begun to ask for
	Wait *Wait  // the provider was busy and is asked again
}

// Stop is why an answer ended.
type Stop string

// Reasons to stop. Others are passed on as the provider words them.
const (
	StopEnd     Stop = "end_turn"
	StopTools   Stop = "tool_use"
	StopLength  Stop = "max_tokens"
	StopRefusal Stop = "refusal"
	StopPause   Stop = "pause_turn" // to be asked again with what it said so far
)

// Answer is what a model said, whole.
type Answer struct {
	ID       string // the provider's
	Model    string // that really answered
	Blocks   []Block
	Stop     Stop
	Usage    Usage
	Attempts int // 1 when the first try succeeded
}

// Text joins the text of an answer.
func (a Answer) Text() string {
	var text string
	for _, b := range a.Blocks {
		text += b.Text
	}
	return text
}

// Uses lists the tools an answer asks for.
func (a Answer) Uses() []Use {
	var uses []Use
	for _, b := range a.Blocks {
		if b.Use != nil {
			uses = append(uses, *b.Use)
		}
	}
	return uses
}
