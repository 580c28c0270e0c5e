package config

import (
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Chat is about the agent that answers chats, and the model it asks.
type Chat struct {
	Provider    string               `toml:"provider" help:"how the model's endpoint speaks: anthropic, or openai for every endpoint that speaks OpenAI's chat completions"`
	Model       string               `toml:"model" help:"the model to ask; empty means claude-sonnet-5-5 at anthropic"`
	BaseURL     string               `toml:"base_url" secret:"url" help:"another endpoint than the provider's own, such as http://127.0.0.1:11434/v1 for a local model"`
	KeyEnv      string               `toml:"key_env" help:"variable that holds the key; empty means ANTHROPIC_API_KEY or OPENAI_API_KEY"`
	Key         string               `toml:"key" secret:"all" help:"the key, best as a reference: ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}; takes precedence over key_env"`
	MaxTokens   int                  `toml:"max_tokens" help:"how long one answer of the model may be, in tokens"`
	Temperature float64              `toml:"temperature" help:"0 to 1 (2 at openai); below zero leaves it to the model, and newer ones accept nothing else"`
	Offer       string               `toml:"offer" help:"how servers' tools are offered to the model: direct, code (found by search, called from code), or auto: direct for servers with few tools"`
	DirectTools int                  `toml:"direct_tools" help:"how many tools are offered each by itself, for auto: server after server, as far as they fit"`
	Tools       []string             `toml:"tools" help:"which of our own tools the model is offered"`
	Iterations  int                  `toml:"iterations" alias:"MAX_ORCHESTRATION_ITERATIONS" help:"how often the model is asked for one message"`
	Calls       int                  `toml:"calls" help:"how many tools one message may call, those that scripts call included"`
	ResultKB    int                  `toml:"result_kb" help:"how much of one tool's answer the model is shown, in KiB"`
	PromptKB    int                  `toml:"prompt_kb" help:"how much of a conversation is sent to the model, in KB"`
	ToolTimeout Duration             `toml:"tool_timeout" help:"how long one tool may take"`
	QueueDepth  int                  `toml:"queue_depth" help:"how many messages of one user may wait; further ones are refused with 429"`
	Parallel    int                  `toml:"parallel" help:"how many messages, of different users, are answered at a time"`
	Rate        int                  `toml:"rate" help:"how many messages a minute one user may send"`
	DebugEvents bool                 `toml:"debug_events" alias:"SSE_DEBUG_EVENTS" help:"show tools' arguments and answers in streams"`
	LogContent  bool                 `toml:"log_content" help:"let messages, arguments and answers into logs and traces"`
	Callback    string               `toml:"callback_token" secret:"all" alias:"CALLBACK_TOKEN" help:"bearer token that webhooks are called with, best as a reference"`
	Prompts     map[string]string    `toml:"prompts"`
	Prices      map[string]llm.Price `toml:"prices"`
}

func chatDefaults() Chat {
	return Chat{
		Provider: "anthropic", MaxTokens: llm.DefaultMaxTokens, Temperature: -1,
		Offer: string(agent.Auto), DirectTools: 20,
		Tools:      []string{"execute_code", "get_tool_definitions", "lua_eval", "result_read", "search_tools"},
		Iterations: 10, Calls: 100, ResultKB: 32, PromptKB: 200, ToolTimeout: Duration(2 * time.Minute),
		QueueDepth: 50, Parallel: 64, Rate: 300,
	}
}

// check refuses what cannot work, before somebody's message finds out.
func (c *Chat) check() error {
	switch {
	case !slices.Contains([]string{"", "anthropic", "openai"}, c.Provider):
		return fault.New(fault.Config, "chat.provider: %q is not a provider", c.Provider).
			WithHint("use anthropic, or openai for any endpoint that speaks OpenAI's chat completions")
	case !slices.Contains([]string{"auto", "direct", "code"}, c.Offer):
		return fault.New(fault.Config, "chat.offer: %q is no way to offer tools", c.Offer).WithHint("use auto, direct or code")
	}
	for key, value := range map[string]int{
		"max_tokens": c.MaxTokens, "iterations": c.Iterations, "calls": c.Calls, "result_kb": c.ResultKB, "prompt_kb": c.PromptKB,
		"tool_timeout": int(c.ToolTimeout), "queue_depth": c.QueueDepth, "parallel": c.Parallel, "rate": c.Rate,
	} {
		if value < 1 {
			return fault.New(fault.Config, "chat.%s: %d is too little", key, value).WithHint("use 1 or more, or omit it")
		}
	}
	if err := c.PromptTexts().Check(); err != nil {
		return fault.Wrap(fault.Config, err, "chat.prompts").WithHint("%s", fault.HintOf(err))
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

// OpenModel opens the model the configuration names.
func (c *Chat) OpenModel(env Environment, secrets secret.Finder) (llm.Model, error) {
	options := llm.Options{
		Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, MaxTokens: c.MaxTokens, Prices: c.Prices,
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
	name := c.KeyEnv
	switch {
	case name != "":
	case c.Provider == "openai":
		name = "OPENAI_API_KEY"
	default:
		name = "ANTHROPIC_API_KEY"
	}
	key, set := env.Lookup(name)
	if c.KeyEnv != "" && !set {
		return nil, fault.New(fault.Config, "chat.key_env: the variable %s is not set", name).WithHint("set it, or omit key_env")
	}
	options.Key = secret.New(key)
	return llm.Open(options)
}
