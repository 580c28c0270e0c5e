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

// verdict is what was found out about a server, so that it need not be found out
// again: how to reach it and what it speaks.
type verdict struct {
	Way endpoint `json:"way"`
	Era wire.Era `json:"era"`
}

// opening is one attempt to reach the server of a spec.
type opening struct {
	opts  *Options
	spec  Spec
	hooks Hooks // Inbox is set per session
	note  func(method string, params json.RawMessage)
}

// open reaches the server: the way that worked last time first, then the others.
// Only one that is there but speaks otherwise makes us try the next way.
func (o *opening) open(ctx context.Context, known verdict) (*session, verdict, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.opts.ConnectTime,
		fmt.Errorf("no connection within %v", o.opts.ConnectTime))
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
		s, err := o.greet(ctx, way, era)
		if err == nil {
			return s, verdict{way, s.era}, nil
		}
		if _, auth := wantsAuth(err); first == nil || auth {
			first = err
		}
		if ctx.Err() != nil || !speaksOtherwise(err) {
			break
		}
	}
	return nil, verdict{}, first
}

// speaksOtherwise tells whether something answered, but not as a server at this
// address and by this transport would.
func speaksOtherwise(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.auth() && status.Code < 500
	}
	return !errors.Is(err, ErrNotSent)
}

// greet opens a link and agrees on an era.
func (o *opening) greet(ctx context.Context, way endpoint, known wire.Era) (*session, error) {
	era := known
	switch o.spec.Protocol {
	case ProtocolLegacy:
		era = wire.Legacy
	case ProtocolModern:
		era = wire.Modern
	}
	if way.oneEra() {
		era = wire.Legacy
	}
	s, err := o.session(ctx, way)
	if err != nil {
		return nil, err
	}
	switch era {
	case wire.Modern:
		err = s.discover(ctx)
	case wire.Legacy:
		err = s.initialize(ctx)
	default:
		return o.probe(ctx, way, s)
	}
	if err == nil {
		return s, nil
	}
	s.close()
	var answered *wire.Error
	if known != wire.Unknown && o.spec.Protocol != ProtocolLegacy && o.spec.Protocol != ProtocolModern && !way.oneEra() && errors.As(err, &answered) {
		return o.greet(ctx, way, wire.Unknown) // it has changed its mind since the last time
	}
	return nil, err
}

// probe finds out the era: it asks in the modern way, and greets in the legacy
// way when that is refused, ignored or fatal. A process that did not survive the
// question, or fell silent over it, is started anew.
func (o *opening) probe(ctx context.Context, way endpoint, s *session) (*session, error) {
	asked, cancel := context.WithTimeoutCause(ctx, o.opts.ProbeTime, errProbe)
	err := s.discover(asked)
	cancel()
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil || fatal(err):
		s.close()
		return nil, err
	}
	s.era, s.revision = wire.Legacy, ""
	s.link.Adopt("")
	second, cancel := ctx, context.CancelFunc(func() {})
	if errors.Is(err, errProbe) {
		second, cancel = context.WithTimeoutCause(ctx, 2*o.opts.ProbeTime, errProbe)
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
	if s, err = o.session(ctx, way); err != nil {
		return nil, err
	}
	if err := s.initialize(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

var errProbe = errors.New("no answer to the greeting")

// fatal tells whether a greeting in another era cannot do better.
func fatal(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.auth()
	}
	var answered *wire.Error
	return errors.Is(err, ErrNotSent) && !errors.As(err, &answered) && !errors.Is(err, errProcess)
}

// session dials and prepares a session that has not greeted yet.
func (o *opening) session(ctx context.Context, way endpoint) (*session, error) {
	s := &session{
		opts: o.opts, way: way, note: o.note, life: newLifetime(), broken: make(chan error, 1),
		questions: make(chan struct{}, maxQuestions), acked: func() {},
		flights: map[wire.ID]*flight{}, asks: map[wire.ID]context.CancelFunc{}, follow: map[string]bool{},
	}
	linked := make(chan struct{})
	hooks := o.hooks
	hooks.Inbox = func(call wire.ID, m wire.Message) {
		<-linked // a server may talk before we know that we are connected
		s.inbox(call, m)
	}
	link, err := o.opts.dial(ctx, o.spec, way, hooks)
	if err != nil {
		s.life.end(err)
		close(linked)
		return nil, err
	}
	s.link = link
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
	s.link.Adopt(s.revision)
	greeting := &request{method: wire.MethodDiscover, params: json.RawMessage(`{}`), timeout: s.opts.ConnectTime, greets: true}
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
	s.learn(result)
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
	params = rawjson.Set(params, "clientInfo", s.opts.info)
	result, err := s.do(ctx, &request{method: wire.MethodInitialize, params: params, timeout: s.opts.ConnectTime, greets: true})
	if err != nil {
		return err
	}
	s.revision, _ = rawjson.GetText(result, "protocolVersion")
	if wire.EraOf(s.revision) != wire.Legacy {
		return fmt.Errorf("server wants revision %q, which we do not speak", excerpt([]byte(s.revision)))
	}
	s.learn(result)
	s.link.Adopt(s.revision)
	if err := s.link.Send(ctx, wire.Notification(wire.NoteInitialized, nil)); err != nil {
		return fmt.Errorf("say that we are initialized: %w", err)
	}
	if l, ok := s.link.(interface{ Listen(context.Context) }); ok {
		l.Listen(ctx)
	}
	return nil
}

// learn keeps what a server says of itself.
func (s *session) learn(greeting json.RawMessage) {
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
