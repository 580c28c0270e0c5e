package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// httpClient is HTTP to one server, with its credentials, and connections of its own.
type httpClient struct {
	url     *url.URL
	headers http.Header
	http    *http.Client
	vigil   clock.Vigil  // over those who may not want to wait any more
	direct  *direct      // nil where there is none
	login   *tokenSource // nil: credentials, if any, are among the headers
}

func (o *Options) newHTTPClient(spec Spec) (*httpClient, error) {
	if spec.Trusted {
		unguarded := *o
		unguarded.AllowURL, unguarded.DialControl = nil, nil
		o = &unguarded
	}
	u, err := url.Parse(spec.URL)
	if err != nil {
		return nil, errors.New("url is not one")
	}
	if o.AllowURL != nil {
		if err := o.AllowURL(u); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", u.Host, err)
		}
	}
	headers, err := o.headers(spec)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: o.DialControl}
	transport := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	c := &httpClient{
		url: u, headers: headers, login: o.tokenSource(spec, u, headers),
		http: &http.Client{Transport: transport, CheckRedirect: o.checkRedirect},
	}
	if preface, ok := c.preface(); ok && u.Scheme == "http" && !o.proxied(u) {
		c.direct = &direct{address: hostPort(u), preface: preface, dial: dialer.DialContext}
	}
	return c, nil
}

// proxied tells whether requests to u go through another server.
func (o *Options) proxied(u *url.URL) bool {
	if o.Proxy == nil {
		return false
	}
	via, err := o.Proxy(&http.Request{URL: u})
	return via != nil || err != nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (o *Options) headers(spec Spec) (http.Header, error) {
	headers := http.Header{"User-Agent": {o.ClientName + "/" + o.ClientVersion}}
	for name, value := range spec.Headers {
		found, err := o.reveal(spec, value)
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "header %s of %s", name, spec.Name).WithHint("%s", fault.HintOf(err))
		}
		headers.Set(name, found)
	}
	if spec.BearerEnv != "" {
		token, ok := o.Getenv(spec.BearerEnv)
		if !ok || token == "" {
			return nil, fault.New(fault.NeedsAuth, "environment variable %s is not set", spec.BearerEnv).
				WithHint("set %s to the bearer token of %s", spec.BearerEnv, spec.Name)
		}
		headers.Set("Authorization", "Bearer "+token)
	}
	return headers, nil
}

// reveal is text with the secrets it refers to. Only the owner's specs refer to
// any: a model must not have files read to it.
func (o *Options) reveal(spec Spec, text string) (string, error) {
	if o.Secret == nil || !spec.Trusted || !secret.IsReference(text) {
		return text, nil
	}
	found, err := o.Secret(text)
	return found.Reveal(), err
}

// checkRedirect follows only what keeps method and host: credentials must not
// travel, and a POST that becomes a GET has lost its message.
func (o *Options) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("redirected too often")
	case next.URL.Host != first.URL.Host || first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("redirected to %s://%s: configure that url if it is meant", next.URL.Scheme, next.URL.Host)
	case next.Method != first.Method:
		return fmt.Errorf("redirected from %s to %s %s: configure that url if it is meant", first.Method, next.Method, next.URL.Path)
	case o.AllowURL != nil:
		return o.AllowURL(next.URL)
	}
	return nil
}

// do sends a dispatch. Its errors tell whether the server can have seen it, and name
// no more of the URL than its host.
func (c *httpClient) do(ctx context.Context, d *dispatch) (response, error) {
	if c.login == nil {
		return c.once(ctx, d)
	}
	var err error
	if d.token, err = c.login.token(ctx); err != nil {
		return response{}, notSent(err)
	}
	for renewals := 0; ; renewals++ {
		r, err := c.once(ctx, d)
		var status *statusError
		if renewals == maxRenewals || !errors.As(err, &status) || !status.auth() {
			return r, err
		}
		if d.token, err = c.login.renew(ctx, d.token, status); err != nil {
			return response{}, notSent(err)
		}
	}
}

// maxRenewals is how often one dispatch may find other credentials.
const maxRenewals = 2

// once sends the dispatch with what it bears.
func (c *httpClient) once(ctx context.Context, d *dispatch) (response, error) {
	r, err := c.send(ctx, d)
	if err != nil {
		if ctx.Err() != nil {
			return response{}, context.Cause(ctx)
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return response{}, notSent(err)
		}
		return response{}, fmt.Errorf("%s %s: %w", d.method, d.to.Host, err)
	}
	if r.code == http.StatusUnauthorized || r.code == http.StatusForbidden {
		defer r.close()
		body, _ := r.start()
		return response{}, notSent(r.fault(body))
	}
	return r, nil
}

// send makes one round trip, which is nearly always all there is to do; a redirect
// takes the long way from the start.
func (c *httpClient) send(ctx context.Context, d *dispatch) (response, error) {
	r, err := c.roundTrip(ctx, d)
	if err != nil || r.code < 300 || r.code > 399 || r.others.Get("Location") == "" {
		return r, err
	}
	r.close()
	return c.tethered(ctx, d, c.http.Do)
}

func (c *httpClient) roundTrip(ctx context.Context, d *dispatch) (response, error) {
	if d.to == c.url && c.direct.suits(d) {
		return c.direct.roundTrip(ctx, d)
	}
	return c.tethered(ctx, d, c.http.Transport.RoundTrip)
}

func (c *httpClient) close() {
	c.http.CloseIdleConnections()
	c.direct.close()
}

// statusError is an HTTP status that is no answer.
type statusError struct {
	Code      int
	Status    string
	Challenge string // WWW-Authenticate
	Body      string
}

func (e *statusError) Error() string {
	text := "server answered " + e.Status
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// auth tells whether the server wants credentials.
func (e *statusError) auth() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// withPath adds /mcp to a URL without a path.
func withPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Path != "" && u.Path != "/" {
		return raw
	}
	u.Path = "/mcp"
	return u.String()
}
