package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errIdle means that an endpoint sent nothing for too long.
var errIdle = errors.New("the endpoint sent no data for too long")

// idleTransport is a transport that fails if the endpoint sends nothing for too long: no
// headers, or no byte of the body. Pings count as data, so a slow answer can take as
// long as the endpoint is alive.
type idleTransport struct {
	base    http.RoundTripper
	timeout time.Duration
}

func (a *idleTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(a.timeout, func() { cancel(errIdle) })
	resp, err := a.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errIdle) {
			err = errIdle
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &idleBody{ReadCloser: resp.Body, idleTransport: a, timer: timer, ctx: ctx, cancel: cancel}
	return resp, nil
}

// idleBody is a body with an idle timeout.
type idleBody struct {
	io.ReadCloser
	idleTransport *idleTransport
	timer         *time.Timer
	ctx           context.Context //nolint:containedctx // lives exactly as long as the body
	cancel        context.CancelCauseFunc
}

func (h *idleBody) Read(p []byte) (int, error) {
	h.timer.Reset(h.idleTransport.timeout)
	n, err := h.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(h.ctx), errIdle) {
		err = errIdle
	}
	return n, err
}

func (h *idleBody) Close() error {
	h.timer.Stop()
	h.cancel(nil)
	return h.ReadCloser.Close()
}
