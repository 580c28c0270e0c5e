package config

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/spending"
)

// Chat configures the agent that answers chats, and its model.
type Chat struct {
	Provider    string               `toml:"provider" live:"yes" words:"|anthropic|openai" help:"API of the model's endpoint: anthropic, or openai for every endpoint with OpenAI's chat completions API"`
	Model       string               `toml:"model" live:"yes" help:"name of the model; empty means claude-sonnet-5-5 at anthropic"`
	Models      []string             `toml:"models" live:"yes" help:"names of other models at the same endpoint that people can choose for a message, in the page or with model"`
	BaseURL     string               `toml:"base_url" live:"yes" trust:"needed" secret:"url" help:"URL of the endpoint, such as http://127.0.0.1:11434/v1 for a local model; empty means ANTHROPIC_BASE_URL or OPENAI_BASE_URL, or the provider's own"`
	KeyEnv      string               `toml:"key_env" live:"yes" trust:"needed" help:"variable that holds the key; empty means ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY"`
	Key         string               `toml:"key" live:"yes" trust:"needed" secret:"all" help:"the key, best as a reference: ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}; takes precedence over key_env"`
	MaxTokens   int                  `toml:"max_tokens" min:"1" help:"maximum length of one answer of the model, in tokens"`
	Temperature float64              `toml:"temperature" help:"0 to 1 (2 with openai); a negative value uses the model's default, which newer models require"`
	Offer       string               `toml:"offer" words:"auto|direct|code" help:"how upstream tools are offered to the model: direct, code (found by search, called from code), or auto: direct for upstreams with few tools"`
	DirectTools int                  `toml:"direct_tools" help:"with auto, how many upstream tools are offered directly; upstreams are added one by one as long as all their tools fit"`
	Menu        string               `toml:"menu" words:"menus" help:"which of our own tools the model is shown: code, standard or full, as mcp.menu for clients; the others of a chat are found by search"`
	Tools       []string             `toml:"tools" help:"which of our own tools the model is shown, in place of menu"`
	Iterations  int                  `toml:"iterations" min:"1" alias:"MAX_ORCHESTRATION_ITERATIONS" help:"maximum requests to the model for one message"`
	Calls       int                  `toml:"calls" min:"1" help:"maximum tool calls for one message, including those of scripts"`
	ResultKB    int                  `toml:"result_kb" min:"1" help:"how much of one tool result is sent to the model, in KiB"`
	PromptKB    int                  `toml:"prompt_kb" min:"1" help:"how much of a conversation is sent to the model, in KB"`
	ToolTimeout Duration             `toml:"tool_timeout" min:"1ms" help:"timeout of one tool call"`
	QueueDepth  int                  `toml:"queue_depth" min:"1" help:"how many messages of one user may wait; further ones are refused with 429"`
	Parallel    int                  `toml:"parallel" min:"1" help:"how many messages of different users are answered at the same time"`
	Rate        int                  `toml:"rate" min:"1" help:"how many messages one user may send per minute, to each node"`
	DebugEvents bool                 `toml:"debug_events" alias:"SSE_DEBUG_EVENTS" help:"include the arguments and results of tools in event streams"`
	LogContent  bool                 `toml:"log_content" help:"include messages, arguments and results in logs and traces"`
	Callback    string               `toml:"callback_token" trust:"needed" secret:"all" alias:"CALLBACK_TOKEN" help:"bearer token sent to the callbacks of callback_origins, best as a reference"`
	Signing     string               `toml:"callback_secret" trust:"needed" secret:"all" help:"secret by which webhooks to callbacks are signed (Standard Webhooks), whsec_ and base64, as a reference such as ${env:NAME}"`
	Receivers   []string             `toml:"callback_origins" trust:"needed" help:"origins of the callbacks that get callback_token, such as https://gateway.example; callbacks to other addresses get no token"`
	Media       []string             `toml:"media" words:"image|file|audio" help:"what the model takes beside text: image, file (PDF) and audio; empty means image and file, and audio for models with audio in their name"`
	Attachments int                  `toml:"attachments" min:"1" help:"how many images, sounds and files of one user's conversations are stored; attachments beyond it are refused"`
	AttachedMB  int                  `toml:"attachments_mb" min:"1" help:"how large they may be together, in MB"`
	HearURL     string               `toml:"transcription_url" format:"http" trust:"needed" secret:"url" help:"URL of an endpoint with OpenAI's transcription API, such as http://127.0.0.1:8000/v1; without one voice messages are refused"`
	HearModel   string               `toml:"transcription_model" help:"model that transcribes; empty means whisper-1"`
	HearKeyEnv  string               `toml:"transcription_key_env" trust:"needed" help:"variable that holds the key of that endpoint; empty sends none"`
	Prompts     map[string]string    `toml:"prompts"`
	Budget      spending.Budgets     `toml:"budget"`
	Prices      map[string]llm.Price `toml:"prices"`
}

func chatDefaults() Chat {
	return Chat{
		Provider: "anthropic", MaxTokens: llm.DefaultMaxTokens, Temperature: -1,
		Offer: string(agent.Auto), DirectTools: 20,
		Menu:       builtin.MenuCode,
		Iterations: 10, Calls: 100, ResultKB: 32, PromptKB: 200, ToolTimeout: Duration(2 * time.Minute),
		QueueDepth: 50, Parallel: 64, Rate: 300, Attachments: 1000, AttachedMB: 500,
	}
}

// check refuses invalid settings at the start, before a message fails because of them.
func (c *Chat) check() error {
	for _, name := range append([]string{c.Model}, c.Models...) {
		if err := c.Budget.Check(llm.IsPriced(cmp.Or(name, llm.DefaultModel), c.Prices)); err != nil {
			return err
		}
	}
	if err := c.PromptTexts().Check(); err != nil {
		return fault.Wrap(fault.Config, err, "chat.prompts").WithHint("%s", fault.HintOf(err))
	}
	return c.checkReceivers()
}

func (c *Chat) checkReceivers() error {
	for _, origin := range c.Receivers {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return fault.New(fault.Config, "chat.callback_origins: %q is not an origin", origin).
				WithHint("write the scheme and the host, such as https://gateway.example or http://gateway:8080, without a path")
		}
	}
	return nil
}

func (c *Chat) PromptTexts() agent.Prompts {
	prompts := agent.Prompts{}
	for slot, text := range c.Prompts {
		prompts[agent.Slot(slot)] = text
	}
	return prompts
}

// OwnTools returns our own tools that the model is shown.
func (c *Chat) OwnTools() []string {
	if len(c.Tools) > 0 {
		return c.Tools
	}
	return builtin.ChatMenu(c.Menu)
}

// OpenModels returns clients of the configured model and of those that people can choose
// instead.
func (c *Chat) OpenModels(env Environment, secrets secret.Finder) (usual llm.Model, others []llm.Model, err error) {
	if usual, err = c.openModel(c.Model, env, secrets); err != nil {
		return nil, nil, err
	}
	for _, name := range c.Models {
		if name == usual.About().Model {
			continue
		}
		other, err := c.openModel(name, env, secrets)
		if err != nil {
			return nil, nil, err
		}
		others = append(others, other)
	}
	return usual, others, nil
}

// SameModel reports whether two configurations have the same model.
func (c *Chat) SameModel(other *Chat) bool {
	return c.Provider == other.Provider && c.Model == other.Model && slices.Equal(c.Models, other.Models) &&
		c.BaseURL == other.BaseURL && c.KeyEnv == other.KeyEnv && c.Key == other.Key
}

// openModel returns a client of a model at the configured endpoint.
func (c *Chat) openModel(name string, env Environment, secrets secret.Finder) (llm.Model, error) {
	options := llm.Options{
		Provider: c.Provider, Model: name, BaseURL: c.BaseURL, MaxTokens: c.MaxTokens, Prices: c.Prices,
	}
	for _, kind := range c.Media {
		options.Media = append(options.Media, llm.Kind(kind))
	}
	if c.Temperature >= 0 {
		options.Temperature = &c.Temperature
	}
	if c.Key != "" {
		var err error
		if options.Key, err = secrets.Find(c.Key); err != nil {
			return nil, fault.Wrap(fault.Config, err, "chat.key").WithHint("%s", fault.HintOf(err))
		}
		return llm.Open(options)
	}
	variable := cmp.Or(c.KeyEnv, c.variables().key)
	if c.KeyEnv != "" && env[variable] == "" {
		return nil, fault.New(fault.Config, "chat.key_env: the variable %s is not set", variable).WithHint("set it, or omit key_env")
	}
	options.Key = secret.New(env[variable])
	if token := c.variables().token; token != "" && c.KeyEnv == "" {
		options.Token = secret.New(env[token])
	}
	return llm.Open(options)
}

// OpenTranscriber returns a client of the endpoint that transcribes voice messages, or nil.
func (c *Chat) OpenTranscriber(env Environment) (*llm.Transcriber, error) {
	if c.HearURL == "" {
		return nil, nil
	}
	if c.HearKeyEnv != "" && env[c.HearKeyEnv] == "" {
		return nil, fault.New(fault.Config, "chat.transcription_key_env: the variable %s is not set", c.HearKeyEnv).WithHint("set it, or omit transcription_key_env")
	}
	return llm.OpenTranscriber(llm.TranscriberOptions{BaseURL: c.HearURL, Model: c.HearModel, Key: secret.New(env[c.HearKeyEnv])})
}

// modelVariables are the variables that a provider's own programs read.
type modelVariables struct{ key, token, baseURL string }

func (c *Chat) variables() modelVariables {
	if c.Provider == "openai" {
		return modelVariables{key: "OPENAI_API_KEY", baseURL: "OPENAI_BASE_URL"}
	}
	return modelVariables{key: "ANTHROPIC_API_KEY", token: "ANTHROPIC_AUTH_TOKEN", baseURL: "ANTHROPIC_BASE_URL"}
}

// readModelVariables reads what is not configured from the variables of the provider, and
// records for Show which ones are used.
func (l *Loaded) readModelVariables(env Environment) {
	c, names := &l.Chat, l.Chat.variables()
	if c.BaseURL == "" && env[names.baseURL] != "" {
		c.BaseURL = env[names.baseURL]
		l.Origins["chat.base_url"] = "environment " + names.baseURL
	}
	if c.Key != "" {
		return
	}
	for _, name := range []string{names.token, names.key, c.KeyEnv} {
		if env[name] != "" {
			l.Origins["chat.key"] = "environment " + name
		}
	}
}

// Search configures how tools are found.
type Search struct {
	Learn bool `toml:"learn" help:"learn from the tools that a caller calls after a search, for this caller and its organization; false also erases what was learned; docs/search.md"`
}

func defaultSearch() Search { return Search{Learn: true} }
