// Package httpcall makes the HTTP requests of APIs: with their credentials, over guarded
// connections, with a span each, repeated where that is allowed, and within the rate limits
// that the service tells.
package httpcall

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/noanswer"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// Client sends requests to one service. It may be used concurrently.
type Client struct {
	env   api.Environment
	base  *url.URL
	http  *http.Transport
	cache *cache
	rate  rate
	sleep func(ctx context.Context, d time.Duration) error

	credentials api.Credentials
}

// Request is one request.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	// Body makes the body for every attempt; nil: there is none. The length is -1 if it is
	// not known.
	Body func() (body io.ReadCloser, length int64, err error)
	// Template names the kind of request in spans, such as /pets/{id}.
	Template string
	// Repeatable says that repeating the request changes nothing more.
	Repeatable bool
	// Progress is told about waits; may be nil.
	Progress func(message string)
}

// New returns a client of the service at base.
func New(env api.Environment, base string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fault.New(fault.Config, "the url of the API is not valid")
	}
	config, err := certpool.WithPair(env.TLS, env.Settings.CertFile, env.Settings.KeyFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second, Control: env.DialControl}
	proxy, dial := netguard.Through(env.Proxy, dialer)
	return &Client{env: env, base: u, cache: newCache(), sleep: clock.Real().Sleep, credentials: env.Credentials(), http: &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxRenewals is how often one request may be repeated with another token.
const maxRenewals = 2

// Do sends a request and returns the answer, whatever its status. The caller closes its
// body. Errors are faults.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	if r.Progress == nil {
		r.Progress = func(string) {}
	}
	token, err := c.token(ctx, r.URL)
	if err != nil {
		return nil, err
	}
	for renewals := 0; ; renewals++ {
		answer, err := c.cached(ctx, r, token)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || renewals == maxRenewals || !c.usesLogin(r.URL) {
			return answer, err
		}
		answer.Body.Close()
		token, err = c.env.Login.Refused(ctx, c.base.String(), api.Refusal{
			Status: answer.StatusCode, Challenge: strings.Join(answer.Header.Values("WWW-Authenticate"), ", "), Token: token,
		})
		if err != nil {
			return nil, err
		}
	}
}

// usesLogin reports whether requests to a URL carry the token of a login. It is not sent
// over plain HTTP to other machines, where it could be read on the way.
func (c *Client) usesLogin(u *url.URL) bool {
	return c.env.Login != nil && c.ours(u) && (u.Scheme == "https" || netguard.IsLoopback(u.Hostname()))
}

func (c *Client) token(ctx context.Context, u *url.URL) (string, error) {
	if !c.usesLogin(u) {
		return "", nil
	}
	return c.env.Login.Token(ctx, c.base.String())
}

// ours reports whether a URL gets the credentials: the service's own host, or one that the
// configuration names.
func (c *Client) ours(u *url.URL) bool {
	if u.Scheme != c.base.Scheme {
		return false
	}
	return u.Host == c.base.Host || slices.Contains(c.env.Settings.Hosts, u.Host)
}

// newRequest makes one attempt of a request, with credentials if the URL is the service's.
func (c *Client) newRequest(ctx context.Context, r Request, token string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, "", nil)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "make request")
	}
	u := *r.URL
	request.URL, request.Host, request.Header = &u, u.Host, maps.Clone(r.Header)
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("User-Agent", c.env.Header.Get("User-Agent"))
	if c.ours(r.URL) {
		c.addCredentials(request, token)
	}
	if r.Body != nil {
		if request.Body, request.ContentLength, err = r.Body(); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// addCredentials adds what the configuration says. It replaces what a caller gave under
// the same names.
func (c *Client) addCredentials(request *http.Request, token string) {
	s := c.env.Settings
	maps.Copy(request.Header, c.env.Header)
	switch {
	case token != "":
		request.Header.Set("Authorization", "Bearer "+token)
	case s.User != "":
		request.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.User+":"+s.Password)))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Cookies)) {
		request.AddCookie(&http.Cookie{Name: name, Value: s.Cookies[name]})
	}
	if len(s.Query) > 0 {
		query := request.URL.Query()
		for name, value := range s.Query {
			query.Set(name, value)
		}
		request.URL.RawQuery = query.Encode()
	}
}

// maxRedirects is how often one request is redirected.
const maxRedirects = 5

// follow sends a request, and again where it is redirected on the same host. A redirect to
// another host is the answer: nothing of this request is for that host.
func (c *Client) follow(ctx context.Context, r Request, token string, resends int) (*http.Response, error) {
	for range maxRedirects {
		answer, err := c.exchange(ctx, r, token, resends)
		if err != nil {
			return nil, err
		}
		to := redirection(answer, r.URL)
		if to == nil {
			return answer, nil
		}
		answer.Body.Close()
		if answer.StatusCode < http.StatusTemporaryRedirect && r.Method != http.MethodGet && r.Method != http.MethodHead {
			r.Method, r.Body = http.MethodGet, nil
			r.Header = maps.Clone(r.Header)
			delete(r.Header, "Content-Type")
		}
		r.URL = to
	}
	return nil, fault.New(fault.Upstream, "%s: redirected more than %d times", r.URL.Host, maxRedirects)
}

// redirection is where an answer on the same host is; nil if it is this answer.
func redirection(answer *http.Response, from *url.URL) *url.URL {
	if answer.StatusCode < 300 || answer.StatusCode > 308 || answer.StatusCode == http.StatusNotModified {
		return nil
	}
	to, err := answer.Location()
	if err != nil || to.Host != from.Host || to.Scheme != from.Scheme {
		return nil
	}
	return to
}

// exchange makes one attempt.
func (c *Client) exchange(ctx context.Context, r Request, token string, resends int) (answer *http.Response, err error) {
	ctx, span := c.startSpan(ctx, r, resends)
	defer func() { endSpan(span, answer, err) }()
	request, err := c.newRequest(ctx, r, token)
	if err != nil {
		return nil, err
	}
	if c.env.Propagator != nil {
		c.env.Propagator.Inject(ctx, propagation.HeaderCarrier(request.Header))
	}
	if answer, err = c.http.RoundTrip(request); err != nil {
		return nil, sendError(ctx, r, err)
	}
	c.rate.learn(answer)
	return answer, nil
}

// errNotSent is matched by the errors of requests that the service has not seen.
var errNotSent = errors.New("it was not sent")

// sendError is the error of a request that got no answer. It has no more of the URL than
// its host.
func sendError(ctx context.Context, r Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch reason := noanswer.Of(err); {
	case reason.Hint != "":
		return fault.Wrap(fault.Unavailable, reason.Err, "connect to %s", r.URL.Host).WithHint("%s", reason.Hint)
	case reason.NotSent:
		return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %w", errNotSent, reason.Err), "connect to %s", r.URL.Host).
			WithHint("the call had no effect and can be repeated")
	default:
		return fault.Wrap(fault.Unavailable, reason.Err, "%s %s: no answer came", r.Method, r.URL.Host).
			WithHint("find out whether the call took effect before you repeat it")
	}
}

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

// Read reads the body of an answer, without the configured credentials. Its caller closes
// the body.
func (c *Client) Read(answer *http.Response) ([]byte, error) {
	limit := c.env.MaxAnswer
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "read the answer of %s", answer.Request.URL.Host).
			WithHint("the call was made, but its answer is not complete")
	case len(text) > limit:
		return nil, fault.New(fault.Limit, "the answer has more than %d bytes", limit).WithHint("ask for less, for example for a page")
	}
	return c.credentials.Hide(text), nil
}

// Compact returns JSON without blanks; nil if a text is not JSON.
func Compact(text []byte) json.RawMessage {
	switch rawjson.First(text) {
	case '{', '[', '"', 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
	default:
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return nil
	}
	return out.Bytes()
}

// maxErrorText is how much of an error's body is shown.
const maxErrorText = 4 << 10

// Failure is the result of an answer that reports an error.
func (c *Client) Failure(answer *http.Response, text []byte) json.RawMessage {
	structured := rawjson.Set(nil, "status", json.RawMessage(strconv.Itoa(answer.StatusCode)))
	said := strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), maxErrorText)]), ""))
	body := Compact(text)
	if body != nil && len(body) <= maxErrorText {
		structured = rawjson.Set(structured, "error", body)
		said = explain(body)
	} else if said != "" {
		structured = rawjson.SetText(structured, "error", said)
	}
	message := "HTTP " + answer.Status
	if said != "" {
		message += ": " + said
	}
	if after := answer.Header.Get("Retry-After"); after != "" {
		structured = rawjson.SetText(structured, "retry_after", after)
		message += "\nThe service may be asked again after: " + after
	}
	if answer.StatusCode == http.StatusUnauthorized {
		message += "\n" + c.env.RefusedCredentials()
	}
	return api.Failure(message, structured)
}

// explain is the message of an error in JSON: title and detail of RFC 9457, or what other
// services call it, and then all of it.
func explain(body json.RawMessage) string {
	var said []string
	for _, path := range []string{"title", "detail", "message", "error/message", "error_description", "error", "errors/0/message"} {
		value, ok := rawjson.Path(body, path)
		if text, isText := rawjson.Text(value); ok && isText && text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		return string(body)
	}
	return strings.Join(said, ": ") + "\n" + string(body)
}

// Identify adds the header by which the service recognizes a repeated request, if one is
// configured and the request needs it.
func (c *Client) Identify(r *Request) {
	if name := c.env.Settings.IdempotencyHeader; name != "" && !r.Repeatable {
		r.Header.Set(name, strings.ToLower(rand.Text()))
		r.Repeatable = true
	}
}

// startSpan starts the span of one attempt, by OpenTelemetry's conventions for HTTP
// clients. The URL is without its query, which may have secrets.
func (c *Client) startSpan(ctx context.Context, r Request, resends int) (context.Context, trace.Span) {
	if c.env.Tracer == nil {
		return ctx, nil
	}
	name := r.Method
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()),
		attribute.Int("server.port", portOf(r.URL)), attribute.String("url.full", r.URL.Scheme+"://"+r.URL.Host+r.URL.EscapedPath()),
		attribute.String("luanette.upstream", c.env.Name),
	}
	if r.Template != "" {
		name += " " + r.Template
		attributes = append(attributes, attribute.String("url.template", r.Template))
	}
	if resends > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", resends))
	}
	return c.env.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// endSpan ends the span of an attempt when its headers have come.
func endSpan(span trace.Span, answer *http.Response, err error) {
	if span == nil {
		return
	}
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String("error.type", string(fault.CodeOf(err))))
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode),
			attribute.String("network.protocol.version", strconv.Itoa(answer.ProtoMajor)+"."+strconv.Itoa(answer.ProtoMinor)))
		if answer.StatusCode >= 400 {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(answer.StatusCode)))
		}
	}
	span.End()
}
