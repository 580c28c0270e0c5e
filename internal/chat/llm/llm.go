// Package llm is a client of language models. A Model gets a Prompt and answers in
// blocks: text and tool calls. There are two implementations: Anthropic's Messages API, and
// any endpoint with OpenAI's chat completions API, including local ones. Text is passed on as it arrives; failed attempts are repeated if that can help
// and no text was passed on yet; tokens and their cost are counted.
package llm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// Model is a language model at some provider. It is safe for concurrent use.
type Model interface {
	// Answer asks the model. Text is passed to emit as it arrives, by the calling
	// goroutine; emit may be nil. An incomplete answer is an error. Errors are
	// *fault.Error: unavailable, timeout, needs_auth, limit_exceeded, invalid_params,
	// upstream_error or cancelled.
	Answer(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error)

	// About identifies the model, for logs, spans and people.
	About() About
}

// About identifies a model.
type About struct {
	Provider string // "anthropic" or "openai"
	Model    string
	media    string // kinds that it takes, joined by commas
}

// Takes reports whether the model takes images, sounds or files of a kind.
func (a About) Takes(k Kind) bool {
	return k != Other && slices.Contains(strings.Split(a.media, ","), string(k))
}

// Prompt is everything that is sent to a model.
type Prompt struct {
	// System does not change from turn to turn; providers that can cache it do so,
	// together with the tools. Context follows it and may change every time.
	System   string
	Context  string
	Tools    []Tool // in a stable order, for the cache
	Messages []Message
	Choice   Choice
	// MaxTokens limits this answer; zero, or more than the model's limit, means that.
	MaxTokens int
}

// Choice says whether the model must call a tool. The zero value leaves it to the model.
type Choice struct {
	Required bool
	Name     string // the one to call; empty means any
}

// limit returns the limit of this answer, given that of the model.
func (p Prompt) limit(most int) int {
	if p.MaxTokens > 0 && p.MaxTokens < most {
		return p.MaxTokens
	}
	return most
}

// Tool is a tool the model may call.
type Tool struct {
	Name        string // at most 64 of [A-Za-z0-9_-]
	Description string
	Input       json.RawMessage // JSON Schema of an object
}

// Role is the author of a message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is a message of one side. Tool results are sent as the user.
type Message struct {
	Role   Role
	Blocks []Block
}

// Block is one piece of a message; exactly one field is set.
type Block struct {
	Text   string          `json:"text,omitempty"`
	Media  *Media          `json:"media,omitempty"` // of the user
	Use    *Use            `json:"use,omitempty"`
	Result *Result         `json:"result,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"` // provider-specific content that is sent back unchanged
}

// Use is a tool call that the model asks for.
type Use struct {
	ID    string
	Name  string
	Input json.RawMessage // as the model wrote it; {} if empty
}

// Result is the result of a tool call.
type Result struct {
	ID     string // of the Use
	Text   string
	Media  []Media
	Failed bool
}

// Delta is a piece of an answer that has just arrived. Exactly one field is set.
type Delta struct {
	Text string
	Use  string // the name of a tool call that has begun
	Wait *Wait  // the provider is busy and will be asked again
}

// Stop is why an answer ended.
type Stop string

// Reasons to stop. Others are passed on as the provider names them.
const (
	StopEnd     Stop = "end_turn"
	StopTools   Stop = "tool_use"
	StopLength  Stop = "max_tokens"
	StopRefusal Stop = "refusal"
	StopPause   Stop = "pause_turn" // continue by asking again with the answer so far
)

// Answer is a complete answer of a model.
type Answer struct {
	ID       string // the provider's
	Model    string // that answered
	Blocks   []Block
	Stop     Stop
	Cut      string // the tool of a call that is left out, because the token limit cut off its arguments
	Usage    Usage
	Attempts int // 1 if the first attempt succeeded
	// WithoutMedia means that the endpoint refused the images, sounds and files, and
	// answered without them.
	WithoutMedia bool
}

// Text joins the text of an answer.
func (a Answer) Text() string {
	var text string
	for _, b := range a.Blocks {
		text += b.Text
	}
	return text
}

// Uses lists the tool calls of an answer.
func (a Answer) Uses() []Use {
	var uses []Use
	for _, b := range a.Blocks {
		if b.Use != nil {
			uses = append(uses, *b.Use)
		}
	}
	return uses
}
