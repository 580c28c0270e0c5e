package config

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/llm"
)

// ChosenModel is a model for the chat, as somebody chose it.
type ChosenModel struct {
	Provider string      `json:"provider"` // anthropic or openai
	Model    string      `json:"model,omitempty"`
	BaseURL  string      `json:"base_url,omitempty"`
	Key      secret.Text `json:"key,omitzero"` // a new one; without it the one that is known is used
}

// Try asks the model for a word. Without a new key it uses the one of the configuration if
// that is for the same endpoint: a key is sent to nobody else.
func (m *ChosenModel) Try(ctx context.Context, loaded *Loaded, env Environment, secrets secret.Finder) error {
	c := loaded.Chat
	known := c.Provider == m.Provider && c.BaseURL == m.BaseURL
	c.Provider, c.Model, c.BaseURL = m.Provider, m.Model, m.BaseURL
	options := llm.Options{Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, Key: m.Key}
	model, err := llm.Open(options)
	if m.Key.IsZero() && known {
		model, err = c.openModel(c.Model, env, secrets)
	}
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err))
	}
	_, err = model.Answer(ctx, llm.Prompt{
		System: "Answer with one word.", Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "Say: ready"}}}}, MaxTokens: triedTokens,
	}, nil)
	return err
}

// triedTokens is enough for a word, also of models that think first.
const triedTokens = 256

// SetModel writes a model to the configuration file. A new key is stored in a file of its own
// in the data folder, which the configuration refers to.
func SetModel(ctx context.Context, sources Sources, data string, m *ChosenModel) error {
	text := func(value string) json.RawMessage {
		if value == "" {
			return json.RawMessage("null")
		}
		raw, _ := json.Marshal(value) // texts always encode
		return raw
	}
	var stored string
	values := map[string]json.RawMessage{"chat.provider": text(m.Provider), "chat.model": text(m.Model), "chat.base_url": text(m.BaseURL)}
	if !m.Key.IsZero() {
		var err error
		if stored, err = storeModelKey(data, m.Key); err != nil {
			return err
		}
		values["chat.key"] = text("${file:" + stored + "}")
	}
	if _, err := SetLive(ctx, sources, values); err != nil {
		if stored != "" {
			err = errors.Join(err, os.Remove(stored))
		}
		return err
	}
	if stored != "" {
		removeModelKeys(data, stored)
	}
	return nil
}

// modelKeyFile begins the names of the files with the key of the chat's model, in the data
// folder. Each key has a name of its own, so that another key is a change of the configuration.
const modelKeyFile = "model_key_"

func storeModelKey(data string, key secret.Text) (file string, err error) {
	if file, err = filepath.Abs(filepath.Join(data, modelKeyFile+strings.ToLower(rand.Text()[:8]))); err == nil {
		err = os.WriteFile(file, []byte(key.Reveal()+"\n"), 0o600)
	}
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "store the model's key")
	}
	return file, nil
}

// removeModelKeys removes the keys that are not used any more.
func removeModelKeys(data, used string) {
	files, _ := filepath.Glob(filepath.Join(data, modelKeyFile+"*")) // the pattern is valid
	for _, file := range files {
		if filepath.Base(file) != filepath.Base(used) {
			_ = os.Remove(file) // an old key that stays is not used
		}
	}
}
