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

// detection is how a server was reached and which era it speaks. It is stored, so
// that the next connection need not detect it again.
type detection struct {
	Endpoint endpoint `json:"way"`
	Era      wire.Era `json:"era"`
}

// connectAttempt is one attempt to connect to the server of a spec.
type connectAttempt struct {
	opts   *Options
	spec   Spec
	hooks  Hooks // Received is set per session
	notify func(method string, params json.RawMessage)
}

// open connects to the server: first at the endpoint that worked last time, then
// at the others. It tries the next endpoint only if something answered at this one
// that is not an MCP server of that kind.
func (a *connectAttempt) open(ctx context.Context, known detection) (*session, detection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.ConnectTimeout,
		fmt.Errorf("no connection within %v", a.opts.ConnectTimeout))
	defer cancel()
	list := endpoints(a.spec)
	if i := slices.Index(list, known.Endpoint); i > 0 {
		list = append([]endpoint{known.Endpoint}, slices.Delete(slices.Clone(list), i, i+1)...)
	}
	var first error
	for _, e := range list {
		era := wire.Unknown
		if e == known.Endpoint {
			era = known.Era
		}
		s, err := a.handshake(ctx, e, era)
		if err == nil {
			return s, detection{e, s.era}, nil
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

// tryNextEndpoint reports whether something answered, but not like an MCP server
// with this transport.
func tryNextEndpoint(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.auth() && status.Code < 500
	}
	return !errors.Is(err, ErrNotSent)
}

// handshake opens a session and agrees on an era. If the known era no longer
// works, it detects the era again.
func (a *connectAttempt) handshake(ctx context.Context, e endpoint, known wire.Era) (*session, error) {
	era := known
	switch a.spec.Protocol {
	case ProtocolLegacy:
		era = wire.Legacy
	case ProtocolModern:
		era = wire.Modern
	}
	if e.legacyOnly() {
		era = wire.Legacy
	}
	s, err := a.dial(ctx, e)
	if err != nil {
		return nil, err
	}
	switch era {
	case wire.Modern:
		err = s.discover(ctx)
	case wire.Legacy:
		err = s.initialize(ctx)
	default:
		return a.detectEra(ctx, e, s)
	}
	if err == nil {
		return s, nil
	}
	s.close()
	var answered *wire.Error
	pinned := a.spec.Protocol == ProtocolLegacy || a.spec.Protocol == ProtocolModern || e.legacyOnly()
	if known != wire.Unknown && !pinned && errors.As(err, &answered) {
		return a.handshake(ctx, e, wire.Unknown)
	}
	return nil, err
}

// detectEra tries the modern handshake, and the legacy one if the modern one is
// refused, ignored or ends the process. A process that ended or stopped answering
// because of the modern handshake is started again.
func (a *connectAttempt) detectEra(ctx context.Context, e endpoint, s *session) (*session, error) {
	modern, cancel := context.WithTimeoutCause(ctx, a.opts.ProbeTimeout, errNoHandshake)
	err := s.discover(modern)
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
	legacy, cancel := ctx, context.CancelFunc(func() {})
	if errors.Is(err, errNoHandshake) {
		legacy, cancel = context.WithTimeoutCause(ctx, 2*a.opts.ProbeTimeout, errNoHandshake)
	}
	err = s.initialize(legacy)
	cancel()
	if err == nil {
		return s, nil
	}
	s.close()
	if e.Transport == HTTP || ctx.Err() != nil {
		return nil, err
	}
	if s, err = a.dial(ctx, e); err != nil {
		return nil, err
	}
	if err := s.initialize(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

var errNoHandshake = errors.New("no answer to the handshake")

// noOtherEraHelps reports whether a handshake in the other era would fail too.
func noOtherEraHelps(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.auth()
	}
	var answered *wire.Error
	return errors.Is(err, ErrNotSent) && !errors.As(err, &answered) && !errors.Is(err, errProcess)
}

// dial opens a transport and a session over it, before the handshake.
func (a *connectAttempt) dial(ctx context.Context, e endpoint) (*session, error) {
	s := newSession(a.opts, e, a.notify)
	ready := make(chan struct{})
	hooks := a.hooks
	hooks.Received = func(call wire.ID, m wire.Message) {
		<-ready // a server may send messages before dial returns
		s.handleMessage(call, m)
	}
	transport, err := a.opts.dial(ctx, a.spec, e, hooks)
	if err != nil {
		s.life.end(err)
		close(ready)
		return nil, err
	}
	s.transport = transport
	close(ready)
	s.life.run(func(context.Context) {
		<-transport.Done()
		s.failPending(transport.Err())
	})
	return s, nil
}

// discover performs the modern handshake.
func (s *session) discover(ctx context.Context) error {
	s.era, s.revision = wire.Modern, wire.NewestModern
	s.transport.SetRevision(s.revision)
	handshake := &request{method: wire.MethodDiscover, params: json.RawMessage(`{}`), timeout: s.opts.ConnectTimeout, handshake: true}
	result, err := s.request(ctx, handshake)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeUnsupportedRevision && listContains(refused.Data, "supported", s.revision) {
		result, err = s.request(ctx, handshake) // it refused a revision that it lists as supported: try once more
	}
	if err != nil {
		return err
	}
	if !listContains(result, "supportedVersions", s.revision) {
		return wire.Errorf(wire.CodeUnsupportedRevision, "server does not speak %s", s.revision)
	}
	s.setServerInfo(result)
	return nil
}

// listContains reports whether the list under key contains text.
func listContains(object json.RawMessage, key, text string) bool {
	raw, _ := rawjson.Get(object, key)
	items, _ := rawjson.Items(raw)
	return slices.ContainsFunc(items, func(item json.RawMessage) bool { t, ok := rawjson.Text(item); return ok && t == text })
}

// initialize performs the legacy handshake.
func (s *session) initialize(ctx context.Context) error {
	s.era = wire.Legacy
	params := json.RawMessage(`{"protocolVersion":"` + wire.NewestLegacy + `","capabilities":` + allCapabilities + `}`)
	params = rawjson.Set(params, "clientInfo", s.opts.clientInfo)
	result, err := s.request(ctx, &request{method: wire.MethodInitialize, params: params, timeout: s.opts.ConnectTimeout, handshake: true})
	if err != nil {
		return err
	}
	s.revision, _ = rawjson.GetText(result, "protocolVersion")
	if wire.EraOf(s.revision) != wire.Legacy {
		return fmt.Errorf("server wants revision %q, which is not supported", excerpt([]byte(s.revision)))
	}
	s.setServerInfo(result)
	s.transport.SetRevision(s.revision)
	if err := s.transport.Send(ctx, wire.Notification(wire.NoteInitialized, nil)); err != nil {
		return fmt.Errorf("send %s: %w", wire.NoteInitialized, err)
	}
	if t, ok := s.transport.(interface{ Listen(context.Context) }); ok {
		t.Listen(ctx)
	}
	return nil
}

// setServerInfo stores what the server says about itself in its handshake.
func (s *session) setServerInfo(result json.RawMessage) {
	s.capabilities, _ = rawjson.Get(result, "capabilities")
	s.instructions, _ = rawjson.Get(result, "instructions")
	if s.serverInfo, _ = rawjson.Get(result, "serverInfo"); s.serverInfo == nil {
		s.serverInfo, _ = rawjson.Get(wire.Meta(result), wire.MetaServerInfo)
	}
}

func clientInfo(name, version string) json.RawMessage {
	info := rawjson.AppendText([]byte(`{"name":`), name)
	return append(rawjson.AppendText(append(info, `,"version":`...), version), '}')
}
