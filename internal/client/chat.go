package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/server"
)

// Chat is one person's conversation with the agent, in this process or on a running
// server.
type Chat interface {
	// Say sends a message and returns the reply. Events until then are passed to emit. If
	// ctx is cancelled, the reply is what was said so far.
	Say(ctx context.Context, message string, emit func(agent.Event)) (agent.Reply, error)
	// Reset starts a new conversation.
	Reset(ctx context.Context) error
	// Close closes the connection, or the server in this process.
	Close(ctx context.Context) error
}

// LocalChat starts a conversation on a server in this process once the tools of each
// upstream are known or wait is over. The conversation is not stored.
func LocalChat(ctx context.Context, srv *server.Server, user string, wait time.Duration) (Chat, error) {
	a, err := srv.NewAgent()
	if err != nil {
		return nil, err
	}
	(&local{server: srv, wait: wait}).start(ctx, srv.Upstreams().Unlisted())
	return &localChat{server: srv, agent: a, user: user}, nil
}

// maxHistory is the number of earlier exchanges that are sent with each message.
const maxHistory = 20

type localChat struct {
	server  *server.Server
	agent   *agent.Agent
	user    string
	history []agent.Exchange
}

func (c *localChat) Say(ctx context.Context, message string, emit func(agent.Event)) (agent.Reply, error) {
	reply, err := c.agent.Turn(ctx, agent.Request{
		Client: terminal, User: c.user, Conversation: terminal, Message: message, History: c.history,
	}, emit)
	if err != nil && ctx.Err() != nil && reply.Text() != "" {
		emit(agent.Notice{Code: "stopped", Message: "the answer was stopped"})
		reply.Stop, err = turn.Stopped, nil
	}
	if err != nil {
		return reply, err
	}
	c.history = append(c.history, agent.Exchange{User: message, Assistant: reply.Text(), At: time.Now(), Away: reply.Away})
	c.history = c.history[max(0, len(c.history)-maxHistory):]
	return reply, nil
}

func (c *localChat) Reset(ctx context.Context) error {
	c.history = nil
	return c.agent.Reset(ctx, "", c.user, terminal)
}

func (c *localChat) Close(ctx context.Context) error { return c.server.Close(ctx) }

// ConnectChat starts a conversation with the server at address: as the person whom the server
// knows by the access, or else as user.
func ConnectChat(ctx context.Context, address, user string, access Access) (Chat, error) {
	api, err := serverapi.Connect(address, access)
	if err != nil {
		return nil, err
	}
	var me struct{ Org, User string }
	if err := api.SendInto(ctx, http.MethodGet, "/api/v1/me", nil, &me); err != nil {
		return nil, err
	}
	return &remoteChat{api, cmp.Or(me.Org, profile.DefaultOrg), cmp.Or(me.User, user)}, nil
}

type remoteChat struct {
	api       serverapi.API
	org, user string
}

// terminal is the conversation, one of several of the user.
const terminal = "terminal"

func (c *remoteChat) Say(ctx context.Context, message string, emit func(agent.Event)) (agent.Reply, error) {
	resp, err := c.api.Open(ctx, http.MethodPost, "/api/v1/chat/stream", map[string]any{
		"client_id": terminal, "org": c.org, "user_id": c.user, "chat_id": terminal, "message": message, "message_type": "text", "tool_events": true,
	})
	if err != nil {
		return agent.Reply{}, err
	}
	defer resp.Body.Close()
	events := sse.NewReader(resp.Body, 0)
	id := ""
	for {
		event, err := events.Next()
		if err != nil && ctx.Err() != nil && id != "" {
			return c.stop(ctx, id, emit)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return agent.Reply{}, fault.Wrap(fault.Unavailable, err, "read the reply").
				WithHint("the server may still complete the reply; the history shows it")
		}
		if first, ok := rawjson.GetText(event.Data, "message_id"); ok {
			id = first
		}
		reply, done, err := chatEvent(event.Data, emit)
		if done || err != nil {
			return reply, err
		}
	}
}

// stop stops the answer on the server and returns what was said so far.
func (c *remoteChat) stop(ctx context.Context, id string, emit func(agent.Event)) (agent.Reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	body, err := c.api.Send(ctx, http.MethodPost, "/api/v1/chat/"+url.PathEscape(id)+"/stop", nil)
	if err != nil {
		return agent.Reply{}, err
	}
	var answer chatResponse
	if err := json.Unmarshal(body, &answer); err != nil {
		return agent.Reply{}, fault.Wrap(fault.Upstream, err, "read the reply")
	}
	return answer.reply(emit), nil
}

// stopTime limits how long a server may take to stop an answer.
const stopTime = 10 * time.Second

// chatResponse is a reply as the API sends it.
type chatResponse struct {
	Responses []string
	Language  string `json:"response_language"`
	ID        string `json:"message_id"`
	Model     string
	Usage     llm.Usage
	Notices   []agent.Notice
}

func (r chatResponse) reply(emit func(agent.Event)) agent.Reply {
	for _, n := range r.Notices {
		emit(n)
	}
	return agent.Reply{RequestID: r.ID, Responses: r.Responses, Language: r.Language, Model: r.Model, Usage: r.Usage, Notices: r.Notices}
}

// chatEvent passes one event of a stream to emit. The last one carries the reply.
func chatEvent(data []byte, emit func(agent.Event)) (reply agent.Reply, done bool, err error) {
	var e struct {
		Type, Message, Text, Error, Tool string
		Input, Result                    json.RawMessage
		Failed                           bool
		CallID                           string  `json:"call_id"`
		DurationMS                       float64 `json:"duration_ms"`
		Response                         chatResponse
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return reply, false, fault.Wrap(fault.Upstream, err, "read the reply")
	}
	switch e.Type {
	case "status":
		emit(agent.Status{Message: e.Message})
	case "progress":
		emit(agent.Text{Text: e.Text})
	case "tool_use":
		emit(agent.ToolUse{ID: e.CallID, Tool: e.Tool, Input: e.Input})
	case "tool_result":
		text, _ := rawjson.Text(e.Result)
		emit(agent.ToolResult{ID: e.CallID, Tool: e.Tool, Text: text, Failed: e.Failed, Took: time.Duration(e.DurationMS * float64(time.Millisecond))})
	case "error":
		return reply, false, fault.New(fault.Upstream, "%s", e.Error)
	case "complete":
		return e.Response.reply(emit), true, nil
	}
	return reply, false, nil
}

func (c *remoteChat) Reset(ctx context.Context) error {
	_, err := c.api.Send(ctx, http.MethodDelete, "/api/v1/orgs/"+url.PathEscape(c.org)+"/users/"+url.PathEscape(c.user)+"/conversation?id="+terminal, nil)
	return err
}

func (c *remoteChat) Close(context.Context) error { return nil }
