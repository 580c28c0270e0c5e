package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// sseTransport is the HTTP+SSE transport of revision 2024-11-05: one GET stream brings
// everything the server says, POSTs to an address it names carry what we say.
type sseTransport struct {
	*dispatcher
	client *httpClient
	post   *url.URL
	life   *lifetime
}

// dialSSE opens the stream and waits until the server names its address.
func (o *Options) dialSSE(ctx context.Context, spec Spec, hooks Hooks) (Transport, error) {
	client, err := o.newHTTPClient(spec)
	if err != nil {
		return nil, notSent(err)
	}
	l := &sseTransport{dispatcher: newDispatcher(hooks), client: client, life: newLifetime()}
	hangUp := context.AfterFunc(ctx, func() { l.life.end(context.Cause(ctx)) })
	//nolint:contextcheck // the stream outlives ctx, which only bounds its opening
	events, body, err := openSSE(l.life.ctx, client, o.MaxMessage)
	if err == nil {
		if l.post, err = postURL(client.url, events); err != nil {
			body.Close()
		}
	}
	if !hangUp() || err != nil {
		l.Close()
		return nil, notSent(orCause(ctx, err))
	}
	l.life.run(func(context.Context) { l.read(events, body) })
	return l, nil
}

func openSSE(ctx context.Context, client *httpClient, limit int) (*sse.Reader, io.ReadCloser, error) {
	r, err := client.do(ctx, &dispatch{method: http.MethodGet, to: client.url, accept: wire.ContentEvent})
	if err != nil {
		return nil, nil, err
	}
	if r.code != http.StatusOK || r.media() != wire.ContentEvent {
		r.close()
		return nil, nil, r.fault(nil)
	}
	body := r.reader()
	return sse.NewReader(body, limit), body, nil
}

// postURL reads where to post, which must be at the server we were told of.
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

// Call implements Link.
func (l *sseTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	id := out.Message.ID
	answer, err := l.expect(id)
	if err != nil {
		return wire.Message{}, err
	}
	defer l.forget(id)
	// Some servers answer the POST only when the call is done, so its end is not
	// waited for; what goes wrong with it ends the call.
	ran := l.life.run(func(life context.Context) {
		if err := l.Send(life, out.Message); err != nil {
			l.resolve(id, reply{err: err})
		}
	})
	if !ran {
		return wire.Message{}, notSent(l.Err())
	}
	select {
	case r := <-answer:
		return r.message, r.err
	case <-ctx.Done():
		return wire.Message{}, context.Cause(ctx)
	case <-l.done:
		return wire.Message{}, l.Err()
	}
}

// Send implements Link.
func (l *sseTransport) Send(ctx context.Context, m wire.Message) error {
	r, err := l.client.do(ctx, &dispatch{method: http.MethodPost, to: l.post, body: m.Append(nil)})
	if err != nil {
		return err
	}
	defer r.close()
	body, _ := r.start()
	switch {
	case r.code == http.StatusNotFound:
		l.fail(ErrSessionLost)
		return notSent(ErrSessionLost)
	case r.code >= 300:
		return r.fault(body)
	}
	return nil
}

func (l *sseTransport) read(events *sse.Reader, body io.Closer) {
	defer body.Close()
	for {
		e, err := events.Next()
		if err != nil {
			l.fail(fmt.Errorf("event stream ended: %w", err))
			return
		}
		if e.Name == "" || e.Name == "message" {
			l.receive(e.Data)
		}
	}
}

// Close implements Link.
func (l *sseTransport) Close() {
	l.fail(errClosed)
	l.life.end(errClosed)
	l.life.wait()
	l.client.close()
}
