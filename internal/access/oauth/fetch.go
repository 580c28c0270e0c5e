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

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// Bounds of what an authorization server may say.
const (
	maxAnswer = 256 << 10
	fetchTime = 15 * time.Second
)

// fetcher asks where the metadata of a tool server leads. Others wrote those
// addresses, so they may lead to the public internet, to the host of a tool server
// that the owner named and to what he allowed, and nowhere else: it is looked at
// again when a name has become an address, and with every redirect.
type fetcher struct {
	home    *url.URL // the tool server
	trusted bool     // the owner wants it, not a model or a script
	allowed []string
	client  *http.Client
}

func (l *Logins) fetcher(s Server) (*fetcher, error) {
	home, err := url.Parse(s.URL)
	if err != nil || home.Host == "" {
		return nil, fault.New(fault.InvalidParams, "upstream %s has no URL to log in at", s.Name)
	}
	f := &fetcher{home: home, trusted: s.Trusted, allowed: l.options.AllowedHosts}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: f.control}
	free := &net.Dialer{Timeout: 5 * time.Second}
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
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > 3 || via[0].Method != http.MethodGet {
				return errors.New("redirected where no redirect is followed")
			}
			return f.allow(next.URL)
		},
	}
	return f, nil
}

// named tells that the owner named this very host, as a tool server's.
func (f *fetcher) named(host string) bool {
	return f.trusted && strings.EqualFold(host, f.home.Hostname())
}

// control refuses addresses once names have been resolved.
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
	return fault.New(fault.Denied, "connect to %s: the address is not of the public internet", ip).
		WithHint("if the authorization server is really there, allow the address: mcp.allowed_hosts = [%q]", ip)
}

// allow refuses addresses that no authorization server has.
func (f *fetcher) allow(u *url.URL) error {
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && netguard.IsLoopback(u.Hostname()) && netguard.IsLoopback(f.home.Hostname()):
	default:
		return fault.New(fault.Denied, "%s://%s is not reached by https", u.Scheme, u.Host).
			WithHint("tokens travel by https only, but for a server and an authorization server on this machine")
	}
	switch {
	case u.User != nil:
		return fault.New(fault.Denied, "address of %s has a user name in it", u.Hostname())
	case u.Hostname() == "":
		return fault.New(fault.Denied, "address has no host")
	}
	return nil
}

// parse reads an address that others wrote.
func (f *fetcher) parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fault.New(fault.Upstream, "address of the authorization server is not a URL")
	}
	return u, f.allow(u)
}

// errAbsent says that nothing is there.
var errAbsent = errors.New("there is no such page")

// get reads a JSON page into v.
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
		return fault.New(fault.Upstream, "%s answered what is not JSON", u.Host)
	}
	return nil
}

// do sends a request and reads the whole answer.
func (f *fetcher) do(request *http.Request) (status int, body []byte, err error) {
	response, err := f.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // it would quote the address, and what is secret in it
		}
		return 0, nil, fmt.Errorf("ask %s: %w", request.URL.Host, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("ask %s: %w", request.URL.Host, err)
	case len(body) > maxAnswer:
		return 0, nil, fault.New(fault.Limit, "%s answered more than %d bytes", request.URL.Host, maxAnswer)
	}
	return response.StatusCode, body, nil
}
