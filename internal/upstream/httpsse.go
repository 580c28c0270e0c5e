package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/wire"
)

// sseLink is the HTTP+SSE transport of revision 2024-11-05: one GET stream brings
// everything the server says, POSTs to an address it names carry what we say.
type sseLink struct {
	*pipe
	client *client
	post   *url.URL
	cancel context.CancelFunc
}

// dialSSE opens the stream and waits until the server names its address.
func (o *Options) dialSSE(ctx context.Context, spec Spec, hooks Hooks) (Link, error) {
	client, err := o.newClient(spec)
	if err != nil {
		return nil, notSent(err)
	}
	life, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	events, body, err := openSSE(life, client, o.MaxResult)
	if err != nil {
		cancel()
		client.close()
		return nil, notSent(err)
	}
	l := &sseLink{client: client, cancel: cancel}
	if l.post, err = address(client.url, events); err != nil || !stop() {
		cancel()
		body.Close()
		client.close()
		return nil, notSent(orCause(ctx, err))
	}
	l.pipe = newPipe(hooks, func(p *parcel) error {
		p.begin(0)
		return l.send(p.ctx, p.data)
	})
	l.wg.Go(func() { l.read(events, body) })
	return l, nil
}

func openSSE(ctx context.Context, client *client, limit int) (*wire.EventReader, io.ReadCloser, error) {
	request, err := client.request(ctx, http.MethodGet, client.url.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", wire.ContentEvent)
	response, err := client.do(request)
	if err != nil {
		return nil, nil, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK || kind != wire.ContentEvent {
		response.Body.Close()
		return nil, nil, statusFault(response, nil)
	}
	return wire.NewEventReader(response.Body, limit), response.Body, nil
}

// address reads where to post, which must be at the server we were told of.
func address(base *url.URL, events *wire.EventReader) (*url.URL, error) {
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

func (l *sseLink) send(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := l.client.request(ctx, http.MethodPost, l.post.String(), data)
	if err != nil {
		return notSent(err)
	}
	request.Header.Set("Content-Type", wire.ContentJSON)
	response, err := l.client.do(request)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return notSent(ErrGone)
	case response.StatusCode >= 300:
		return statusFault(response, nil)
	}
	return nil
}

func (l *sseLink) read(events *wire.EventReader, body io.Closer) {
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
func (l *sseLink) Close() {
	l.fail(errClosed)
	l.cancel()
	l.wg.Wait()
	l.client.close()
}
