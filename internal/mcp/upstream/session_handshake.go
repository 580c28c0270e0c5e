package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// detection is how a server was reached and which era it speaks. It is stored, so
// that the next connection need not detect it again.
type detection struct {
	Endpoint endpoint `json:"way"`
	Era      wire.Era `json:"era"`
}

func detectedLegacy(e endpoint) detection { return detection{e, wire.Legacy} }

// connectAttempt is one attempt to connect to the server of a spec.
type connectAttempt struct {
	opts   *Options
	spec   Spec
	hooks  Hooks // Received is set per session
	notify func(method string, params json.RawMessage)
	roots  rootsSource
	lost   func(*session, error) // ends a session whose connection is lost
}

// open connects to the server: first at the endpoint that worked last time, then
// at the others. It tries the next endpoint only if something answered at this one
// that is not an MCP server of that kind.
func (a *connectAttempt) open(ctx context.Context, known detection) (*session, detection, error) {
	limit := a.opts.startTimeout(a.spec)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &startTimeoutError{limit})
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
	era, pinned := a.pinnedEra(e)
	if !pinned {
		era = known
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
	err = s.abandon(err)
	if !pinned && ctx.Err() == nil && (isAnswer(err) && known != wire.Unknown || known == wire.Modern && diedOfProbe(err)) {
		return a.handshake(ctx, e, wire.Unknown)
	}
	return nil, err
}

// pinnedEra is the only era that the spec or the transport allows, if there is one.
func (a *connectAttempt) pinnedEra(e endpoint) (era wire.Era, pinned bool) {
	switch {
	case e.legacyOnly(), a.spec.Protocol == ProtocolLegacy:
		return wire.Legacy, true
	case a.spec.Protocol == ProtocolModern:
		return wire.Modern, true
	}
	return wire.Unknown, false
}

// dial opens a transport and a session over it, before the handshake.
func (a *connectAttempt) dial(ctx context.Context, e endpoint) (*session, error) {
	s := newSession(a.opts, e, a.notify)
	s.source, s.peer = a.roots, newPeer(a.spec.Name, e)
	var err error
	if s.intercept, err = a.interceptor(); err != nil {
		s.life.end(err)
		return nil, notSent(err)
	}
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
	s.beginModern()
	result, err := s.sendDiscover(ctx)
	if err != nil {
		return err
	}
	return s.acceptModern(result)
}

// beginModern makes further requests modern ones.
func (s *session) beginModern() {
	s.era, s.revision = wire.Modern, wire.NewestModern
	s.transport.SetRevision(s.revision)
}

// sendDiscover sends the request of the modern handshake.
func (s *session) sendDiscover(ctx context.Context) (json.RawMessage, error) {
	handshake := &request{method: wire.MethodDiscover, params: json.RawMessage(`{}`), timeout: handshakeTimeout, handshake: true}
	result, err := s.request(ctx, handshake)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeUnsupportedRevision && listContains(refused.Data, "supported", wire.NewestModern) {
		result, err = s.request(ctx, handshake) // it refused a revision that it lists as supported: try once more
	}
	if err == nil && !listContains(result, "supportedVersions", wire.NewestModern) {
		err = wire.Errorf(wire.CodeUnsupportedRevision, "server does not speak %s", wire.NewestModern)
	}
	return result, err
}

// acceptModern ends the modern handshake.
func (s *session) acceptModern(result json.RawMessage) error {
	s.beginModern()
	s.setServerInfo(result)
	return nil
}

// handshakeTimeout is longer than any start: the context of the attempt ends the
// handshake.
const handshakeTimeout = 24 * time.Hour

// listContains reports whether the list under key contains text.
func listContains(object json.RawMessage, key, text string) bool {
	raw, _ := rawjson.Get(object, key)
	items, _ := rawjson.Items(raw)
	return slices.ContainsFunc(items, func(item json.RawMessage) bool { t, ok := rawjson.Text(item); return ok && t == text })
}

// initialize performs the legacy handshake.
func (s *session) initialize(ctx context.Context) error {
	s.beginLegacy()
	result, err := s.sendInitialize(ctx)
	if err != nil {
		return err
	}
	return s.acceptLegacy(ctx, result)
}

// beginLegacy makes further requests legacy ones.
func (s *session) beginLegacy() {
	s.era, s.revision = wire.Legacy, ""
	s.transport.SetRevision("")
}

// sendInitialize sends the request of the legacy handshake.
func (s *session) sendInitialize(ctx context.Context) (json.RawMessage, error) {
	params := json.RawMessage(`{"protocolVersion":"` + wire.NewestLegacy + `","capabilities":` + allCapabilities + `}`)
	params = rawjson.Set(params, "clientInfo", s.opts.clientInfo)
	return s.request(ctx, &request{method: wire.MethodInitialize, params: params, timeout: handshakeTimeout, handshake: true})
}

// acceptLegacy ends the legacy handshake.
func (s *session) acceptLegacy(ctx context.Context, result json.RawMessage) error {
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
