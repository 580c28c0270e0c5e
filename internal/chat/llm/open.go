package llm

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

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
	m := &retrying{retry: o.Retry.filled(), prices: priceList(o.Prices)}
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
