package hootenanny

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/luanette/luanette/internal/base/fault"
)

// Services are the addresses of the models, each a small HTTP server of its own.
// Empty ones mean the usual port on this machine.
type Services struct {
	Orpheus           string
	OrpheusClassifier string
	OrpheusBridge     string
	OrpheusLoops      string
	MusicGen          string
	CLAP              string
	YuE               string
	BeatThis          string
}

func (s Services) orDefault() Services {
	for _, one := range []struct {
		address *string
		port    int
	}{
		{&s.Orpheus, 2000}, {&s.OrpheusClassifier, 2001}, {&s.OrpheusBridge, 2002}, {&s.OrpheusLoops, 2003},
		{&s.MusicGen, 2006}, {&s.CLAP, 2007}, {&s.YuE, 2008}, {&s.BeatThis, 2012},
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
	address string
	setting string        // what in the configuration says where it is
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
	one.name, one.setting = name, "hoot.services."+name
	return one
}

// Bounds of asking a model.
const (
	mostAnswer  = 256 << 20        // bytes of an answer
	patience    = 10 * time.Minute // how long a busy one is asked again
	longestWait = 30 * time.Second // between two times
)

// roundTrip has a model do something. A busy one is asked again, after the time it says.
func (h *Backend) ask(ctx context.Context, t Task, s service, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "ask %s", s.name)
	}
	began := h.clock.Now()
	for attempt := 1; ; attempt++ {
		t.Progress(0.1, "waiting for "+s.name)
		busy, err := h.post(ctx, s, body, answer)
		if busy == nil {
			return err
		}
		wait := busy.wait(attempt)
		if h.clock.Now().Add(wait).Sub(began) > patience {
			return fault.New(fault.Unavailable, "%s is still busy after %s", s.name, patience).WithHint("try again later")
		}
		t.Progress(0.05, fmt.Sprintf("%s is busy, asking again in %s", s.name, wait.Round(time.Millisecond)))
		if err := h.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// busyness is that a model has no time now.
type busyness struct{ after time.Duration }

// wait is how long to wait before asking again: as long as it says, or longer and
// longer.
func (b *busyness) wait(attempt int) time.Duration {
	if b.after > 0 {
		return min(b.after, longestWait)
	}
	wait := min(time.Second<<min(attempt-1, 10), longestWait)
	return wait/2 + rand.N(wait/2) //nolint:gosec // so that not all ask at once
}

// post asks once.
func (h *Backend) post(ctx context.Context, s service, body []byte, answer any) (*busyness, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodPost, s.address+"/predict", bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "ask %s", s.name).WithHint("look at %s", s.setting)
	}
	r.Header.Set("Content-Type", "application/json")
	h.options.Propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := h.options.HTTP.Do(r)
	if err != nil {
		return nil, s.away(ctx, limited, err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, s.away(ctx, limited, err)
	case len(raw) > mostAnswer:
		return nil, fault.New(fault.Limit, "%s answers with more than %d bytes", s.name, mostAnswer)
	}
	return h.answered(s, response, raw, answer)
}

// answered reads what a model says.
func (h *Backend) answered(s service, r *http.Response, raw []byte, answer any) (*busyness, error) {
	switch {
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable:
		return &busyness{retryAfter(r.Header.Get("Retry-After"), h.clock.Now())}, nil
	case r.StatusCode == http.StatusUnprocessableEntity || r.StatusCode == http.StatusBadRequest:
		return nil, invalid("%s does not take this: %s", s.name, complaint(raw))
	case r.StatusCode != http.StatusOK:
		return nil, fault.New(fault.Upstream, "%s answers %d: %s", s.name, r.StatusCode, complaint(raw)).WithHint("look at the log of the service at %s", s.address)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read the answer of %s", s.name)
	}
	return nil, nil
}

// away says that a model cannot be reached, and its name.
func (s service) away(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return fault.New(fault.Timeout, "%s did not answer in %s", s.name, s.timeout).WithHint("ask for less, or look at the service at %s", s.address)
	default:
		return fault.Wrap(fault.Unavailable, err, "the %s service is not running at %s", s.name, s.address).
			WithHint("start it, or say where it is with %s", s.setting).WithDetails(map[string]string{"service": s.name, "address": s.address})
	}
}

// complaint is what a model says is wrong: {"detail": …}, {"error": …}, or text.
func complaint(raw []byte) string {
	var said struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &said) == nil {
		for _, part := range []json.RawMessage{said.Detail, said.Error} {
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

// clip keeps a stranger's text from filling the message.
func clip(text string) string {
	const most = 500
	text = strings.ToValidUTF8(text, "?")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
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
