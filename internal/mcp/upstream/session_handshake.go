package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// detected is what was found out about a server, so that it need not be found out
// again: how to reach it and what it speaks.
type detection struct {
	Way endpoint `json:"way"`
	Era wire.Era `json:"era"`
}

// connectAttempt is one attempt to reach the server of a spec.
type connectAttempt struct {
	opts  *Options
	spec  Spec
	hooks Hooks // Received is set per session
	note  func(method string, params json.RawMessage)
}

// open reaches the server: the way that worked last time first, then the others.
// Only one that is there but speaks otherwise makes us try the next way.
func (o *connectAttempt) open(ctx context.Context, known detection) (*session, detection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.opts.ConnectTimeout,
		fmt.Errorf("no connection within %v", o.opts.ConnectTimeout))
	defer cancel()
	ways := endpoints(o.spec)
	if i := slices.Index(ways, known.Way); i > 0 {
		ways = append([]endpoint{known.Way}, slices.Delete(slices.Clone(ways), i, i+1)...)
	}
	var first error
	for _, way := range ways {
		era := wire.Unknown
		if way == known.Way {
			era = known.Era
		}
		s, err := o.handshake(ctx, way, era)
		if err == nil {
			return s, detection{way, s.era}, nil
		}
		if _, auth := isAuthError(err); first == nil || auth {
			first = err
		}
		if ctx.Err() != nil || !tryNextEndpoint(err) {
			break
		}
	}
	return nil, detection{}, first
}

// tryNextEndpoint tells whether something answered, but not as a server at this
// postURL and by this transport would.
func tryNextEndpoint(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.auth() && status.Code < 500
	}
	return !errors.Is(err, ErrNotSent)
}

// handshake opens a link and agrees on an era.
func (o *connectAttempt) handshake(ctx context.Context, way endpoint, known wire.Era) (*session, error) {
	era := known
	switch o.spec.Protocol {
	case ProtocolLegacy:
		era = wire.Legacy
	case ProtocolModern:
		era = wire.Modern
	}
	if way.legacyOnly() {
		era = wire.Legacy
	}
	s, err := o.newSession(ctx, way)
	if err != nil {
		return nil, err
	}
	switch era {
	case wire.Modern:
		err = s.discover(ctx)
	case wire.Legacy:
		err = s.initialize(ctx)
	default:
		return o.detectEra(ctx, way, s)
	}
	if err == nil {
		return s, nil
	}
	s.close()
	var answered *wire.Error
	if known != wire.Unknown && o.spec.Protocol != ProtocolLegacy && o.spec.Protocol != ProtocolModern && !way.legacyOnly() && errors.As(err, &answered) {
		return o.handshake(ctx, way, wire.Unknown) // it has changed its mind since the last time
	}
	return nil, err
}

// detectEra finds out the era: it asks in the modern way, and greets in the legacy
// endpoint when that is refused, ignored or fatal. A process that did not survive the
// question, or fell silent over it, is started anew.
func (o *connectAttempt) detectEra(ctx context.Context, way endpoint, s *session) (*session, error) {
	asked, cancel := context.WithTimeoutCause(ctx, o.opts.ProbeTimeout, errNoHandshake)
	err := s.discover(asked)
	cancel()
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil || noOtherEraHelps(err):
		s.close()
		return nil, err
	}
	s.era, s.revision = wire.Legacy, ""
	s.transport.SetRevision("")
	second, cancel := ctx, context.CancelFunc(func() {})
	if errors.Is(err, errNoHandshake) {
		second, cancel = context.WithTimeoutCause(ctx, 2*o.opts.ProbeTimeout, errNoHandshake)
	}
	err = s.initialize(second)
	cancel()
	if err == nil {
		return s, nil
	}
	s.close()
	if way.Transport == HTTP || ctx.Err() != nil {
		return nil, err
	}
	if s, err = o.newSession(ctx, way); err != nil {
		return nil, err
	}
	if err := s.initialize(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

var errNoHandshake = errors.New("no answer to the greeting")

// noOtherEraHelps tells whether a greeting in another era cannot do better.
func noOtherEraHelps(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.auth()
	}
	var answered *wire.Error
	return errors.Is(err, ErrNotSent) && !errors.As(err, &answered) && !errors.Is(err, errProcess)
}

// newSession dials and prepares a session that has not greeted yet.
func (o *connectAttempt) newSession(ctx context.Context, way endpoint) (*session, error) {
	s := &session{
		opts: o.opts, endpoint: way, notify: o.note, life: newLifetime(), failed: make(chan error, 1),
		questionSlots: make(chan struct{}, maxQuestions), acked: func() {},
		flights: map[wire.ID]*flight{}, questions: map[wire.ID]context.CancelFunc{}, subscriptions: map[string]bool{},
	}
	linked := make(chan struct{})
	hooks := o.hooks
	hooks.Received = func(call wire.ID, m wire.Message) {
		<-linked // a server may talk before we know that we are connected
		s.handleMessage(call, m)
	}
	link, err := o.opts.dial(ctx, o.spec, way, hooks)
	if err != nil {
		s.life.end(err)
		close(linked)
		return nil, err
	}
	s.transport = link
	close(linked)
	s.life.run(func(context.Context) {
		<-link.Done()
		s.ground(link.Err())
	})
	return s, nil
}

// discover greets in the modern way.
func (s *session) discover(ctx context.Context) error {
	s.era, s.revision = wire.Modern, wire.NewestModern
	s.transport.SetRevision(s.revision)
	greeting := &request{method: wire.MethodDiscover, params: json.RawMessage(`{}`), timeout: s.opts.ConnectTimeout, handshake: true}
	result, err := s.do(ctx, greeting)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeUnsupportedRevision && names(refused.Data, "supported", s.revision) {
		result, err = s.do(ctx, greeting) // it refuses what it says it supports: perhaps only once
	}
	if err != nil {
		return err
	}
	if !names(result, "supportedVersions", s.revision) {
		return wire.Errorf(wire.CodeUnsupportedRevision, "server does not speak %s", s.revision)
	}
	s.setServerInfo(result)
	return nil
}

// names tells whether the list under key has text in it.
func names(object json.RawMessage, key, text string) bool {
	raw, _ := rawjson.Get(object, key)
	items, _ := rawjson.Items(raw)
	return slices.ContainsFunc(items, func(item json.RawMessage) bool { t, ok := rawjson.Text(item); return ok && t == text })
}

// initialize greets in the legacy way and opens the session.
func (s *session) initialize(ctx context.Context) error {
	s.era = wire.Legacy
	params := json.RawMessage(`{"protocolVersion":"` + wire.NewestLegacy + `","capabilities":` + allCapabilities + `}`)
	params = rawjson.Set(params, "clientInfo", s.opts.clientInfo)
	result, err := s.do(ctx, &request{method: wire.MethodInitialize, params: params, timeout: s.opts.ConnectTimeout, handshake: true})
	if err != nil {
		return err
	}
	s.revision, _ = rawjson.GetText(result, "protocolVersion")
	if wire.EraOf(s.revision) != wire.Legacy {
		return fmt.Errorf("server wants revision %q, which we do not speak", excerpt([]byte(s.revision)))
	}
	s.setServerInfo(result)
	s.transport.SetRevision(s.revision)
	if err := s.transport.Send(ctx, wire.Notification(wire.NoteInitialized, nil)); err != nil {
		return fmt.Errorf("say that we are initialized: %w", err)
	}
	if l, ok := s.transport.(interface{ Listen(context.Context) }); ok {
		l.Listen(ctx)
	}
	return nil
}

// setServerInfo keeps what a server says of itself.
func (s *session) setServerInfo(greeting json.RawMessage) {
	s.capabilities, _ = rawjson.Get(greeting, "capabilities")
	s.instructions, _ = rawjson.Get(greeting, "instructions")
	if s.serverInfo, _ = rawjson.Get(greeting, "serverInfo"); s.serverInfo == nil {
		s.serverInfo, _ = rawjson.Get(wire.Meta(greeting), wire.MetaServerInfo)
	}
}

func clientInfo(name, version string) json.RawMessage {
	info := rawjson.AppendText([]byte(`{"name":`), name)
	return append(rawjson.AppendText(append(info, `,"version":`...), version), '}')
}
