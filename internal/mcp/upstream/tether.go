package upstream

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/cancel"
)

// tether is the body of a response that the standard library reads. It ends with its
// request, as the library has it, until that is over and it lingers.
type tether struct {
	io.ReadCloser
	watch cancel.Watch
	end   context.CancelCauseFunc
	timer *time.Timer // nil: it does not linger
}

// tethered sends a dispatch by the standard library, with a context that ends with ctx
// as long as the answer does not linger.
func (c *httpClient) tethered(ctx context.Context, d *dispatch, send func(*http.Request) (*http.Response, error)) (response, error) {
	if ctx.Err() != nil { // nobody wants to know
		return response{}, context.Cause(ctx)
	}
	t := &tether{}
	var life context.Context
	life, t.end = context.WithCancelCause(context.WithoutCancel(ctx))
	t.watch.Begin(ctx, &c.vigil, func() { t.end(context.Cause(ctx)) })
	request, err := c.request(life, d)
	if err != nil {
		t.release()
		return response{}, err
	}
	r, err := received(send(request)) //nolint:bodyclose // whoever gets the response closes it
	if err != nil {
		t.release()
		return response{}, err
	}
	t.ReadCloser, r.body = r.body, t
	return r, nil
}

func (t *tether) linger(limit time.Duration) {
	t.watch.End()
	t.timer = time.AfterFunc(limit, func() { t.end(context.Canceled) })
}

func (t *tether) Close() error {
	err := t.ReadCloser.Close()
	t.release()
	return err
}

// release lets go of the request's context.
func (t *tether) release() {
	t.watch.End()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.end(context.Canceled)
}
