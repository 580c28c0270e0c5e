package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/luanette/luanette/internal/base/fault"
)

// claude uses Anthropic's Messages API through the official SDK. Retries are our own,
// the same for both providers.
type claude struct {
	client  anthropic.Client
	options Options
}

func newAnthropic(o Options, client *http.Client) *claude {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), // only our configuration counts
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // the agent has a span for it
		option.WithAPIKey(o.Key.Reveal()),
	}
	if o.BaseURL != "" {
		options = append(options, option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(o.BaseURL, "/"), "/v1")))
	} else {
		options = append(options, option.WithEnvironmentProduction())
	}
	return &claude{anthropic.NewClient(options...), o}
}

func (c *claude) try(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	params, err := c.params(p)
	if err != nil {
		return Answer{}, err
	}
	stream := c.client.Messages.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }() // a complete answer stays valid
	var message anthropic.Message
	finished := false
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return claudeAnswer(&message), &failure{err: fault.Wrap(fault.Upstream, err, "read answer")}
		}
		switch {
		case event.Type == "content_block_delta" && event.Delta.Type == "text_delta" && event.Delta.Text != "":
			emit(Delta{Text: event.Delta.Text})
		case event.Type == "content_block_start" && event.ContentBlock.Type == "tool_use":
			emit(Delta{Use: event.ContentBlock.Name})
		case event.Type == "message_stop":
			finished = true
		}
	}
	answer := claudeAnswer(&message)
	if err := stream.Err(); err != nil {
		return answer, claudeFailure(err)
	}
	if !finished {
		return answer, &failure{err: errBroken, again: true}
	}
	return answer, nil
}

// claudeFailure converts the SDK's error. Its text contains the whole request; ours has
// the provider's message.
func claudeFailure(err error) error {
	var refused *anthropic.Error
	if !errors.As(err, &refused) {
		return err
	}
	var body struct {
		Error struct{ Type, Message string }
	}
	_ = json.Unmarshal([]byte(refused.RawJSON()), &body) // proxies may return anything
	return refusedBy(refused.StatusCode, refused.Response.Header, body.Error.Type, body.Error.Message)
}

// claudeAnswer converts a message. A tool call whose arguments were cut off by the token
// limit is dropped.
func claudeAnswer(m *anthropic.Message) Answer {
	a := Answer{
		ID: m.ID, Model: m.Model, Stop: Stop(m.StopReason),
		Usage: Usage{
			Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens,
			CacheRead: m.Usage.CacheReadInputTokens, CacheWrite: m.Usage.CacheCreationInputTokens,
		},
	}
	for i := range m.Content {
		block := &m.Content[i]
		switch {
		case block.Type == "text":
			if block.Text != "" {
				a.Blocks = append(a.Blocks, Block{Text: block.Text})
			}
		case block.Type == "tool_use" && a.Stop == StopLength && i == len(m.Content)-1:
		case block.Type == "tool_use":
			a.Blocks = append(a.Blocks, Block{Use: &Use{block.ID, block.Name, objectOf(block.Input)}})
		default:
			a.Blocks = append(a.Blocks, Block{Raw: json.RawMessage(block.RawJSON())})
		}
	}
	return a
}

func objectOf(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage(`{}`)
	}
	return input
}

// params converts a prompt for the API. Three places are marked for its cache: the
// tools, the constant part of the system prompt, and the conversation so far, which the
// next request continues.
func (c *claude) params(p Prompt) (anthropic.MessageNewParams, error) {
	params := anthropic.MessageNewParams{Model: c.options.Model, MaxTokens: int64(c.options.MaxTokens)}
	if t := c.options.Temperature; t != nil {
		params.Temperature = param.NewOpt(*t)
	}
	if p.System != "" {
		params.System = append(params.System, anthropic.TextBlockParam{Text: p.System, CacheControl: anthropic.NewCacheControlEphemeralParam()})
	}
	if p.Context != "" {
		params.System = append(params.System, anthropic.TextBlockParam{Text: p.Context})
	}
	for i, t := range p.Tools {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.Input)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		if i == len(p.Tools)-1 {
			tool.CacheControl = anthropic.NewCacheControlEphemeralParam()
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	for _, m := range p.Messages {
		blocks, err := claudeBlocks(m.Blocks)
		if err != nil {
			return params, err
		}
		params.Messages = append(params.Messages, anthropic.MessageParam{Role: anthropic.MessageParamRole(m.Role), Content: blocks})
	}
	markForCache(params.Messages)
	return params, nil
}

func claudeBlocks(blocks []Block) ([]anthropic.ContentBlockParamUnion, error) {
	all := make([]anthropic.ContentBlockParamUnion, 0, len(blocks))
	for _, b := range blocks {
		switch {
		case b.Use != nil:
			all = append(all, anthropic.NewToolUseBlock(b.Use.ID, b.Use.Input, b.Use.Name))
		case b.Result != nil:
			all = append(all, anthropic.NewToolResultBlock(b.Result.ID, b.Result.Text, b.Result.Failed))
		case b.Raw != nil:
			var block anthropic.ContentBlockUnion
			if err := json.Unmarshal(b.Raw, &block); err != nil {
				return nil, fault.Wrap(fault.Internal, err, "encode an earlier answer")
			}
			all = append(all, block.ToParam())
		default:
			all = append(all, anthropic.NewTextBlock(b.Text))
		}
	}
	return all, nil
}

func markForCache(messages []anthropic.MessageParam) {
	if len(messages) == 0 {
		return
	}
	last := messages[len(messages)-1].Content
	if len(last) == 0 {
		return
	}
	if mark := last[len(last)-1].GetCacheControl(); mark != nil {
		*mark = anthropic.NewCacheControlEphemeralParam()
	}
}
