package upstream

import (
	"context"
	"errors"
	"strings"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/mcp/faultinject"
	"github.com/luanette/luanette/internal/mcp/recording"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// interceptor injects faults into the requests of a session, and records its answers.
type interceptor struct {
	plan     *faultinject.Plan   // nil: no faults
	recorder *recording.Recorder // nil: nothing is recorded
	hide     func(text string) string
}

// errDropped is why a session ends whose connection was to be lost.
var errDropped = errors.New("injected fault: the connection was dropped")

// interceptor returns the interceptor of the spec; nil if it needs none.
func (a *connectAttempt) interceptor() (*interceptor, error) {
	i := &interceptor{plan: a.faults.Of(a.spec.Name, a.spec.Faults)}
	if a.spec.Record != "" {
		recorder, err := a.recordings.Open(a.spec.Record)
		if err != nil {
			return nil, err
		}
		i.recorder, i.hide = recorder, a.opts.secretHider(a.spec)
	}
	if i.plan == nil && i.recorder == nil {
		return nil, nil
	}
	return i, nil
}

// call sends a request of the session.
func (i *interceptor) call(ctx context.Context, s *session, out Outgoing) (wire.Message, error) {
	if i.plan != nil && meetsFaults(out.Message.Method) {
		delay, kind, number := i.plan.Next()
		if err := clock.Real().Sleep(ctx, delay); err != nil {
			return wire.Message{}, notSent(err)
		}
		switch kind {
		case faultinject.Fail:
			return wire.Answer(out.Message.ID, nil, wire.Errorf(wire.CodeInternal, "injected fault: request %d fails", number)), nil
		case faultinject.Drop:
			s.connection.failSession(s, errDropped)
			return wire.Message{}, errDropped
		}
	}
	answer, err := s.transport.Call(ctx, out)
	if err == nil && i.recorder != nil {
		if err := i.recorder.Add(out.Message.Method, out.Message.Params, answer, i.hide); err != nil {
			s.connection.log.WarnContext(ctx, "answer not recorded", "method", out.Message.Method, "error", err)
		}
	}
	return answer, err
}

// meetsFaults reports whether faults are injected into requests of a method: those that
// callers make. The handshake, health checks and lists work, so that the upstream stays
// usable.
func meetsFaults(method string) bool {
	switch method {
	case wire.MethodToolsCall, wire.MethodResourcesRead, wire.MethodPromptsGet, wire.MethodComplete:
		return true
	}
	return false
}

// secretHider returns a function that hides the credentials of a spec in a text.
func (o *Options) secretHider(spec Spec) func(text string) string {
	var pairs []string
	add := func(value string) {
		value = strings.TrimPrefix(value, "Bearer ")
		if len(value) >= minSecret {
			pairs = append(pairs, value, redact.Hidden)
		}
	}
	for _, value := range spec.Headers {
		found, err := o.reveal(spec, value)
		if err == nil {
			add(found)
		}
	}
	if token, ok := o.Getenv(spec.BearerEnv); ok {
		add(token)
	}
	if env, err := o.childEnv(spec); err == nil { // otherwise the process does not start
		for _, entry := range env {
			if name, value, _ := strings.Cut(entry, "="); redact.Secret(name) || spec.Env[name] != "" && spec.Env[name] != value {
				add(value)
			}
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// mockTransport answers from a recording, in place of a server.
type mockTransport struct {
	*dispatcher
	player *recording.Player
}

// dialMock reads the recording of a spec.
func dialMock(spec Spec) (Transport, error) {
	player, err := recording.NewPlayer(spec.Mock)
	if err != nil {
		return nil, notSent(err)
	}
	return &mockTransport{newDispatcher(Hooks{}), player}, nil
}

// Call implements Transport.
func (t *mockTransport) Call(_ context.Context, out Outgoing) (wire.Message, error) {
	if err := t.Err(); err != nil {
		return wire.Message{}, notSent(err)
	}
	answer := wire.Message{ID: out.Message.ID}
	answer.Result, answer.Error = t.player.Answer(out.Message.Method, out.Message.Params)
	return answer, nil
}

// Send implements Transport: a recording needs no notifications.
func (t *mockTransport) Send(context.Context, wire.Message) error { return t.Err() }

// Close implements Transport.
func (t *mockTransport) Close() { t.fail(errClosed) }
