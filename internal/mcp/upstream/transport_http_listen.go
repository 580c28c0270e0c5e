package upstream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/sse"
)

// listenTime is how long we wait for a stream of notifications to open before we
// go on without it.
const listenTime = 250 * time.Millisecond

// Listen keeps the GET stream of the legacy era open, on which servers send what
// belongs to no request. Servers without one are left alone. It returns when the
// stream is open or cannot be, or after a short while: what a server says before
// nobody hears.
func (l *httpTransport) Listen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	opened := sync.OnceFunc(cancel)
	if l.life.run(func(life context.Context) { l.keepListening(life, opened) }) {
		<-ctx.Done()
	}
}

// openSubscription opens the stream again and again until ctx ends or the server has none.
func (l *httpTransport) keepListening(ctx context.Context, opened func()) {
	last, reopened := "", false
	for failures := 1; ; failures++ {
		began := time.Now()
		body, err := l.resume(ctx, last)
		opened()
		var status *statusError
		if errors.As(err, &status) && status.Code < 500 {
			return // 405, or 404 as some answer: this server has no such stream
		}
		delay := time.Duration(0)
		if err == nil {
			if reopened {
				l.hooks.Relist()
			}
			reopened = true
			last, delay = l.readNotifications(body, last)
		}
		if ctx.Err() != nil {
			return
		}
		if delay == 0 {
			if time.Since(began) > time.Second {
				failures = 1
			}
			delay = backoff.Policy{}.Delay(failures)
			l.hooks.CheckHealth()
		}
		if clock.Real().Sleep(ctx, delay) != nil {
			return
		}
	}
}

// readNotifications takes what a stream says until it ends, and gives the id of its last event
// and when the server wants to be called again, if it hung up and said so.
func (l *httpTransport) readNotifications(body io.ReadCloser, last string) (id string, again time.Duration) {
	events := sse.NewReader(body, l.limit)
	_, err := l.readUntil("", events)
	body.Close()
	if errors.Is(err, io.EOF) {
		again = events.Retry()
	}
	return cmp.Or(events.LastID(), last), again
}
