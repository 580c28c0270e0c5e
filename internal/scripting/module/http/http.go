// Package http is the http module of scripts: requests to the hosts that the
// configuration allows. The client enforces that.
package http

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed http.md prelude.lua prelude.js
var files embed.FS

// Module is the global http, and http_request.
func Module() host.Module {
	return host.Module{Name: "http", Text: host.ReadText(files), Funcs: []host.Func{
		{
			Name: "request", Effect: request, Check: checkRequest, Classify: classify, Waits: true,
			Action: func(args host.Args) string {
				return fmt.Sprintf("send %v %v%s", args.At(1), args.At(2), host.Sized(args.At(4)))
			},
			Mock: `{"status":200,"headers":{},"body":""}`, Mocked: mockedResponse,
		},
	}}
}

// request(method, url, headers, body, milliseconds) returns status, headers, body and
// the final URL.
func request(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if w.HTTP == nil {
		return nil, noNetwork()
	}
	milliseconds, err := args.OptInt(5, 0)
	if err != nil {
		return nil, err
	}
	if milliseconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(milliseconds)*time.Millisecond, errTooSlow)
		defer cancel()
	}
	question, err := newRequest(ctx, args)
	if err != nil {
		return nil, err
	}
	answer, err := w.HTTP.Do(question)
	if err != nil {
		return nil, noAnswer(ctx, question, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, noAnswer(ctx, question, err)
	}
	headers, err := host.Table(flat(answer.Header))
	return []host.Value{int64(answer.StatusCode), headers, string(body), answer.Request.URL.String()}, err
}

// checkRequest refuses what request would refuse before it sends anything.
func checkRequest(ctx context.Context, w *host.Services, args host.Args) error {
	if w.HTTP == nil {
		return noNetwork()
	}
	question, err := newRequest(ctx, args)
	if err != nil {
		return err
	}
	if g, ok := w.HTTP.Transport.(*guard); ok {
		return g.rules.check(question.URL)
	}
	return nil
}

// mockedResponse completes the mock of a response: one table.
func mockedResponse(args host.Args, mock json.RawMessage) ([]host.Value, error) {
	out := struct {
		Status  int64           `json:"status"`
		Headers json.RawMessage `json:"headers"`
		Body    json.RawMessage `json:"body"`
		URL     host.Value      `json:"url"`
	}{Status: 200, Headers: json.RawMessage("{}"), Body: json.RawMessage(`""`)}
	if err := host.ReadMock(args, mock, &out); err != nil {
		return nil, err
	}
	if len(out.Body) > 0 && out.Body[0] != '"' { // a body that is not a string is given as JSON
		text, err := json.Marshal(string(out.Body))
		if err != nil {
			return nil, err
		}
		out.Body = text
	}
	out.URL = args.At(2)
	table, err := host.Table(out)
	return []host.Value{table}, err
}

func noNetwork() error {
	return fault.New(fault.Denied, "http: this run may not use the network").
		WithHint("allow hosts in the configuration with scripts.http_hosts")
}

func newRequest(ctx context.Context, args host.Args) (*http.Request, error) {
	method, err := args.String(1)
	if err != nil {
		return nil, err
	}
	url, err := args.String(2)
	if err != nil {
		return nil, err
	}
	var headers map[string]string
	if err := args.Decode(3, &headers); err != nil {
		return nil, err
	}
	body, err := args.OptString(4, "")
	if err != nil {
		return nil, err
	}
	question, err := http.NewRequestWithContext(ctx, strings.ToUpper(method), url, strings.NewReader(body))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "http: %v", err)
	}
	question.Header.Set("User-Agent", "luanette")
	for name, value := range headers {
		if strings.EqualFold(name, "host") {
			question.Host = value
		}
		question.Header.Set(name, value)
	}
	return question, nil
}

// errTooSlow is the cause of a request that exceeded the script's timeout.
var errTooSlow = errors.New("no answer in time")

// noAnswer converts the error of a request: our own refusals stay as they are,
// everything else is a failure of the other side.
func noAnswer(ctx context.Context, question *http.Request, err error) error {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return refused
	}
	doing := "http: " + question.Method + " " + question.URL.Redacted()
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return fault.Wrap(fault.Unavailable, errTooSlow, "%s", doing)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the URL, which doing contains
	}
	return fault.Wrap(fault.Unavailable, err, "%s", doing)
}

// flat joins the values of every header under its lower-case name.
func flat(headers http.Header) map[string]string {
	flat := make(map[string]string, len(headers))
	for name, values := range headers {
		flat[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return flat
}

// classify decides by what HTTP methods promise.
func classify(_ context.Context, w *host.Services, args host.Args) host.Kind {
	method, _ := args.At(1).(string)
	switch strings.ToUpper(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if w != nil && w.GetWrites {
			return host.Idempotent
		}
		return host.Read
	case http.MethodPut, http.MethodDelete:
		return host.Idempotent
	default:
		return host.Write
	}
}

// ClientOptions are the hosts that scripts may reach. Without hosts there is no client.
type ClientOptions struct {
	// Hosts are names ("api.example.com"), all names below one ("*.example.com"), all
	// public hosts ("*"), addresses ("10.0.0.5") or ranges of them ("10.0.0.0/8"), each
	// with a port (":8080") or for all ports. Addresses that are not public are refused,
	// whatever name resolves to them, unless they are listed themselves, or "localhost"
	// for those of this machine.
	Hosts   []string
	Limit   int64              // largest response in bytes; 0 means 1 MiB
	Timeout time.Duration      // for a whole response; 0 means 30 s
	Proxy   netguard.ProxyFunc // nil: none
}

// maxRedirects is the number of redirects that are followed.
const maxRedirects = 5

// NewClient makes a client that reaches only what options allow, also after redirects,
// or nil if that is nothing.
func NewClient(o ClientOptions) (*http.Client, error) {
	if len(o.Hosts) == 0 {
		return nil, nil
	}
	if o.Limit == 0 {
		o.Limit = 1 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	rules, err := parseRules(o.Hosts)
	if err != nil {
		return nil, err
	}
	dialer := &netguard.Dialer{Dialer: net.Dialer{Timeout: 10 * time.Second, Control: rules.control}, Proxy: o.Proxy}
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: fewRedirects,
		Transport: &guard{rules: rules, limit: o.Limit, inner: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConnsPerHost:    4,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		}},
	}, nil
}

func fewRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fault.New(fault.Upstream, "http: redirected more than %d times", maxRedirects)
	}
	return nil
}

// guard refuses requests that are not allowed and limits responses. Redirects pass it
// too.
type guard struct {
	rules rules
	limit int64
	inner *http.Transport
}

// CloseIdleConnections closes idle connections of the client.
func (g *guard) CloseIdleConnections() { g.inner.CloseIdleConnections() }

func (g *guard) RoundTrip(question *http.Request) (*http.Response, error) {
	if err := g.rules.check(question.URL); err != nil {
		return nil, err
	}
	answer, err := g.inner.RoundTrip(question)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: g.limit, limit: g.limit}
	return answer, nil
}

// bounded is a body with a size and time limit.
type bounded struct {
	io.ReadCloser
	left, limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fault.New(fault.Limit, "http: the response is larger than %d bytes", b.limit)
	}
	return n, err
}

// rules are the allowed hosts.
type rules []rule

// rule allows a name or a range of addresses.
type rule struct {
	name  string // in lower case; "*" for all, "*." in front for all below
	where netip.Prefix
	port  string // "" for all
}

func parseRules(hosts []string) (rules, error) {
	var all rules
	for _, text := range hosts {
		r := rule{name: strings.ToLower(text)}
		if host, port, err := net.SplitHostPort(text); err == nil && isNumber(port) {
			r.name, r.port = strings.ToLower(host), port
		}
		if prefix, err := netip.ParsePrefix(r.name); err == nil {
			r.where = prefix.Masked()
		} else if addr, err := netip.ParseAddr(strings.Trim(r.name, "[]")); err == nil {
			r.where = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		} else if strings.ContainsAny(r.name, "/:@ ") || r.name == "" || strings.Contains(strings.TrimPrefix(r.name, "*"), "*") {
			return nil, fault.New(fault.Config, "%q is not a valid host for scripts.http_hosts", text).
				WithHint("write a name, *.name, an address or a range, with or without :port")
		}
		all = append(all, r)
	}
	return all, nil
}

func isNumber(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// check returns why a script may not request a URL.
func (all rules) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fault.New(fault.Denied, "http: %q is not a web address", u.Redacted()).WithHint("use http or https")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	addr, err := netip.ParseAddr(host)
	for _, r := range all {
		portFits := r.port == "" || r.port == port
		if portFits && (err == nil && r.holds(addr) || r.named(host)) {
			return nil
		}
	}
	return fault.New(fault.Denied, "http: scripts may not reach %s", u.Host).
		WithHint("allow it in the configuration with scripts.http_hosts; allowed now: %s", all)
}

func (r rule) holds(addr netip.Addr) bool { return r.where.IsValid() && r.where.Contains(addr.Unmap()) }

func (r rule) named(host string) bool {
	if below, ok := strings.CutPrefix(r.name, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return r.name == "*" || r.name == host
}

// control checks the address of a connection after names were resolved, so that no name
// can lead to a private address.
func (all rules) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := at.Addr().Unmap()
	if netguard.Public(addr) {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.port != "" && r.port != port {
			continue
		}
		if r.where.IsValid() && r.where.Contains(addr) || r.name == "localhost" && addr.IsLoopback() {
			return nil
		}
	}
	return fault.New(fault.Denied, "http: %s is not a public address", addr).
		WithHint("list the address itself in the configuration to allow it")
}

// String lists the allowed hosts.
func (all rules) String() string {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
		if r.port != "" {
			names[i] = net.JoinHostPort(r.name, r.port)
		}
	}
	return strings.Join(names, ", ")
}

var _ http.RoundTripper = (*guard)(nil)
