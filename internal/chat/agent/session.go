package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// luaEval runs Lua, in the session of the conversation.
var luaEval = tool.Ref{Name: "lua_eval"}

const sessionKey = "session_id"

// luaSession is the session of a conversation, looked up on first use.
type luaSession struct {
	once sync.Once
	id   string
	err  error
}

// arguments returns the arguments of a tool call: the model's, with the session added
// for lua_eval.
func (t *turn) arguments(ctx context.Context, ref tool.Ref, input json.RawMessage) (json.RawMessage, error) {
	if ref != luaEval || !rawjson.IsObject(input) {
		return input, nil
	}
	t.session.once.Do(func() { t.session.id, t.session.err = t.findSession(ctx) })
	if t.session.err != nil {
		return nil, t.session.err
	}
	if t.session.id == "" {
		return input, nil
	}
	return rawjson.SetText(input, sessionKey, t.session.id), nil
}

// sessionName returns the name of the conversation's session.
func (t *turn) sessionName() string {
	if t.request.Conversation == "" {
		return "chat"
	}
	return "chat:" + t.request.Conversation
}

// findSession finds or creates the conversation's session. If sessions are not
// available, code runs without one.
func (t *turn) findSession(ctx context.Context) (string, error) {
	sessions, err := t.sessions(ctx, func(name string) bool { return name == t.sessionName() })
	if err != nil {
		return "", err
	}
	if len(sessions) > 0 {
		return sessions[0], nil
	}
	made, err := t.ownTool(ctx, "session_create", map[string]string{"name": t.sessionName()})
	if err != nil {
		return "", err
	}
	var session struct {
		ID string `json:"session_id"`
	}
	_ = json.Unmarshal(made, &session) // if creation failed, code runs without one
	return session.ID, nil
}

// sessions returns the person's sessions with that name.
func (t *turn) sessions(ctx context.Context, wanted func(name string) bool) (ids []string, err error) {
	listed, err := t.ownTool(ctx, "session_list", struct{}{})
	if err != nil {
		return nil, err
	}
	var list struct {
		Sessions []struct {
			ID   string `json:"session_id"`
			Name string
		}
	}
	if json.Unmarshal(listed, &list) != nil {
		return nil, nil //nolint:nilerr // who lists no sessions has none of ours
	}
	for _, s := range list.Sessions {
		if wanted(s.Name) {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// ownTool calls a built-in tool on behalf of the person. A missing tool returns nothing.
func (t *turn) ownTool(ctx context.Context, name string, args any) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	result, err := t.agent.options.Tools.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: raw, Caller: t.caller()})
	if err != nil {
		return nil, nil //nolint:nilerr // without sessions, code runs without them
	}
	view, err := result.View()
	if err != nil || view.IsError {
		return nil, err
	}
	return view.Structured, nil
}

// Reset closes the Lua session of a conversation.
func (a *Agent) Reset(ctx context.Context, org, user, conversation string) error {
	t := a.begin(Request{Org: org, User: user, Conversation: conversation}, nil)
	return t.reset(ctx, func(name string) bool { return name == t.sessionName() })
}

// Forget closes the Lua sessions of all conversations of a person.
func (a *Agent) Forget(ctx context.Context, org, user string) error {
	t := a.begin(Request{Org: org, User: user}, nil)
	return t.reset(ctx, func(name string) bool { return name == t.sessionName() || strings.HasPrefix(name, t.sessionName()+":") })
}

func (t *turn) reset(ctx context.Context, wanted func(name string) bool) error {
	if t.agent.options.Tools == nil {
		return nil
	}
	ids, err := t.sessions(ctx, wanted)
	for _, id := range ids {
		_, failed := t.ownTool(ctx, "session_reset", map[string]string{sessionKey: id})
		err = errors.Join(err, failed)
	}
	return err
}
