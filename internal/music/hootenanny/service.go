package hootenanny

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/luanette/luanette/internal/base/fault"
)

// Services are the addresses of the models, each an HTTP server of its own. An
// empty address means the default port on this machine.
type Services struct {
	Orpheus           string
	OrpheusClassifier string
	OrpheusBridge     string
	OrpheusLoops      string
	MusicGen          string
	CLAP              string
	YuE               string
	BeatThis          string
	Anticipatory      string
}

func (s Services) orDefault() Services {
	for _, one := range []struct {
		address *string
		port    int
	}{
		{&s.Orpheus, 2000}, {&s.OrpheusClassifier, 2001}, {&s.OrpheusBridge, 2002}, {&s.OrpheusLoops, 2003},
		{&s.MusicGen, 2006}, {&s.CLAP, 2007}, {&s.YuE, 2008}, {&s.BeatThis, 2012},
		{&s.Anticipatory, 2011},
	} {
		if *one.address == "" {
			*one.address = fmt.Sprintf("http://127.0.0.1:%d", one.port)
		}
		*one.address = strings.TrimRight(*one.address, "/")
	}
	return s
}

// service is one model.
type service struct {
	name    string
	address string        // without the path of requests
	path    string        // of requests
	setting string        // name of the setting with its address
	timeout time.Duration // of one request
}

func (h *Backend) service(name string) service {
	s := h.options.Services
	all := map[string]service{
		"orpheus":            {address: s.Orpheus, timeout: 5 * time.Minute},
		"orpheus_classifier": {address: s.OrpheusClassifier, timeout: time.Minute},
		"orpheus_bridge":     {address: s.OrpheusBridge, timeout: 5 * time.Minute},
		"orpheus_loops":      {address: s.OrpheusLoops, timeout: 5 * time.Minute},
		"musicgen":           {address: s.MusicGen, timeout: 5 * time.Minute},
		"clap":               {address: s.CLAP, timeout: 2 * time.Minute},
		"yue":                {address: s.YuE, timeout: 10 * time.Minute},
		"beatthis":           {address: s.BeatThis, timeout: 2 * time.Minute},
	}
	one := all[name]
	one.name, one.path, one.setting = name, "/predict", "music.services."+name
	return one
}

// Limits for requests to a model.
const (
	maxReply      = 256 << 20        // bytes of a reply
	busyTimeout   = 10 * time.Minute // how long a busy model is retried
	maxRetryDelay = 30 * time.Second // between two attempts
	maxAttempts   = 3                // of a request that fails in the service
)

// ask sends a request to a model and decodes the reply. A busy model is retried after
// its Retry-After, a request that fails in the service a few times.
func (h *Backend) ask(ctx context.Context, t Task, s service, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "ask %s", s.name)
	}
	began, failures := h.clock.Now(), 0
	for attempt := 1; ; attempt++ {
		t.Progress(0.1, "waiting for "+s.name)
		again, err := h.post(ctx, s, body, answer)
		if again == nil {
			return err
		}
		wait, why := again.wait(attempt), "is busy"
		if again.failed != nil {
			if failures++; failures >= maxAttempts {
				return again.failed
			}
			why = "failed"
		}
		if h.clock.Now().Add(wait).Sub(began) > busyTimeout {
			return fault.New(fault.Unavailable, "%s is still busy after %s", s.name, busyTimeout).WithHint("try again later")
		}
		h.options.Log.DebugContext(ctx, "model request repeated", "service", s.name, "attempt", attempt, "wait", wait, "error", again.failed)
		t.Progress(0.05, fmt.Sprintf("%s %s, retrying in %s", s.name, why, wait.Round(time.Millisecond)))
		if err := h.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// retry says that a request is to be repeated, and when.
type retry struct {
	after  time.Duration
	failed error // why the request failed; nil if the model is only busy
}

// wait is the delay before the next attempt: as long as the model says, or an
// increasing delay.
func (b *retry) wait(attempt int) time.Duration {
	if b.after > 0 {
		return min(b.after, maxRetryDelay)
	}
	wait := min(time.Second<<min(attempt-1, 10), maxRetryDelay)
	return wait/2 + rand.N(wait/2) //nolint:gosec // jitter
}

// post sends the request once.
func (h *Backend) post(ctx context.Context, s service, body []byte, answer any) (*retry, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodPost, s.address+s.path, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "ask %s", s.name).WithHint("check the setting %s", s.setting)
	}
	r.Header.Set("Content-Type", "application/json")
	h.options.Propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := h.options.HTTP.Do(r)
	if err != nil {
		return s.unreachable(ctx, limited, err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	switch {
	case err != nil:
		return s.unreachable(ctx, limited, err)
	case len(raw) > maxReply:
		return nil, fault.New(fault.Limit, "%s replied with more than %d bytes", s.name, maxReply).WithHint("ask for less, such as a shorter sound or fewer variations")
	}
	return h.answered(s, response, raw, answer)
}

// answered decodes the reply of a model.
func (h *Backend) answered(s service, r *http.Response, raw []byte, answer any) (*retry, error) {
	after := retryAfter(r.Header.Get("Retry-After"), h.clock.Now())
	switch {
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable:
		return &retry{after: after}, nil
	case r.StatusCode == http.StatusUnprocessableEntity || r.StatusCode == http.StatusBadRequest:
		return nil, invalid("%s rejected the request: %s", s.name, serviceError(raw)).WithHint("change the arguments as it says")
	case r.StatusCode != http.StatusOK:
		err := fault.New(fault.Upstream, "%s replied with status %d: %s", s.name, r.StatusCode, serviceError(raw)).WithHint("check the log of the service at %s", s.address)
		if r.StatusCode >= http.StatusInternalServerError && r.StatusCode != http.StatusNotImplemented {
			return &retry{after: after, failed: err}, nil
		}
		return nil, err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, s.badReply(fault.Wrap(fault.Upstream, err, "read the reply of %s", s.name))
	}
	return nil, nil
}

// badReply adds a hint to the error about a reply that is not as expected.
func (s service) badReply(err *fault.Error) *fault.Error {
	return err.WithHint("check with %s that the %s service is at %s, and its log", s.setting, s.name, s.address)
}

// unreachable is the error for a model that cannot be reached. A connection that broke is
// retried: a service that restarts closes its connections.
func (s service) unreachable(ctx, limited context.Context, err error) (*retry, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, fault.New(fault.Timeout, "%s did not reply within %s", s.name, s.timeout).WithHint("reduce the request, or check the service at %s", s.address)
	}
	details := map[string]string{"service": s.name, "address": s.address}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return nil, fault.Wrap(fault.Unavailable, err, "the %s service is not running at %s", s.name, s.address).
			WithHint("start it, or set its address with %s", s.setting).WithDetails(details)
	}
	return &retry{failed: fault.Wrap(fault.Unavailable, err, "the connection to the %s service at %s broke", s.name, s.address).
		WithHint("check the log of the service").WithDetails(details)}, nil
}

// serviceError is the error text of a model: {"detail": …}, {"error": …}, or text.
func serviceError(raw []byte) string {
	var reply struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &reply) == nil {
		for _, part := range []json.RawMessage{reply.Detail, reply.Error} {
			var plain string
			if json.Unmarshal(part, &plain) == nil && plain != "" {
				return clip(plain)
			}
			if len(part) > 0 {
				return clip(string(part))
			}
		}
	}
	return clip(strings.TrimSpace(text))
}

// clip truncates the text of a service for an error message.
func clip(text string) string {
	const limit = 500
	text = strings.ToValidUTF8(text, "?")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
