package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
)

// failure is the error of one attempt.
type failure struct {
	status int           // HTTP status, or 0
	kind   string        // the provider's error type
	text   string        // the provider's message
	after  time.Duration // how long the provider asks to wait
	again  bool          // a retry may succeed
	err    error         // the cause, if it was not the provider's response
}

func (f *failure) Error() string {
	switch {
	case f.err != nil:
		return f.err.Error()
	case f.text != "":
		return f.text
	case f.kind != "":
		return f.kind
	default:
		return fmt.Sprintf("HTTP status %d", f.status)
	}
}

func (f *failure) Unwrap() error { return f.err }

// errBroken means that an answer ended before it was complete.
var errBroken = errors.New("the answer ended early")

// busyKinds are the error types of providers that mean "try again later".
var busyKinds = []string{"overloaded_error", "rate_limit_error", "api_error", "timeout_error", "server_error"}

// refusedBy is the failure of a response with an HTTP error status, or of an error
// inside a stream.
func refusedBy(status int, header http.Header, kind, text string) *failure {
	f := &failure{status: status, kind: kind, text: redact.Cut(strings.TrimSpace(text), 500)}
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, 529:
		f.again = true
	case http.StatusOK: // an error inside a stream
		f.status = 0
		for _, busy := range busyKinds {
			f.again = f.again || kind == busy
		}
	default:
		f.again = status >= 500
	}
	switch header.Get("X-Should-Retry") {
	case "true":
		f.again = true
	case "false":
		f.again = false
	}
	f.after = retryAfter(header)
	return f
}

// retryAfter reads how long an endpoint asks to wait: seconds or a date.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// failureOf converts any error of an attempt.
func failureOf(ctx context.Context, err error) *failure {
	if ctx.Err() != nil {
		return &failure{err: context.Cause(ctx)}
	}
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var invalid *fault.Error
	if errors.As(err, &invalid) {
		return &failure{err: err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errBroken
	}
	return &failure{err: err, again: true} // a network error
}

// fault converts the failure after so many attempts.
func (f *failure) fault(who About, attempts int) *fault.Error {
	doing := "ask " + who.Model
	if attempts > 1 {
		doing = fmt.Sprintf("ask %s %d times", who.Model, attempts)
	}
	e := fault.Wrap(f.code(), f, "%s", doing)
	switch {
	case e.Code == fault.NeedsAuth:
		return e.WithHint("the provider does not accept the key: check %s", keyVariable(who.Provider))
	case e.Code == fault.Config:
		return e.WithHint("check [chat] model and base_url; the provider does not know the model or path")
	case f.status == http.StatusTooManyRequests && f.after > 0:
		return e.WithHint("the provider's limit is reached; it asks to wait %v", f.after.Round(time.Second))
	case e.Code == fault.Limit:
		return e.WithHint("the conversation is too long for the model: start a new one, or ask for less at a time")
	case e.Code == fault.Unavailable, e.Code == fault.Timeout:
		return e.WithHint("the provider is busy or unreachable; try again later")
	default:
		return e
	}
}

func keyVariable(provider string) string {
	if provider == "openai" {
		return "OPENAI_API_KEY"
	}
	return "ANTHROPIC_API_KEY"
}

func (f *failure) code() fault.Code {
	var invalid *fault.Error
	switch {
	case errors.As(f.err, &invalid):
		return invalid.Code
	case errors.Is(f.err, errIdle), errors.Is(f.err, context.DeadlineExceeded):
		return fault.Timeout
	case errors.Is(f.err, context.Canceled):
		return fault.Cancelled
	case errors.Is(f.err, errBroken):
		return fault.Upstream
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return fault.NeedsAuth
	case f.status == http.StatusNotFound:
		return fault.Config
	case f.status == http.StatusRequestEntityTooLarge || f.tooLong():
		return fault.Limit
	case f.again:
		return fault.Unavailable
	default:
		return fault.Upstream
	}
}

// tooLong reports whether the provider refused a prompt for its length, which only its
// message says.
func (f *failure) tooLong() bool {
	if f.status != http.StatusBadRequest {
		return false
	}
	text := strings.ToLower(f.text)
	return strings.Contains(text, "too long") || strings.Contains(text, "context_length") || strings.Contains(text, "maximum context length")
}

// refusesMedia reports whether the provider refused a prompt most likely because of its
// images, sounds or files: the model takes only text.
func (f *failure) refusesMedia(p Prompt) bool { return p.hasMedia() && f.refusedRequest() }

// refusedRequest reports whether the provider refused what was sent, which it would do
// again.
func (f *failure) refusedRequest() bool {
	switch f.status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return !f.tooLong()
	case http.StatusInternalServerError: // of llama.cpp and others
		return strings.Contains(f.text, "image") || strings.Contains(f.text, "multimodal")
	default:
		return false
	}
}

// StatusOf returns the HTTP status of an error of Answer, or 0.
func StatusOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.status
	}
	return 0
}
