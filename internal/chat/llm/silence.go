package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errSilent says that an endpoint said nothing for too long.
var errSilent = errors.New("the endpoint went silent")

// attentive is a transport that gives up on an endpoint which says nothing at
// all: no headers, then no byte of the answer. Pings count as words, so a slow
// answer is waited for as long as the endpoint is alive.
type attentive struct {
	base    http.RoundTripper
	silence time.Duration
}

func (a *attentive) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(a.silence, func() { cancel(errSilent) })
	resp, err := a.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &heard{ReadCloser: resp.Body, attentive: a, timer: timer, ctx: ctx, cancel: cancel}
	return resp, nil
}

// heard is a body whose silence is noticed.
type heard struct {
	io.ReadCloser
	attentive *attentive
	timer     *time.Timer
	ctx       context.Context //nolint:containedctx // lives exactly as long as the body
	cancel    context.CancelCauseFunc
}

func (h *heard) Read(p []byte) (int, error) {
	h.timer.Reset(h.attentive.silence)
	n, err := h.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(h.ctx), errSilent) {
		err = errSilent
	}
	return n, err
}

func (h *heard) Close() error {
	h.timer.Stop()
	h.cancel(nil)
	return h.ReadCloser.Close()
}
