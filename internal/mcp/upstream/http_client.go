package upstream

import (
	"bytes"
	"context"
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

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/noanswer"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// httpClient sends HTTP requests to one server, with its credentials, over
// connections of its own.
type httpClient struct {
	url    *url.URL
	header http.Header // of every request
	http   *http.Client
	login  *tokenSource // nil: credentials, if any, are in the header
}

func (o *Options) newHTTPClient(spec Spec) (*httpClient, error) {
	u, err := url.Parse(spec.URL)
	if err != nil {
		return nil, errors.New("url is not valid") // the parse error would quote secrets in it
	}
	header, err := o.header(spec)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := certpool.Config(o.CAFile, spec.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: o.control(spec)}
	proxy, dial := netguard.Through(o.Proxy, dialer)
	if o.Socket != "" {
		proxy, dial = nil, serverapi.DialSocket(o.Socket)
	}
	// There is no ResponseHeaderTimeout: a call may take as long as its own timeout
	// allows before the server sends the first byte.
	transport := &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		TLSClientConfig:        tlsConfig,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true, // most servers are close by, and results are passed on uncompressed
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &httpClient{
		url: u, header: header, login: o.tokenSource(spec, u, header),
		http: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
	}, nil
}

func (o *Options) header(spec Spec) (http.Header, error) {
	header := http.Header{"User-Agent": {o.ClientName + "/" + o.ClientVersion}}
	for name, value := range spec.Headers {
		found, err := o.reveal(spec, value)
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "header %s of %s", name, spec.Name).WithHint("%s", fault.HintOf(err))
		}
		header.Set(name, found)
	}
	if spec.BearerEnv != "" {
		token, ok := o.Getenv(spec.BearerEnv)
		if !ok || token == "" {
			return nil, fault.New(fault.NeedsAuth, "environment variable %s is not set", spec.BearerEnv).
				WithHint("set %s to the bearer token of %s", spec.BearerEnv, spec.Name)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}

// reveal replaces references to secrets in text. Only Trusted specs may refer to
// secrets: a model must not be able to read files this way.
func (o *Options) reveal(spec Spec, text string) (string, error) {
	if o.Secret == nil || !spec.Trusted || !secret.IsReference(text) {
		return spec.personal.replace(text), nil
	}
	found, err := o.Secret(text)
	return spec.personal.replace(found.Reveal()), err
}

// checkRedirect follows only redirects that keep the method and the host:
// credentials must not reach another host, and a POST that becomes a GET has lost
// its message.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("redirected too often")
	case next.URL.Host != first.URL.Host || first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("redirected to %s://%s: configure that url if it is meant", next.URL.Scheme, next.URL.Host)
	case next.Method != first.Method:
		return fmt.Errorf("redirected from %s to %s %s: configure that url if it is meant", first.Method, next.Method, next.URL.Path)
	}
	return nil
}

// maxRenewals is how often one request may be repeated with another token.
const maxRenewals = 2

// do sends a request with credentials. Errors wrap ErrNotSent if the server cannot
// have acted on it, and contain no more of the URL than its host. The caller must
// not use header afterwards.
func (c *httpClient) do(ctx context.Context, method string, to *url.URL, header http.Header, body []byte) (*http.Response, error) {
	if c.login == nil {
		return c.send(ctx, method, to, header, body)
	}
	token, err := c.login.login.Token(ctx, c.login.spec)
	if err != nil {
		return nil, notSent(err)
	}
	for renewals := 0; ; renewals++ {
		if token != "" {
			header = maps.Clone(header)
			header.Set("Authorization", "Bearer "+token)
		}
		r, err := c.send(ctx, method, to, header, body)
		var refused *statusError
		if renewals == maxRenewals || !errors.As(err, &refused) || !refused.auth() {
			return r, err
		}
		if token, err = c.login.renew(ctx, token, refused); err != nil {
			return nil, notSent(err)
		}
	}
}

// send sends a request once, and again to where it is redirected. A refusal for
// lack of credentials is an error. Client.Do prepares every request for a
// redirect, by a copy of its header, so only requests that are redirected use it.
func (c *httpClient) send(ctx context.Context, method string, to *url.URL, header http.Header, body []byte) (*http.Response, error) {
	request, err := newHTTPRequest(ctx, method, to, header, body)
	if err != nil {
		return nil, notSent(err)
	}
	r, err := c.http.Transport.RoundTrip(request)
	if err == nil && r.StatusCode >= 300 && r.StatusCode < 400 && r.Header.Get("Location") != "" {
		r.Body.Close()
		if request, err = newHTTPRequest(ctx, method, to, header, body); err == nil {
			r, err = c.http.Do(request)
		}
	}
	switch {
	case err != nil:
		if ctx.Err() == nil {
			// A server that closed one idle connection without notice has probably closed
			// the others too. What is sent again needs a new one.
			c.http.CloseIdleConnections()
		}
		return nil, sendError(ctx, request, err)
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		start, _ := readStart(r)
		r.Body.Close()
		return nil, notSent(newStatusError(r, start))
	}
	return r, nil
}

// newHTTPRequest is http.NewRequestWithContext for a URL that is parsed already.
func newHTTPRequest(ctx context.Context, method string, to *url.URL, header http.Header, body []byte) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, "", reader)
	if err != nil {
		return nil, err
	}
	request.URL, request.Host, request.Header = to, to.Host, header
	return request, nil
}

// sendError is the error of a request that got no response.
func sendError(ctx context.Context, request *http.Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch reason := noanswer.Of(err); {
	case reason.Hint != "":
		return notSent(fault.Wrap(fault.Unavailable, reason.Err, "connect to %s", request.URL.Host).WithHint("%s", reason.Hint))
	case reason.NotSent:
		return notSent(reason.Err)
	default:
		return fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, reason.Err)
	}
}

// openStream sends a GET request for a stream of events.
func (c *httpClient) openStream(ctx context.Context, header http.Header) (io.ReadCloser, error) {
	header.Set("Accept", wire.ContentEvent)
	r, err := c.do(ctx, http.MethodGet, c.url, header, nil)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK || mediaType(r) != wire.ContentEvent {
		r.Body.Close()
		return nil, newStatusError(r, nil)
	}
	return r.Body, nil
}

func (c *httpClient) close() { c.http.CloseIdleConnections() }

// withPath adds /mcp to a URL without a path.
func withPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Path != "" && u.Path != "/" {
		return raw
	}
	u.Path = "/mcp"
	return u.String()
}

// Login has the tokens for servers that require a login. Callers see its faults
// unchanged: those with the code needs_auth say how to log in.
type Login interface {
	// Token is the bearer token for requests to the server at spec.URL; "" for none.
	Token(ctx context.Context, spec Spec) (string, error)
	// Refused returns another token after the server has refused one.
	Refused(ctx context.Context, spec Spec, status int, challenge, token string) (string, error)
}

// tokenSource has the tokens for the requests of one client.
type tokenSource struct {
	login Login
	spec  Spec
}

// tokenSource is nil for servers that have credentials already, and for servers
// over plain HTTP on other hosts, where a token could be read on the way.
func (o *Options) tokenSource(spec Spec, u *url.URL, header http.Header) *tokenSource {
	if o.Login == nil || header.Get("Authorization") != "" || u.Scheme != "https" && !netguard.IsLoopback(u.Hostname()) {
		return nil
	}
	return &tokenSource{o.Login, spec}
}

// renew returns another token after one was refused.
func (s *tokenSource) renew(ctx context.Context, token string, refused *statusError) (string, error) {
	renewed, err := s.login.Refused(ctx, s.spec, refused.Code, refused.Challenge, token)
	switch {
	case fault.CodeOf(err) == fault.Unavailable:
		return "", err // temporary: a new login would not help
	case err != nil:
		return "", &loginError{refused, err}
	}
	return renewed, nil
}

// loginError is a refused request, together with the fault that says what to do.
type loginError struct {
	refused *statusError
	fix     error
}

func (e *loginError) Error() string   { return e.fix.Error() }
func (e *loginError) Unwrap() []error { return []error{e.fix, e.refused} }

// lacksScope reports whether only this request is forbidden, while others are
// allowed.
func lacksScope(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.Code == http.StatusForbidden && strings.Contains(status.Challenge, "insufficient_scope")
}

// loginFix is the fault in err that says how to log in, if there is one.
func loginFix(err error) (fix *fault.Error, ok bool) {
	var e *loginError
	return fix, errors.As(err, &e) && errors.As(e.fix, &fix)
}

// Addresses are the URLs at which a server may answer, the most likely first. There
// are none for a server that is not reached over HTTP.
func (s Spec) Addresses() []string {
	var urls []string
	if s.API.BaseURL != "" {
		return []string{strings.TrimSuffix(s.API.BaseURL, "/")}
	}
	for _, e := range endpoints(s) {
		if (e.Transport == HTTP || e.Transport == SSE) && !slices.Contains(urls, e.URL) {
			urls = append(urls, e.URL)
		}
	}
	return urls
}
