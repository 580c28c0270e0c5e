package upstream

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// httpTransport is Streamable HTTP: every message is a POST, its answer a JSON body
// or a stream of events. In the legacy era a GET stream carries the notifications
// that belong to no request, and a header names the session.
type httpTransport struct {
	client    *httpClient
	hooks     Hooks
	limit     int
	drainTime time.Duration // for the end of a stream after its answer

	life *lifetime

	mu       sync.Mutex
	session  string
	revision string
	header   http.Header // of every POST; replaced when session or revision change, never altered
	lost     bool        // the server no longer knows the session
}

// defaultDrainTime is how long the end of a stream is awaited after its answer.
// Many servers end the stream some time after they have sent the answer.
const defaultDrainTime = 100 * time.Millisecond

// dialHTTP prepares a transport; nothing is sent before the first message.
func (o *Options) dialHTTP(spec Spec, hooks Hooks) (Transport, error) {
	client, err := o.newHTTPClient(spec)
	if err != nil {
		return nil, notSent(err)
	}
	return newHTTPTransport(client, hooks, o.MaxMessage), nil
}

func newHTTPTransport(client *httpClient, hooks Hooks, limit int) *httpTransport {
	t := &httpTransport{client: client, hooks: hooks, limit: limit, drainTime: defaultDrainTime, life: newLifetime()}
	t.setHeader()
	return t
}

// SetRevision implements Transport.
func (t *httpTransport) SetRevision(revision string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revision = revision
	t.setHeader()
}

func (t *httpTransport) setSession(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session = id
	t.setHeader()
}

// setHeader makes the header of POSTs; t.mu is held.
func (t *httpTransport) setHeader() {
	t.header = t.protocolHeader()
	t.header.Set("Accept", wire.ContentJSON+", "+wire.ContentEvent)
	t.header.Set("Content-Type", wire.ContentJSON)
}

// protocolHeader is the header with the session and the revision; t.mu is held.
func (t *httpTransport) protocolHeader() http.Header {
	header := maps.Clone(t.client.header)
	if t.session != "" {
		header.Set(wire.HeaderSession, t.session)
	}
	if t.revision != "" {
		header.Set(wire.HeaderRevision, t.revision)
	}
	return header
}

// Done implements Transport.
func (t *httpTransport) Done() <-chan struct{} { return t.life.ctx.Done() }

// Err implements Transport.
func (t *httpTransport) Err() error { return context.Cause(t.life.ctx) }

// CancelsOnDisconnect reports whether ending the HTTP request cancels the call.
func (t *httpTransport) CancelsOnDisconnect() bool { return t.modern() }

// HasSession reports whether the server has answered initialize with a session.
func (t *httpTransport) HasSession() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session != ""
}

func (t *httpTransport) modern() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return wire.EraOf(t.revision) == wire.Modern
}

// Call implements Transport.
func (t *httpTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	if err := t.Err(); err != nil { // if it ends later, the session cancels ctx
		return wire.Message{}, err
	}
	r, err := t.post(ctx, &out)
	if err != nil {
		return wire.Message{}, err
	}
	var m wire.Message
	if mediaType(r) == wire.ContentEvent && r.StatusCode < 300 {
		m, err = t.readStream(ctx, out.Message.ID, r.Body)
	} else {
		m, err = t.readJSON(out.Message.ID, r)
	}
	if err != nil {
		return wire.Message{}, orCause(ctx, err)
	}
	if out.Message.Method == wire.MethodInitialize && m.Error == nil {
		t.setSession(r.Header.Get(wire.HeaderSession))
	}
	return m, nil
}

// Send implements Transport.
func (t *httpTransport) Send(ctx context.Context, m wire.Message) error {
	ctx, release := t.life.bind(ctx)
	defer release()
	r, err := t.post(ctx, &Outgoing{Message: m, Encoded: m.Append(nil)})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := readStart(r)
	if r.StatusCode >= 300 {
		return newStatusError(r, body)
	}
	return err
}

// post sends one message. The caller reads and closes the response, whatever its
// status, unless the session is lost or credentials are missing.
func (t *httpTransport) post(ctx context.Context, out *Outgoing) (*http.Response, error) {
	t.mu.Lock()
	header, session, modern := maps.Clone(t.header), t.session, wire.EraOf(t.revision) == wire.Modern
	t.mu.Unlock()
	method := out.Message.Method
	if modern && method != "" || method == wire.MethodInitialize { // a server of both eras demands it of every request
		header.Set(wire.HeaderMethod, method)
		about, ok := out.About, out.About != ""
		if !ok {
			about, ok = wire.NameOf(method, out.Message.Params)
		}
		if ok {
			header.Set(wire.HeaderName, wire.EncodeHeader(about))
		}
	}
	for _, h := range out.Headers {
		header.Set(h.Name, h.Value)
	}
	r, err := t.client.do(ctx, http.MethodPost, t.client.url, header, out.Encoded)
	if err != nil {
		return nil, err
	}
	if session != "" && t.sessionLost(r) {
		r.Body.Close()
		return nil, notSent(ErrSessionLost)
	}
	return r, nil
}

// Close ends the session at the server, if it can be reached, and the transport.
func (t *httpTransport) Close() {
	t.mu.Lock()
	header, endSession := t.protocolHeader(), t.session != "" && !t.lost
	t.lost = true
	t.mu.Unlock()
	t.life.end(errClosed)
	if endSession {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if r, err := t.client.do(ctx, http.MethodDelete, t.client.url, header, nil); err == nil {
			r.Body.Close()
		}
	}
	t.life.wait()
	t.client.close()
}
