// Package llm is a client of language models. A Model gets a Prompt and answers in
// blocks: text and tool calls. There are two implementations: Anthropic's Messages API, and
// any endpoint with OpenAI's chat completions API, including local ones. Text is passed on as it arrives; failed attempts are repeated if that can help
// and no text was passed on yet; tokens and their cost are counted.
package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
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

// storedUse is a Use in JSON. Its arguments are text: the model may have written invalid JSON.
type storedUse struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`
}

// MarshalJSON writes a storedUse.
func (u Use) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedUse{u.ID, u.Name, string(u.Input)})
}

// UnmarshalJSON reads a storedUse.
func (u *Use) UnmarshalJSON(text []byte) error {
	var s storedUse
	err := json.Unmarshal(text, &s)
	*u = Use{s.ID, s.Name, json.RawMessage(s.Input)}
	return err
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

// Options select and configure a model.
type Options struct {
	// Provider is the API of the endpoint: "anthropic" (default) or "openai".
	Provider string
	// Model is the provider's name for it; empty means DefaultModel at Anthropic.
	Model string
	// BaseURL replaces the provider's own endpoint, such as with that of a local model:
	// http://127.0.0.1:11434/v1.
	BaseURL string
	// Key is sent to the endpoint; local ones need none.
	Key secret.Text
	// Token is sent to Anthropic's API as a bearer token, beside the key if there are
	// both: proxies and gateways in front of it want one.
	Token secret.Text
	// MaxTokens limits one answer; zero means DefaultMaxTokens.
	MaxTokens int
	// Temperature is chosen by the provider if nil. Some models do not accept it.
	Temperature *float64
	// Media are the kinds of images, sounds and files that the model takes; nil means what
	// the models of the provider usually take.
	Media []Kind
	// Prices override and extend the known ones, by prefix of a model's name.
	Prices map[string]Price
	// Retry configures retries; zero fields mean the defaults.
	Retry Retry
	// IdleTimeout limits how long an endpoint may send nothing; zero means 90 s.
	IdleTimeout time.Duration
	// Transport makes the requests; nil means the default.
	Transport http.RoundTripper
}

// Defaults of Options.
const (
	DefaultModel     = "claude-sonnet-5-5"
	DefaultMaxTokens = 8192
	defaultSilence   = 90 * time.Second
)

// provider makes one attempt. Its error is a *failure where possible.
type provider interface {
	try(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error)
}

// Open makes a model. It makes no request, so a wrong key is only noticed by the first
// one.
func Open(o Options) (Model, error) {
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = defaultSilence
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	m := &retrying{retry: o.Retry.filled(), prices: o.Prices}
	client := &http.Client{Transport: &idleTransport{base: o.Transport, timeout: o.IdleTimeout}, CheckRedirect: stay}
	switch o.Provider {
	case "", "anthropic":
		if o.Model == "" {
			o.Model = DefaultModel
		}
		m.about, m.provider = aboutOf("anthropic", o), newAnthropic(o, client)
	case "openai":
		m.about, m.provider = aboutOf("openai", o), newOpenAI(o, client)
	}
	return m, nil
}

func aboutOf(provider string, o Options) About {
	kinds := []string{string(Plain)}
	for _, k := range takes(o) {
		kinds = append(kinds, string(k))
	}
	return About{Provider: provider, Model: o.Model, media: strings.Join(kinds, ",")}
}

// stay refuses redirects to another host, which would receive the key and the
// conversation.
func stay(next *http.Request, via []*http.Request) error {
	from, to := via[0].URL, next.URL
	if len(via) <= maxRedirects && to.Host == from.Host && (to.Scheme == from.Scheme || to.Scheme == "https") {
		return nil
	}
	return fault.New(fault.Config, "the model's endpoint redirects to %s://%s", to.Scheme, to.Host)
}

const maxRedirects = 3

func (o Options) check() error {
	switch o.Provider {
	case "", "anthropic":
		if o.Key.IsZero() && o.Token.IsZero() && o.BaseURL == "" {
			return fault.New(fault.Config, "no key for Anthropic's API").
				WithHint("set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or use another model with [chat] provider and base_url")
		}
	case "openai":
		if o.Model == "" {
			return fault.New(fault.Config, "chat.model: an OpenAI-compatible endpoint needs the name of a model").
				WithHint("set [chat] model to one the endpoint has")
		}
		if o.Key.IsZero() && o.BaseURL == "" {
			return fault.New(fault.Config, "no key for OpenAI's API").
				WithHint("set OPENAI_API_KEY, or [chat] base_url for an endpoint that needs none")
		}
	default:
		return fault.New(fault.Config, "chat.provider: %q is not a provider", o.Provider).
			WithHint("use anthropic, or openai for any endpoint that speaks OpenAI's chat completions")
	}
	if o.BaseURL != "" && !isHTTP(o.BaseURL) {
		return fault.New(fault.Config, "chat.base_url: %q is not an http(s) address", o.BaseURL).
			WithHint("for example http://127.0.0.1:11434/v1")
	}
	return nil
}

func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && strings.HasPrefix(u.Scheme, "http")
}

// Usage is the usage of answers. Input excludes tokens read from or written to the
// provider's cache.
type Usage struct {
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_input_tokens"`
	CacheWrite int64   `json:"cache_creation_input_tokens"`
	Cost       float64 `json:"cost_usd"` // by the price table; 0 for a model of unknown price
}

// Add adds the usage of another answer.
func (u *Usage) Add(o Usage) {
	u.Input += o.Input
	u.Output += o.Output
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.Cost += o.Cost
}

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Without returns u without what is part of it.
func (u Usage) Without(part Usage) Usage {
	return Usage{
		Input: u.Input - part.Input, Output: u.Output - part.Output,
		CacheRead: u.CacheRead - part.CacheRead, CacheWrite: u.CacheWrite - part.CacheWrite, Cost: u.Cost - part.Cost,
	}
}

// Price is the price of a million tokens, in US dollars.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
}

// knownPrices are list prices, by prefix of a model's name.
var knownPrices = map[string]Price{
	"claude-fable-5-1":  {10, 50, 0.25, 12.5},
	"claude-fable":      {10, 50, 1, 12.5},
	"claude-mythos-5-1": {10, 50, 0.25, 12.5},
	"claude-mythos":     {10, 50, 1, 12.5},
	"claude-opus-5-5":   {4, 20, 0.2, 5},
	"claude-opus":       {5, 25, 0.5, 6.25},
	"claude-sonnet-5-5": {2, 10, 0.1, 2.5},
	"claude-sonnet-5":   {2, 10, 0.2, 2.5},
	"claude-sonnet":     {3, 15, 0.3, 3.75},
	"claude-haiku-5-5":  {0.1, 0.5, 0.01, 0.125},
	"claude-haiku":      {1, 5, 0.1, 1.25},
	"gpt-4.1":           {2, 8, 0.5, 0},
	"gpt-4.1-mini":      {0.4, 1.6, 0.1, 0},
	"gpt-4.1-nano":      {0.1, 0.4, 0.025, 0},
	"gpt-4o":            {2.5, 10, 1.25, 0},
	"gpt-4o-mini":       {0.15, 0.6, 0.075, 0},
	"gpt-5":             {1.25, 10, 0.125, 0},
	"gpt-5-mini":        {0.25, 2, 0.025, 0},
	"gpt-5-nano":        {0.05, 0.4, 0.005, 0},
	"gpt-5-pro":         {15, 120, 15, 0},
	"gpt-5.1":           {1.25, 10, 0.125, 0},
	"o3":                {2, 8, 0.5, 0},
	"o3-mini":           {1.1, 4.4, 0.55, 0},
	"o4-mini":           {1.1, 4.4, 0.275, 0},
}

// prices are the prices that were set, by prefix of a model's name.
type prices map[string]Price

// IsPriced reports whether the price of a model is known, from the list or from own ones.
func IsPriced(model string, own map[string]Price) bool {
	_, known := prices(own).of(model)
	return known
}

// of returns the price of a model: of those that were set, else of the known ones, that with
// the longest prefix. A known price is not that of a later version: gpt-5 is not gpt-5.9.
func (p prices) of(model string) (price Price, known bool) {
	if price, known = longestPrefix(p, model, func(string) bool { return true }); known {
		return price, true
	}
	return longestPrefix(knownPrices, model, func(rest string) bool { return !strings.HasPrefix(rest, ".") })
}

// longestPrefix returns the price of the longest prefix of a model's name; fits decides about
// what comes after the prefix.
func longestPrefix(list map[string]Price, model string, fits func(rest string) bool) (price Price, known bool) {
	longest := -1
	for prefix := range list {
		if rest, begins := strings.CutPrefix(model, prefix); begins && fits(rest) && len(prefix) > longest {
			longest, price, known = len(prefix), list[prefix], true
		}
	}
	return price, known
}

// cost returns the cost of usage with a model; 0 if its price is not known.
func (p prices) cost(model string, u Usage) float64 {
	price, _ := p.of(model)
	return (float64(u.Input)*price.Input + float64(u.Output)*price.Output +
		float64(u.CacheRead)*price.CacheRead + float64(u.CacheWrite)*price.CacheWrite) / 1e6
}
