package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/secret"
)

// client is HTTP to one server, with its credentials, and connections of its own.
type client struct {
	url     *url.URL
	headers http.Header
	http    *http.Client
	direct  *direct // nil where there is none
	login   *bearer // nil: credentials, if any, are among the headers
}

func (o *Options) newClient(spec Spec) (*client, error) {
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
	c := &client{
		url: u, headers: headers, login: o.bearer(spec, u, headers),
		http: &http.Client{Transport: transport, CheckRedirect: o.checkRedirect},
	}
	if u.Scheme == "http" && !o.proxied(u) {
		c.direct = &direct{address: hostPort(u), dial: dialer.DialContext}
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
	if o.Secret == nil || !spec.Trusted || !secret.Refers(text) {
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

// request is what http.NewRequest makes, from a URL that was parsed before.
func (c *client) request(ctx context.Context, method string, to *url.URL, body []byte) *http.Request {
	request := unsaid.WithContext(ctx)
	request.Method, request.URL, request.Host = method, to, to.Host
	request.Header = make(http.Header, 8)
	for name, values := range c.headers {
		request.Header[name] = values
	}
	if body != nil {
		request.ContentLength = int64(len(body))
		request.Body = hold(body)
	}
	return request
}

// unsaid is what all requests have in common.
var unsaid = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// do sends the request. Its errors tell whether the server can have seen it,
// and name no more of the URL than its host.
func (c *client) do(request *http.Request) (*http.Response, error) {
	token, err := c.login.present(request)
	if err != nil {
		return nil, notSent(err)
	}
	for renewals := 0; ; renewals++ {
		response, err := c.once(request)
		var status *statusError
		if c.login == nil || renewals == maxRenewals || !errors.As(err, &status) || !status.auth() {
			return response, err
		}
		if token, err = c.login.renew(request, token, status); err != nil {
			return nil, notSent(err)
		}
		request = repeated(request)
	}
}

// maxRenewals is how often one request may find other credentials.
const maxRenewals = 2

// once sends the request with what it bears.
func (c *client) once(request *http.Request) (*http.Response, error) {
	response, err := c.send(request)
	if err != nil {
		if ctx := request.Context(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, notSent(err)
		}
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, err)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		defer response.Body.Close()
		body, _ := readBody(io.LimitReader(response.Body, maxExcerpt), maxExcerpt)
		return nil, notSent(statusFault(response, body))
	}
	return response, nil
}

// send makes one round trip, which is nearly always all there is to do; a redirect
// takes the long way from the start.
func (c *client) send(request *http.Request) (*http.Response, error) {
	response, err := c.roundTrip(request)
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 || response.Header.Get("Location") == "" {
		return response, err
	}
	response.Body.Close()
	return c.http.Do(repeated(request))
}

// repeated is the request to be sent once more.
func repeated(request *http.Request) *http.Request {
	again := request.Clone(request.Context())
	if body := bodyOf(request); body != nil {
		again.Body, again.GetBody = hold(body), holds(body)
	}
	return again
}

func (c *client) roundTrip(request *http.Request) (*http.Response, error) {
	body := bodyOf(request)
	if c.direct.suits(request, body) && request.URL == c.url {
		return c.direct.roundTrip(request, body)
	}
	if body != nil {
		request.GetBody = holds(body)
	}
	return c.http.Transport.RoundTrip(request)
}

func (c *client) close() {
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

func statusFault(response *http.Response, body []byte) error {
	return &statusError{
		Code:      response.StatusCode,
		Status:    response.Status,
		Challenge: clean(strings.Join(response.Header.Values("WWW-Authenticate"), ", ")),
		Body:      excerpt(body),
	}
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
