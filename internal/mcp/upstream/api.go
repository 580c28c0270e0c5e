package upstream

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/command"
	"github.com/luanette/luanette/internal/apis/graphql"
	"github.com/luanette/luanette/internal/apis/grpcapi"
	"github.com/luanette/luanette/internal/apis/openapi"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// builtinAPIs are the kinds of APIs. A new kind is a line here.
var builtinAPIs = map[string]api.Opener{
	api.OpenAPI: openapi.Open,
	api.GraphQL: graphql.Open,
	api.GRPC:    grpcapi.Open,
	api.Command: command.Open,
}

// apiTransport makes an MCP server of an API that runs in this process.
type apiTransport struct {
	*dispatcher
	leftOut
	api api.API
}

// dialAPI opens the API of a spec.
func (o *Options) dialAPI(ctx context.Context, spec Spec, open api.Opener, hooks Hooks) (Transport, error) {
	if spec.API.IsZero() { // added to a running server, which takes only a URL
		spec.API = api.Settings{Kind: spec.Transport, Source: spec.URL}
	}
	env, err := o.apiEnvironment(spec, hooks)
	if err != nil {
		return nil, notSent(err)
	}
	opened, err := open(ctx, env)
	if err != nil {
		return nil, notSent(err)
	}
	return &apiTransport{dispatcher: newDispatcher(hooks), api: opened}, nil
}

// apiEnvironment is what the API of a spec may use.
func (o *Options) apiEnvironment(spec Spec, hooks Hooks) (env api.Environment, err error) {
	env = api.Environment{
		Name: spec.Name, Settings: spec.API, Proxy: o.Proxy, Files: o.Files, Sandbox: o.Sandbox, Tracer: o.Tracer, Propagator: o.Propagator,
		Log: o.Log.With("upstream", spec.Name), MaxAnswer: o.MaxMessage, Timeout: spec.timeout(), MaxTime: spec.maxTime(), Changed: hooks.Relist,
		DialControl: o.control(spec),
	}
	if env.Header, err = o.header(spec); err != nil {
		return env, err
	}
	if env.TLS, err = certpool.Config(o.CAFile, spec.CAFile); err != nil {
		return env, err
	}
	if o.Login != nil && env.Header.Get("Authorization") == "" && env.Settings.User == "" {
		env.Login = apiLogin{o.Login, spec}
	}
	err = tagged.Texts(&env.Settings, "vars", func(kind, text string) (string, error) {
		if kind != "secret" {
			return text, nil
		}
		return o.reveal(spec, text)
	})
	return env, err
}

// apiLogin has the tokens for the service of a spec.
type apiLogin struct {
	login Login
	spec  Spec
}

// Token implements api.Login.
func (l apiLogin) Token(ctx context.Context, base string) (string, error) {
	l.spec.URL = base
	return l.login.Token(ctx, l.spec)
}

// Refused implements api.Login.
func (l apiLogin) Refused(ctx context.Context, base string, r api.Refusal) (string, error) {
	l.spec.URL = base
	return l.login.Refused(ctx, l.spec, r.Status, r.Challenge, r.Token)
}

// At implements api.Login.
func (l apiLogin) At(tokenURL string) api.Login {
	l.spec.OAuth.TokenURL = tokenURL
	return l
}

// Call implements Transport.
func (t *apiTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	if err := t.Err(); err != nil {
		return wire.Message{}, notSent(err)
	}
	answer, err := translate(ctx, t, out.Message)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return wire.Message{}, context.Cause(ctx)
	}
	return wire.Message{}, &apiError{err}
}

// apiError is the error of a call to an API. The API has repeated what may be repeated.
type apiError struct{ cause error }

func (e *apiError) Error() string { return e.cause.Error() }
func (e *apiError) Unwrap() error { return e.cause }

// initialize answers the handshake with what the API says about itself.
func (t *apiTransport) initialize(ctx context.Context) (json.RawMessage, error) {
	listing, err := t.api.List(ctx)
	if err != nil {
		return nil, err
	}
	result := handshake(listing.Title, listing.Version)
	if listing.Instructions != "" {
		result = rawjson.SetText(result, "instructions", listing.Instructions)
	}
	return result, nil
}

func (t *apiTransport) ping(context.Context) error { return nil }

// list lists the tools.
func (t *apiTransport) list(ctx context.Context) (json.RawMessage, error) {
	listing, err := t.api.List(ctx)
	if err != nil {
		return nil, err
	}
	t.leftOut.set(listing.LeftOut)
	return listed(listing.Tools), nil
}

// call calls a tool. Its progress goes the way of a server's notifications.
func (t *apiTransport) call(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	call := api.Call{Progress: func(done, total float64, message string) {
		params := rawjson.Set(nil, wire.MetaProgressToken, json.RawMessage(m.ID))
		params = rawjson.Set(params, "progress", jsonNumber(done))
		if total > 0 {
			params = rawjson.Set(params, "total", jsonNumber(total))
		}
		t.hooks.Received(m.ID, wire.Notification(wire.NoteProgress, rawjson.SetText(params, "message", message)))
	}}
	call.Tool, _ = rawjson.GetText(m.Params, "name")
	call.Arguments, _ = rawjson.Get(m.Params, "arguments")
	result, err := t.api.Call(ctx, call)
	switch code := fault.CodeOf(err); {
	case err == nil:
		return result, nil
	case code == fault.InvalidParams:
		text := err.Error()
		if hint := fault.HintOf(err); hint != "" {
			text += ": " + hint
		}
		return nil, wire.Errorf(wire.CodeInvalidParams, "%s", text)
	}
	return nil, err
}

// Send implements Transport: an API takes no notifications, and calls end with their
// context.
func (t *apiTransport) Send(context.Context, wire.Message) error { return t.Err() }

// Traits implements Transport: a call whose context ends is cancelled.
func (t *apiTransport) Traits() Traits {
	return Traits{CancelsOnDisconnect: func() bool { return true }, KeepsContext: true, LeftOut: t.leftOut.get}
}

// Close implements Transport.
func (t *apiTransport) Close() {
	t.fail(errClosed)
	t.api.Close()
}
