package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// sseTransport is the HTTP+SSE transport of revision 2024-11-05: one GET stream
// carries everything the server sends, and POSTs to a URL that it names carry our
// messages.
type sseTransport struct {
	*dispatcher
	client *httpClient
	post   *url.URL
	life   *lifetime
}

// dialSSE opens the stream and waits until the server names the URL for POSTs.
func (o *Options) dialSSE(ctx context.Context, spec Spec, hooks Hooks) (Transport, error) {
	client, err := o.newHTTPClient(spec)
	if err != nil {
		return nil, notSent(err)
	}
	t := &sseTransport{dispatcher: newDispatcher(hooks), client: client, life: newLifetime()}
	detach := context.AfterFunc(ctx, func() { t.life.end(context.Cause(ctx)) })
	//nolint:contextcheck // the stream outlives ctx, which only bounds its opening
	body, err := client.openStream(t.life.ctx, maps.Clone(client.header))
	var events *sse.Reader
	if err == nil {
		events = sse.NewReader(body, o.MaxMessage)
		if t.post, err = postURL(client.url, events); err != nil {
			body.Close()
		}
	}
	if !detach() || err != nil {
		t.Close()
		return nil, notSent(orCause(ctx, err))
	}
	t.life.run(func(context.Context) { t.read(events, body) })
	return t, nil
}

// postURL reads the URL for POSTs, which must be at the same server.
func postURL(base *url.URL, events *sse.Reader) (*url.URL, error) {
	first, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("wait for the endpoint: %w", err)
	}
	if first.Name != "endpoint" {
		return nil, fmt.Errorf("first event is %q, not the endpoint", excerpt([]byte(first.Name)))
	}
	to, err := base.Parse(string(first.Data))
	if err != nil || to.Scheme != base.Scheme || to.Host != base.Host {
		return nil, errors.New("endpoint is at another server")
	}
	return to, nil
}

// Call implements Transport.
func (t *sseTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	id := out.Message.ID
	answer, err := t.expect(id)
	if err != nil {
		return wire.Message{}, err
	}
	defer t.forget(id)
	// Some servers answer the POST only when the call is done, so Call does not wait
	// for that answer. If the POST fails, the call fails.
	started := t.life.run(func(life context.Context) {
		if err := t.send(life, out.Encoded); err != nil {
			t.resolve(id, response{err: err})
		}
	})
	if !started {
		return wire.Message{}, notSent(t.Err())
	}
	select {
	case r := <-answer:
		return r.message, r.err
	case <-ctx.Done():
		return wire.Message{}, context.Cause(ctx)
	case <-t.done:
		return wire.Message{}, t.Err()
	}
}

// Send implements Transport.
func (t *sseTransport) Send(ctx context.Context, m wire.Message) error {
	return t.send(ctx, m.Append(nil))
}

func (t *sseTransport) send(ctx context.Context, message []byte) error {
	header := maps.Clone(t.client.header)
	header.Set("Content-Type", wire.ContentJSON)
	r, err := t.client.do(ctx, http.MethodPost, t.post, header, message)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, _ := readStart(r)
	switch {
	case r.StatusCode == http.StatusNotFound:
		t.fail(ErrSessionLost)
		return notSent(ErrSessionLost)
	case r.StatusCode >= 300:
		return newStatusError(r, body)
	}
	return nil
}

func (t *sseTransport) read(events *sse.Reader, body io.Closer) {
	defer body.Close()
	for {
		e, err := events.Next()
		if err != nil {
			t.fail(fmt.Errorf("event stream ended: %w", err))
			return
		}
		if e.Name == "" || e.Name == "message" {
			t.receive(e.Data)
		}
	}
}

// Close implements Transport.
func (t *sseTransport) Close() {
	t.fail(errClosed)
	t.life.end(errClosed)
	t.life.wait()
	t.client.close()
}
