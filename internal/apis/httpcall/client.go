// Package httpcall makes the HTTP requests of APIs: with their credentials, over guarded
// connections, with a span each, repeated where that is allowed, and within the rate limits
// that the service tells.
package httpcall

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/noanswer"
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
	if c.env.AllowURL != nil {
		if err := c.env.AllowURL(r.URL); err != nil {
			return nil, err
		}
	}
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
		c.env.Propagator.Inject(ctx, headerCarrier(request.Header))
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
