package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// post sends a request and returns the response of an endpoint that accepts it. The
// caller closes its body.
func post(ctx context.Context, client *http.Client, endpoint string, header http.Header, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "write request")
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, unwrapURL(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// unwrapURL removes the address, which may contain a password, from an error.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusal reads why an endpoint refused a request.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		body = nil // the status is enough
	}
	kind, text := errorIn(body)
	return refusedBy(resp.StatusCode, resp.Header, kind, text)
}

// errorIn reads the forms of errors: {"error": {…}}, {"error": "…"}, {"message": "…"}, or
// plain text.
func errorIn(body []byte) (kind, text string) {
	var shape struct {
		Error   json.RawMessage
		Message string
	}
	if json.Unmarshal(body, &shape) != nil {
		return "", string(body)
	}
	var inner struct{ Type, Message string }
	if json.Unmarshal(shape.Error, &inner) == nil {
		return inner.Type, inner.Message
	}
	if plain, ok := rawjson.Text(shape.Error); ok {
		return "", plain
	}
	return "", shape.Message
}

// Retry configures retries of an endpoint that does not answer.
type Retry struct {
	Attempts     int           // number of attempts (4)
	First        time.Duration // the first wait is up to this long, each further one up to twice as long (1 s)
	Max          time.Duration // longest single wait, unless the endpoint asks for more (30 s)
	MaxTotalWait time.Duration // of all waits together; if the endpoint asks for more, the request fails (3 min)
	// Sleep waits; nil means a real wait. It returns early with ctx's error.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (r Retry) filled() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 4
	}
	if r.First <= 0 {
		r.First = time.Second
	}
	if r.Max <= 0 {
		r.Max = 30 * time.Second
	}
	if r.MaxTotalWait <= 0 {
		r.MaxTotalWait = 3 * time.Minute
	}
	if r.Sleep == nil {
		r.Sleep = clock.Real().Sleep
	}
	return r
}

// Wait announces that an endpoint could not answer and will be asked again.
type Wait struct {
	Attempt int // the failed attempt, from 1
	Delay   time.Duration
	Status  int // HTTP status, or 0
}

// retrying is a Model that retries if that can help: the endpoint is busy or the
// connection failed, and no text was passed on yet.
type retrying struct {
	provider
	about  About
	retry  Retry
	prices prices
}

func (m *retrying) About() About { return m.about }

func (m *retrying) Answer(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	if emit == nil {
		emit = func(Delta) {}
	}
	var waited time.Duration
	without := false
	for attempt := 1; ; attempt++ {
		emitted := false
		answer, err := m.try(ctx, p, func(d Delta) { emitted = emitted || d.Text != ""; emit(d) })
		answer.Attempts, answer.WithoutMedia = attempt, without
		answer.Usage.Cost = m.prices.cost(m.about.Model, answer.Usage)
		if err == nil {
			return answer, nil
		}
		f := failureOf(ctx, err)
		delay := m.delay(f, attempt)
		switch {
		case !emitted && f.refusesMedia(p):
			p, without = p.withoutMedia(), true
			continue
		case emitted, !m.repeats(f, attempt, waited+delay):
			return answer, f.fault(m.about, attempt)
		}
		emit(Delta{Wait: &Wait{attempt, delay, f.status}})
		waited += delay
		if err := m.retry.Sleep(ctx, delay); err != nil {
			return answer, failureOf(ctx, err).fault(m.about, attempt)
		}
	}
}

// repeats reports whether a request is made again after a failure, having waited so long.
func (m *retrying) repeats(f *failure, attempt int, waited time.Duration) bool {
	return f.again && attempt < m.retry.Attempts && waited <= m.retry.MaxTotalWait
}

// delay returns the wait that the endpoint asks for, otherwise a growing one with
// jitter, so that refused clients do not all return at the same time.
func (m *retrying) delay(f *failure, attempt int) time.Duration {
	if f.after > 0 {
		return f.after
	}
	return backoff.Policy{First: m.retry.First, Max: m.retry.Max, Jitter: 1}.Delay(attempt)
}

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
	ctx           context.Context // lives exactly as long as the body
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

// StatusOverloaded is the HTTP status by which Anthropic's API says that it is busy.
const StatusOverloaded = 529

// kindStatus are the statuses that stand for a provider's error types inside a stream, whose
// own status is 200.
var kindStatus = map[string]int{
	"overloaded_error": StatusOverloaded, "rate_limit_error": http.StatusTooManyRequests, "api_error": http.StatusInternalServerError,
	"timeout_error": http.StatusGatewayTimeout, "server_error": http.StatusInternalServerError, "authentication_error": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden,
}

// refusedBy is the failure of a response with an HTTP error status, or of an error
// inside a stream.
func refusedBy(status int, header http.Header, kind, text string) *failure {
	if status == http.StatusOK {
		status = kindStatus[kind]
	}
	f := &failure{status: status, kind: kind, text: redact.Cut(strings.TrimSpace(text), 500)}
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		f.again = true
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
	e := fault.Wrap(f.code(), f, "%s", doing).WithDetails(refused{who.Model, f.status, f.after.Milliseconds()})
	switch {
	case e.Code == fault.NeedsAuth:
		return e.WithHint("the provider does not accept the key: check %s", keyVariable(who.Provider))
	case e.Code == fault.Config:
		return e.WithHint("check [chat] model and base_url; the provider does not know the model or path")
	case f.status == http.StatusTooManyRequests && f.after > 0:
		return e.WithHint("the provider's limit is reached; it asks to wait %v", f.after.Round(time.Second))
	case f.status == http.StatusTooManyRequests:
		return e.WithHint("the provider's limit is reached; try again later")
	case errors.Is(f.err, errBroken):
		return e.WithHint("the connection to the provider broke; send the message again, effects of tools that were called remain")
	case e.Code == fault.Limit:
		return e.WithHint("the conversation is too long for the model: start a new one, or ask for less at a time")
	case e.Code == fault.Unavailable && f.status == http.StatusInternalServerError:
		return e.WithHint("the provider failed; try again later")
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

// refused are the details of an error of a model, which an error that was stored has, too.
type refused struct {
	Model        string `json:"model"`
	Status       int    `json:"provider_status,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// Refusal reports whether an error is one of a model's endpoint, and with which HTTP
// status, or 0, it refused the request.
func Refusal(err error) (status int, ok bool) {
	for f := (*fault.Error)(nil); errors.As(err, &f); err = errors.Unwrap(f) {
		var r refused
		if json.Unmarshal(f.Details, &r) == nil && r.Model != "" {
			return r.Status, true
		}
	}
	return 0, false
}
