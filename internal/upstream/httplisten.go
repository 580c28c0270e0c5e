package upstream

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/luanette/luanette/internal/backoff"
	"github.com/luanette/luanette/internal/wire"
)

// Listen keeps the GET stream of the legacy era open, on which servers send what
// belongs to no request. Servers without one are left alone.
func (l *httpLink) Listen() { l.life.run(l.listen) }

func (l *httpLink) listen(ctx context.Context) {
	last := ""
	failures := 0
	for {
		body, err := l.resume(ctx, last)
		if err != nil {
			var status *statusError
			if errors.As(err, &status) && status.Code < 500 {
				return // 405, or 404 as some answer: this server has no such stream
			}
			failures++
		} else {
			began := time.Now()
			events := wire.NewEventReader(body, l.limit)
			err = l.hear(events)
			body.Close()
			if events.LastID() != "" {
				last = events.LastID()
			}
			failures++
			if events.Retry() > 0 || time.Since(began) > time.Second {
				failures = 1
			}
			if errors.Is(err, io.EOF) && events.Retry() > 0 {
				if pause(ctx, events.Retry()) != nil {
					return
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		l.hooks.Doubt()
		if pause(ctx, backoff.Policy{}.Delay(failures)) != nil {
			return
		}
	}
}

// hear hands on what comes until the stream ends.
func (l *httpLink) hear(events *wire.EventReader) error {
	_, err := l.until("", events)
	return err
}
