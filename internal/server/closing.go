package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// closing closes what was opened, the latest first.
type closing []closingPart

// closingPart is one part. Every part has its own time limit, so that a slow one does not use
// up the time of the others, and one that never ends does not keep the program from ending.
type closingPart struct {
	name   string
	enough time.Duration
	leave  func(context.Context) error
}

// Limits of closing, beyond a part's own.
const (
	slowAfter   = 2 * time.Second // a part that takes longer is named in the log
	partTimeout = 5 * time.Second // for a part that has no context to end it
)

// within adds a part that may take a while.
func (c *closing) within(name string, enough time.Duration, leave func(context.Context) error) {
	*c = append(*c, closingPart{name, enough, leave})
}

// add adds a part that has its own time limit, or needs none.
func (c *closing) add(name string, leave func() error) {
	c.within(name, partTimeout, func(context.Context) error { return leave() })
}

func (c *closing) plain(name string, leave func()) {
	c.add(name, func() error { leave(); return nil })
}

func (c *closing) close(ctx context.Context, log *slog.Logger) error {
	var failed []error
	for _, part := range slices.Backward(*c) {
		if err := part.close(ctx, log); err != nil {
			failed = append(failed, fmt.Errorf("close %s: %w", part.name, err))
		}
	}
	*c = nil
	return errors.Join(failed...)
}

// close closes the part, and gives it up when its time is over: the process ends soon, and
// with it what is left.
func (p closingPart) close(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.enough)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.leave(ctx) }()
	slow, limit := time.NewTimer(slowAfter), time.NewTimer(p.enough+slowAfter) // with time to say that ctx has ended
	defer slow.Stop()
	defer limit.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-slow.C:
			log.WarnContext(ctx, "still closing", "part", p.name, "limit", p.enough)
		case <-limit.C:
			return fmt.Errorf("not done after %s", p.enough)
		}
	}
}
