package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// Limits for the responses of an authorization server.
const (
	maxAnswer = 256 << 10
	fetchTime = 15 * time.Second
)

// fetcher requests addresses from the metadata of a tool server. The metadata is not
// trusted, so the fetcher connects only to the public internet, to the hosts of tool
// servers that the owner configured, and to allowed hosts. It checks this again after
// a name was resolved and for every redirect.
type fetcher struct {
	home    *url.URL // the tool server
	trusted bool     // configured by the owner, not by a model or a script
	allowed []string
	client  *http.Client
}

func (l *Logins) fetcher(s Server) (*fetcher, error) {
	home, err := url.Parse(s.URL)
	if err != nil || home.Host == "" {
		return nil, fault.New(fault.InvalidParams, "upstream %s has no URL, so it has no login", s.Name)
	}
	tlsConfig, err := certpool.Config(l.options.CAFile, s.CAFile)
	if err != nil {
		return nil, err
	}
	f := &fetcher{home: home, trusted: s.Trusted, allowed: l.options.AllowedHosts}
	dialer := &netguard.Dialer{Dialer: net.Dialer{Timeout: 5 * time.Second, Control: f.control}, Proxy: l.options.Proxy}
	free := &netguard.Dialer{Dialer: net.Dialer{Timeout: 5 * time.Second}, Proxy: l.options.Proxy}
	f.client = &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				host, _, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				if f.named(host) {
					return free.DialContext(ctx, network, address)
				}
				return dialer.DialContext(ctx, network, address)
			},
			TLSClientConfig:        tlsConfig,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > 3 || via[0].Method != http.MethodGet {
				return errors.New("unexpected redirect")
			}
			return f.allow(next.URL)
		},
	}
	return f, nil
}

// named reports whether the owner configured this host as that of a tool server.
func (f *fetcher) named(host string) bool {
	return f.trusted && strings.EqualFold(host, f.home.Hostname())
}

// control refuses addresses after names were resolved.
func (f *fetcher) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Denied, "connect to %s: not an address", address)
	}
	ip := target.Addr().Unmap()
	switch {
	case netguard.Public(ip), slices.Contains(f.allowed, ip.String()):
		return nil
	case ip.IsLoopback() && netguard.IsLoopback(f.home.Hostname()):
		return nil
	}
	return fault.New(fault.Denied, "connect to %s: the address is not on the public internet", ip).
		WithHint("if this is the address of the authorization server, allow it: mcp.allowed_hosts = [%q]", ip)
}

// allow refuses URLs that an authorization server cannot have.
func (f *fetcher) allow(u *url.URL) error {
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && netguard.IsLoopback(u.Hostname()) && netguard.IsLoopback(f.home.Hostname()):
	default:
		return fault.New(fault.Denied, "%s://%s does not use https", u.Scheme, u.Host).
			WithHint("tokens are sent only over https, except between servers on this machine")
	}
	switch {
	case u.User != nil:
		return fault.New(fault.Denied, "the address of %s contains a user name", u.Hostname())
	case u.Hostname() == "":
		return fault.New(fault.Denied, "the address has no host")
	}
	return nil
}

// parse parses an address of another server.
func (f *fetcher) parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fault.New(fault.Upstream, "the address of the authorization server is not a URL")
	}
	return u, f.allow(u)
}

// errAbsent is returned for a response with a 4xx status.
var errAbsent = errors.New("not found")

// get reads a JSON document into v.
func (f *fetcher) get(ctx context.Context, raw string, v any) error {
	u, err := f.parse(raw)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	status, body, err := f.do(request)
	switch {
	case err != nil:
		return err
	case status >= 400 && status < 500:
		return errAbsent
	case status != http.StatusOK:
		return fault.New(fault.Upstream, "%s answered %d", u.Host, status)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fault.New(fault.Upstream, "the response of %s is not JSON", u.Host)
	}
	return nil
}

// do sends a request and reads the whole response.
func (f *fetcher) do(request *http.Request) (status int, body []byte, err error) {
	response, err := f.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the outer error quotes the URL, which may contain secrets
		}
		if hint := certpool.Hint(err); hint != "" {
			return 0, nil, fault.Wrap(fault.Unavailable, err, "ask %s", request.URL.Host).WithHint("%s", hint)
		}
		return 0, nil, fmt.Errorf("ask %s: %w", request.URL.Host, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("ask %s: %w", request.URL.Host, err)
	case len(body) > maxAnswer:
		return 0, nil, fault.New(fault.Limit, "the response of %s is larger than %d bytes", request.URL.Host, maxAnswer)
	}
	return response.StatusCode, body, nil
}
