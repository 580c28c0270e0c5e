package httpcall

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

const (
	maxAttempts = 4
	maxWait     = time.Minute // for one call in total, until the service may be asked again
	reportEvery = 10 * time.Second
)

// send sends a request, and again after errors where that is allowed: when the service
// says when it may be asked again, and when a connection failed.
func (c *Client) send(ctx context.Context, r Request, token string) (*http.Response, error) {
	left := maxWait
	if err := c.awaitRate(ctx, r, &left); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		answer, err := c.follow(ctx, r, token, attempt-1)
		delay, again := c.retryIn(r, attempt, answer, err)
		if !again || attempt == maxAttempts || delay > left {
			return answer, err
		}
		reason := "the connection failed"
		if answer != nil {
			reason = "the service is busy or its rate limit is reached"
			answer.Body.Close()
		}
		if err := c.wait(ctx, r, delay, reason); err != nil {
			return nil, err
		}
		left -= delay
	}
}

// retryIn is when a request may be sent again, if at all.
func (c *Client) retryIn(r Request, attempt int, answer *http.Response, err error) (time.Duration, bool) {
	if err != nil {
		again := errors.Is(err, errNotSent) || r.Repeatable && fault.CodeOf(err) == fault.Unavailable
		return backoff.Policy{First: 100 * time.Millisecond}.Delay(attempt), again
	}
	if !r.Repeatable {
		return 0, false
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden:
		return retryAfter(answer.Header, time.Now())
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return backoff.Policy{First: 500 * time.Millisecond}.Delay(attempt), attempt == 1
	}
	return 0, false
}

// retryAfter reads when a service may be asked again: Retry-After, or the reset of a rate
// limit that is used up.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	if text := header.Get("Retry-After"); text != "" {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 {
			return time.Duration(seconds * float64(time.Second)), true
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(at.Sub(now), 0), true
		}
	}
	if first(header, "X-RateLimit-Remaining", "RateLimit-Remaining") != "0" {
		return 0, false
	}
	reset, err := strconv.ParseInt(first(header, "X-RateLimit-Reset", "RateLimit-Reset"), 10, 64)
	switch {
	case err != nil || reset < 0:
		return 0, false
	case reset > 1e9: // a time, and no number of seconds
		return max(time.Unix(reset, 0).Sub(now), 0), true
	}
	return time.Duration(reset) * time.Second, true
}

func first(header http.Header, names ...string) string {
	for _, name := range names {
		if text := header.Get(name); text != "" {
			return text
		}
	}
	return ""
}

// rate is what the service said about its rate limit.
type rate struct {
	mu      sync.Mutex
	blocked time.Time // until when it answers nothing
}

// learn notices a rate limit that is used up.
func (l *rate) learn(answer *http.Response) {
	delay, limited := retryAfter(answer.Header, time.Now())
	if !limited || answer.StatusCode < 400 && first(answer.Header, "X-RateLimit-Remaining", "RateLimit-Remaining") != "0" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = time.Now().Add(delay)
}

func (l *rate) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.blocked)
}

// awaitRate waits until the service may be asked again. If that is too long, the call is
// refused: services bar clients that do not keep to their limits.
func (c *Client) awaitRate(ctx context.Context, r Request, left *time.Duration) error {
	delay := c.rate.remaining()
	switch {
	case delay <= 0:
		return nil
	case delay > *left:
		return fault.New(fault.Limit, "the rate limit of %s is used up", r.URL.Host).
			WithHint("call again in %v", delay.Round(time.Second))
	}
	*left -= delay
	return c.wait(ctx, r, delay, "the rate limit is used up")
}

// wait waits and reports it, so that the call's timeout is extended.
func (c *Client) wait(ctx context.Context, r Request, delay time.Duration, reason string) error {
	for delay > 0 {
		r.Progress(fmt.Sprintf("waits %v: %s", delay.Round(100*time.Millisecond), reason))
		step := min(delay, reportEvery)
		if err := c.sleep(ctx, step); err != nil {
			return err
		}
		delay -= step
	}
	return nil
}
