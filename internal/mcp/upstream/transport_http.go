package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// httpTransport is Streamable HTTP: every message is a POST, its answer a JSON body or
// a stream of events. In the legacy era a GET stream brings what belongs to no
// request, and a header names the session.
type httpTransport struct {
	client *httpClient
	hooks  Hooks
	limit  int
	rest   time.Duration // for what comes after an answer

	life *lifetime

	mu          sync.Mutex
	session     string
	revision    string
	sessionLost bool
}

// dialHTTP prepares a link; nothing is sent before the first message.
func (o *Options) dialHTTP(spec Spec, hooks Hooks) (Transport, error) {
	client, err := o.newHTTPClient(spec)
	if err != nil {
		return nil, notSent(err)
	}
	return &httpTransport{client: client, hooks: hooks, limit: o.MaxMessage, rest: restTime, life: newLifetime()}, nil
}

// SetRevision implements Link.
func (l *httpTransport) SetRevision(revision string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision = revision
}

// Done implements Link.
func (l *httpTransport) Done() <-chan struct{} { return l.life.ctx.Done() }

// Err implements Link.
func (l *httpTransport) Err() error { return context.Cause(l.life.ctx) }

func (l *httpTransport) modern() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.EraOf(l.revision) == wire.Modern
}

// Call implements Link.
func (l *httpTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	return l.call(ctx, &out, nil)
}

// carry is Call for a draft.
func (l *httpTransport) carry(ctx context.Context, from *draft) (wire.Message, error) {
	return l.call(ctx, &Outgoing{Message: wire.Request(from.id, from.method, from.params), About: from.about}, from)
}

func (l *httpTransport) call(ctx context.Context, out *Outgoing, from *draft) (wire.Message, error) {
	if err := l.Err(); err != nil { // whoever calls gives up when that happens later
		return wire.Message{}, err
	}
	r, err := l.post(ctx, out, from)
	if err != nil {
		return wire.Message{}, err
	}
	m, rest, err := l.answer(ctx, out.Message.ID, &r)
	if err == nil && out.Message.Method == wire.MethodInitialize && m.Error == nil {
		l.mu.Lock()
		l.session = r.session
		l.mu.Unlock()
	}
	if rest != nil {
		l.drain(rest)
	}
	return m, err
}

// Send implements Link.
func (l *httpTransport) Send(ctx context.Context, m wire.Message) error {
	ctx, release := l.life.bind(ctx)
	defer release()
	r, err := l.post(ctx, &Outgoing{Message: m}, nil)
	if err != nil {
		return err
	}
	defer r.close()
	body, err := r.start()
	if r.code >= 300 {
		return r.fault(body)
	}
	return err
}

// post sends one message, which from writes if there is that. The response, whatever
// its status but a lost session or wanting credentials, is the caller's to read and
// close.
func (l *httpTransport) post(ctx context.Context, out *Outgoing, from *draft) (response, error) {
	to := l.dispatch(http.MethodPost, acceptsAll)
	if l.modern() && out.Message.Method != "" {
		to.asks, to.about, to.named = out.Message.Method, out.About, out.About != ""
		if !to.named {
			to.about, to.named = wire.NameOf(to.asks, out.Message.Params)
		}
	}
	if to.headers, to.draft = out.Headers, from; from == nil {
		to.body = out.Message.Append(make([]byte, 0, len(out.Message.Params)+len(out.Message.Result)+128))
	}
	r, err := l.client.do(ctx, &to)
	if err != nil {
		return response{}, err
	}
	if to.session != "" && l.checkSessionLost(&r) {
		r.close()
		return response{}, notSent(ErrSessionLost)
	}
	return r, nil
}

const acceptsAll = wire.ContentJSON + ", " + wire.ContentEvent

// checkSessionLost ends the link when the response says that its session is gone. The
// protocol has 404 for that; servers made after a popular example answer 400
// and talk of the session.
func (l *httpTransport) checkSessionLost(r *response) bool {
	switch r.code {
	case http.StatusNotFound:
	case http.StatusBadRequest:
		body := r.reader()
		start, _ := io.ReadAll(io.LimitReader(body, maxExcerpt))
		if !bytes.Contains(bytes.ToLower(start), []byte("session")) {
			r.body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(start), body), body}
			return false
		}
	default:
		return false
	}
	l.mu.Lock()
	l.sessionLost = true
	l.mu.Unlock()
	l.life.end(ErrSessionLost)
	return true
}

// dispatch begins one that says to which session it belongs.
func (l *httpTransport) dispatch(method, accept string) dispatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return dispatch{method: method, to: l.client.url, accept: accept, session: l.session, revision: l.revision}
}

// answerQuestion finds the response to the request id in an HTTP response. rest is what
// is left to read of the body; nil when it is closed.
func (l *httpTransport) answer(ctx context.Context, id wire.ID, r *response) (m wire.Message, rest io.ReadCloser, err error) {
	kind := r.media()
	if kind == wire.ContentEvent && r.code < 300 {
		return l.streamed(ctx, id, r.reader())
	}
	defer r.close()
	body, err := r.read(l.limit)
	if err != nil {
		return wire.Message{}, nil, orCause(ctx, err)
	}
	if kind == wire.ContentJSON {
		m, err := parse(body)
		switch {
		case err == nil && m.IsResponse() && (m.ID == id || m.ID == wire.NullID && m.Error != nil):
			return m, nil, nil
		case r.code < 300:
			return wire.Message{}, nil, fmt.Errorf("answer is not a response to the request: %s", excerpt(body))
		}
	}
	if r.code < 300 {
		return wire.Message{}, nil, fmt.Errorf("answer is %q, not MCP: %s", kind, excerpt(body))
	}
	return wire.Message{}, nil, r.fault(body)
}

// streamed reads events up to the response. A stream that ends before is taken
// up again where the server numbered its events.
func (l *httpTransport) streamed(ctx context.Context, id wire.ID, body io.ReadCloser) (wire.Message, io.ReadCloser, error) {
	last := ""
	for {
		events := sse.NewReader(body, l.limit)
		m, err := l.readUntil(id, events)
		if err == nil {
			return m, body, nil
		}
		body.Close()
		if events.LastID() != "" {
			last = events.LastID()
		}
		if ctx.Err() != nil || last == "" || l.modern() || errors.Is(err, wire.ErrTooLarge) {
			return wire.Message{}, nil, orCause(ctx, fmt.Errorf("answer broke off: %w", err))
		}
		if err := clock.Real().Sleep(ctx, positive(events.Retry(), 200*time.Millisecond)); err != nil {
			return wire.Message{}, nil, err
		}
		if body, err = l.resume(ctx, last); err != nil {
			return wire.Message{}, nil, orCause(ctx, fmt.Errorf("answer broke off: %w", unknown(err)))
		}
	}
}

// unknown takes the mark of ErrNotSent off an error: what was not sent was not
// the request itself.
func unknown(err error) error { return errors.New(err.Error()) }

// readUntil hands on what is on the stream before the response to id.
func (l *httpTransport) readUntil(id wire.ID, events *sse.Reader) (wire.Message, error) {
	for {
		e, err := events.Next()
		if err != nil {
			return wire.Message{}, err
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		m, err := parse(e.Data)
		switch {
		case err != nil:
			l.hooks.Garbage(excerpt(e.Data))
		case !m.IsResponse():
			l.hooks.Received(id, m)
		case m.ID == id:
			return m, nil
		}
	}
}

// resume opens the rest of a stream after the event last.
func (l *httpTransport) resume(ctx context.Context, last string) (io.ReadCloser, error) {
	to := l.dispatch(http.MethodGet, wire.ContentEvent)
	if last != "" {
		to.headers = append(to.headers, Header{wire.HeaderLastEventID, last})
	}
	r, err := l.client.do(ctx, &to)
	if err != nil {
		return nil, err
	}
	if r.code != http.StatusOK || r.media() != wire.ContentEvent {
		r.close()
		return nil, r.fault(nil)
	}
	return r.reader(), nil
}

// drain reads what little is left of a body, so that its connection can serve
// the next request. It does not wait: the call is over, and what the server takes its
// time to end is left a moment after it.
func (l *httpTransport) drain(body io.ReadCloser) {
	if b, ok := body.(interface{ linger(limit time.Duration) }); ok {
		b.linger(l.rest)
	}
	ran := l.life.run(func(context.Context) {
		_, _ = io.CopyN(io.Discard, body, 64<<10)
		body.Close()
	})
	if !ran {
		body.Close()
	}
}

// restTime is how long an answer that is known may take to end. Many servers end
// the stream after they have sent the answer on it, not with it.
const restTime = 100 * time.Millisecond

// Close ends the session at the server, as far as it can be told, and the link.
func (l *httpTransport) Close() {
	l.mu.Lock()
	leave := l.session != "" && !l.sessionLost
	l.sessionLost = true
	l.mu.Unlock()
	l.life.end(errClosed)
	if leave {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		to := l.dispatch(http.MethodDelete, "")
		if r, err := l.client.do(ctx, &to); err == nil {
			r.close()
		}
	}
	l.life.wait()
	l.client.close()
}

// CancelsOnDisconnect tells that giving up a Call is enough to cancel it at the server.
func (l *httpTransport) CancelsOnDisconnect() bool { return l.modern() }
