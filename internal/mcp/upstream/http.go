package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/sse"
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

// Traits implements Transport.
func (t *httpTransport) Traits() Traits {
	return Traits{CancelsOnDisconnect: t.modern, KeepsContext: true, HasSession: t.hasSession, Listen: t.listen}
}

func (t *httpTransport) hasSession() bool {
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

// readJSON reads a response that is not a stream, and closes it.
func (t *httpTransport) readJSON(id wire.ID, r *http.Response) (wire.Message, error) {
	defer r.Body.Close()
	body, err := readBody(r, t.limit)
	if err != nil {
		return wire.Message{}, err
	}
	kind := mediaType(r)
	if kind == wire.ContentJSON {
		m, err := parse(body)
		switch {
		case err == nil && m.IsResponse() && (m.ID == id || m.ID == wire.NullID && m.Error != nil):
			return m, nil
		case r.StatusCode < 300:
			return wire.Message{}, fmt.Errorf("answer is not a response to the request: %s", excerpt(body))
		}
	}
	if r.StatusCode < 300 {
		return wire.Message{}, fmt.Errorf("answer is %q, not MCP: %s", kind, excerpt(body))
	}
	return wire.Message{}, newStatusError(r, body)
}

// readStream reads events up to the response. If a legacy stream ends before, it
// is resumed, provided that the server numbers its events.
func (t *httpTransport) readStream(ctx context.Context, id wire.ID, body io.ReadCloser) (wire.Message, error) {
	last := ""
	for {
		events := sse.NewReader(body, t.limit)
		m, err := t.readUntil(id, events)
		if err == nil {
			t.drain(body)
			return m, nil
		}
		body.Close()
		if events.LastID() != "" {
			last = events.LastID()
		}
		if ctx.Err() != nil || last == "" || t.modern() || errors.Is(err, wire.ErrTooLarge) {
			return wire.Message{}, fmt.Errorf("answer ended early: %w", err)
		}
		if err := clock.Real().Sleep(ctx, positive(events.Retry(), 200*time.Millisecond)); err != nil {
			return wire.Message{}, err
		}
		if body, err = t.openStream(ctx, last); err != nil {
			// Without the chain: ErrNotSent would be about the GET, not about the call.
			return wire.Message{}, errors.New("answer ended early: " + err.Error())
		}
	}
}

// readUntil reads a stream up to the response to id. It passes on the requests and
// notifications before it.
func (t *httpTransport) readUntil(id wire.ID, events *sse.Reader) (wire.Message, error) {
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
			t.hooks.Garbage(excerpt(e.Data))
		case !m.IsResponse():
			t.hooks.Received(id, m)
		case m.ID == id:
			return m, nil
		}
	}
}

// drain reads the end of a stream in the background, so that its connection can
// be reused. The call does not wait for it.
func (t *httpTransport) drain(body io.ReadCloser) {
	limit := time.AfterFunc(t.drainTime, func() { body.Close() })
	started := t.life.run(func(context.Context) {
		_, _ = io.CopyN(io.Discard, body, 64<<10)
		limit.Stop()
		body.Close()
	})
	if !started {
		body.Close()
	}
}

// statusError is an HTTP status that is not an answer.
type statusError struct {
	Code      int
	Status    string
	Challenge string // WWW-Authenticate
	Body      string
}

// newStatusError takes the response and the beginning of its body.
func newStatusError(r *http.Response, body []byte) *statusError {
	return &statusError{
		Code:      r.StatusCode,
		Status:    r.Status,
		Challenge: clean(strings.Join(r.Header.Values("WWW-Authenticate"), ", ")),
		Body:      excerpt(body),
	}
}

func (e *statusError) Error() string {
	text := "server answered " + e.Status
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// auth reports whether the server requires credentials.
func (e *statusError) auth() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

func mediaType(r *http.Response) string { return wire.MediaType(r.Header.Get("Content-Type")) }

// maxExact is the largest announced body for which memory is allocated at once.
const maxExact = 64 << 10

// readBody reads a body of up to limit bytes.
func readBody(r *http.Response, limit int) ([]byte, error) {
	if size := r.ContentLength; size > 0 && size <= maxExact && size <= int64(limit) {
		body := make([]byte, size)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		return body, nil
	}
	var buffer bytes.Buffer
	n, err := buffer.ReadFrom(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("read answer over %d bytes: %w", limit, wire.ErrTooLarge)
	}
	return buffer.Bytes(), nil
}

// readStart reads as much of a body as errors show.
func readStart(r *http.Response) ([]byte, error) {
	start, err := io.ReadAll(io.LimitReader(r.Body, maxExcerpt))
	if err != nil {
		err = fmt.Errorf("read answer: %w", err)
	}
	return start, err
}

// sessionLost ends the transport if the response says that the server no longer
// knows the session. The protocol has 404 for that; servers derived from a popular
// example answer 400 and mention the session.
func (t *httpTransport) sessionLost(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusNotFound:
	case http.StatusBadRequest:
		body := r.Body
		start, _ := io.ReadAll(io.LimitReader(body, maxExcerpt))
		if !bytes.Contains(bytes.ToLower(start), []byte("session")) {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(start), body), body}
			return false
		}
	default:
		return false
	}
	t.mu.Lock()
	t.lost = true
	t.mu.Unlock()
	t.life.end(ErrSessionLost)
	return true
}

// openStream opens a GET stream, after the event last unless that is empty.
func (t *httpTransport) openStream(ctx context.Context, last string) (io.ReadCloser, error) {
	t.mu.Lock()
	header := t.protocolHeader()
	t.mu.Unlock()
	if last != "" {
		header.Set(wire.HeaderLastEventID, last)
	}
	return t.client.openStream(ctx, header)
}

// listenTimeout is how long a connection attempt waits for the stream of
// notifications before it goes on without it.
const listenTimeout = 250 * time.Millisecond

// listen keeps the GET stream of the legacy era open, on which servers send
// notifications that belong to no request. It returns when the stream is open or
// the server has none, or after listenTimeout.
func (t *httpTransport) listen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	opened := sync.OnceFunc(cancel)
	if t.life.run(func(life context.Context) { t.keepListening(life, opened) }) {
		<-ctx.Done()
	}
}

// keepListening opens the stream again and again until ctx ends or the server has
// none.
func (t *httpTransport) keepListening(ctx context.Context, opened func()) {
	last, reopened := "", false
	for failures := 1; ; failures++ {
		began := time.Now()
		body, err := t.openStream(ctx, last)
		opened()
		var status *statusError
		if errors.As(err, &status) && status.Code < 500 {
			return // usually 405 or 404: this server has no such stream
		}
		delay := time.Duration(0)
		if err == nil {
			if reopened {
				t.hooks.Relist()
			}
			reopened = true
			last, delay = t.readNotifications(body, last)
		}
		if ctx.Err() != nil {
			return
		}
		if delay == 0 {
			if time.Since(began) > time.Second {
				failures = 1
			}
			delay = backoff.Policy{}.Delay(failures)
			t.hooks.CheckHealth()
		}
		if clock.Real().Sleep(ctx, delay) != nil {
			return
		}
	}
}

// readNotifications reads a stream until it ends. It returns the id of its last
// event, and the delay after which the server wants the next request, if the
// server ended the stream and said so.
func (t *httpTransport) readNotifications(body io.ReadCloser, last string) (id string, retry time.Duration) {
	events := sse.NewReader(body, t.limit)
	_, err := t.readUntil("", events)
	body.Close()
	if errors.Is(err, io.EOF) {
		retry = events.Retry()
	}
	return cmp.Or(events.LastID(), last), retry
}
