// Package netguard decides which addresses are on the public internet, and which
// requests of browsers are allowed.
package netguard

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/luanette/luanette/internal/base/fault"
)

// Public reports whether an address is on the public internet: not this machine, not a
// private network, not an embedded IPv4 address.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsGlobalUnicast() && !address.IsPrivate() && (address.Is4() || assigned.Contains(address)) &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(address) })
}

// assigned is the IPv6 range from which public servers have addresses.
var assigned = netip.MustParsePrefix("2000::/3")

// reserved are global unicast addresses that no public server has.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers (carrier-grade NAT)
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // tunnel relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // future use
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, IPv4 tunnels among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 tunnels
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

// ProxyFunc picks the proxy of a request; nil means none. It has the type of
// http.Transport.Proxy.
type ProxyFunc = func(*http.Request) (*url.URL, error)

// EnvironmentProxy follows HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in capital letters or not,
// as http.ProxyFromEnvironment does. This machine is always reached directly.
func EnvironmentProxy(getenv func(name string) (string, bool)) ProxyFunc {
	either := func(upper, lower string) string {
		one, _ := getenv(upper)
		other, _ := getenv(lower)
		return cmp.Or(one, other)
	}
	_, cgi := getenv("REQUEST_METHOD")
	choose := (&httpproxy.Config{
		HTTPProxy: either("HTTP_PROXY", "http_proxy"), HTTPSProxy: either("HTTPS_PROXY", "https_proxy"), NoProxy: either("NO_PROXY", "no_proxy"), CGI: cgi,
	}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// Dialer connects directly, or through a proxy. Its Control decides which addresses it
// connects to, in both cases: a proxy is asked for the address that was allowed and not for
// the name, which it might resolve to another one. So what http.Transport does with Proxy
// is right only where nothing is refused.
type Dialer struct {
	net.Dialer
	Proxy ProxyFunc // nil: none
}

// Through returns what an http.Transport needs to make requests through a proxy: a Proxy where
// nothing is refused, and otherwise a dialer that asks the proxy itself.
func Through(proxy ProxyFunc, dialer *net.Dialer) (ProxyFunc, func(ctx context.Context, network, address string) (net.Conn, error)) {
	if dialer.Control == nil {
		return proxy, dialer.DialContext
	}
	return nil, (&Dialer{*dialer, proxy}).DialContext
}

// DialContext connects to an address, as net.Dialer.DialContext does.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	proxy, err := d.proxyFor(address)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return d.Dialer.DialContext(ctx, network, address)
	}
	target, err := d.allowed(ctx, address)
	if err != nil {
		return nil, err
	}
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	return tunnel(ctx, proxy, target)
}

// proxyFor returns the proxy for tunnels to an address: that for HTTPS or, at the port of
// HTTP, that for HTTP.
func (d *Dialer) proxyFor(address string) (*url.URL, error) {
	if d.Proxy == nil {
		return nil, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	proxy, err := d.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if proxy == nil && err == nil && port == "80" {
		proxy, err = d.Proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: address}})
	}
	return proxy, err
}

// allowed returns the first address of a name that Control allows, or the name itself if
// there is nothing to decide.
func (d *Dialer) allowed(ctx context.Context, address string) (string, error) {
	if d.Control == nil {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	addresses, err := cmp.Or(d.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "resolve %s", host).
			WithHint("the address decides whether the server may connect, so this machine must be able to resolve the name, also behind a proxy")
	}
	var refused error
	for _, ip := range addresses {
		target := net.JoinHostPort(ip.Unmap().String(), port)
		if err := d.Control("tcp", target, nil); err == nil {
			return target, nil
		} else if refused == nil {
			refused = err
		}
	}
	return "", cmp.Or(refused, error(fault.New(fault.Unavailable, "%s has no address", host)))
}

// tunnel connects to an address through an HTTP proxy.
func tunnel(ctx context.Context, proxy *url.URL, target string) (net.Conn, error) {
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fault.New(fault.Config, "proxies of the kind %s cannot be used here", proxy.Scheme).WithHint("use an HTTP proxy in HTTPS_PROXY")
	}
	at := net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), map[string]string{"http": "80", "https": "443"}[proxy.Scheme]))
	conn, err := dialProxy(ctx, proxy, at)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "connect to the proxy %s", at)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends the exchange
	err = connect(conn, proxy, target)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s through the proxy %s", target, at)
	}
	return conn, nil
}

func dialProxy(ctx context.Context, proxy *url.URL, at string) (net.Conn, error) {
	if proxy.Scheme == "https" {
		return (&tls.Dialer{Config: &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", at)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

// connect asks a proxy for a connection to an address.
func connect(conn net.Conn, proxy *url.URL, target string) error {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(byteReader{io.LimitReader(conn, maxProxyHeader)}), request) //nolint:bodyclose // what follows is the tunnel
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fault.New(fault.Upstream, "the proxy answered %s", answer.Status)
	}
	return nil
}

// maxProxyHeader limits the header of a proxy's answer.
const maxProxyHeader = 64 << 10

// byteReader reads single bytes, and so no more than the header: what follows it belongs to
// the tunnel.
type byteReader struct{ io.Reader }

func (r byteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// Outbound decides which addresses others may make the server connect to: models,
// scripts, chats, and upstreams that refer to other servers. The public internet is
// always allowed.
type Outbound struct {
	Allowed  []string      // further addresses
	Loopback bool          // this machine is allowed too
	Resolver *net.Resolver // of names; nil: the machine's
	Proxy    ProxyFunc     // nil: none
	TLS      *tls.Config   // of requests; nil: the authorities of the machine
}

// Control is a net.Dialer.Control that refuses the other addresses. It runs after names
// were resolved, so a name that changes its address between check and use gains nothing.
func (o Outbound) Control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Denied, "connect to %s: not an address", address)
	}
	ip := target.Addr().Unmap()
	switch {
	case Public(ip), slices.Contains(o.Allowed, ip.String()), ip.IsLoopback() && o.Loopback:
		return nil
	case ip.IsLoopback():
		return fault.New(fault.Denied, "connect to %s: other machines can reach this server, so its clients may not reach this machine through it", ip).
			WithHint("add the server to luanette.toml, or allow this machine: mcp.allowed_hosts = [\"localhost\"]")
	}
	return fault.New(fault.Denied, "connect to %s: the address is in a private network", ip).
		WithHint("add the server to luanette.toml, or allow the address: mcp.allowed_hosts = [%q]", ip)
}

// Check refuses the host of a URL that is an address, or this machine's name, which Control
// refuses. Control decides about other names, when they are resolved.
func (o Outbound) Check(host string) error {
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
	case IsLoopback(host):
		ip = netip.IPv6Loopback()
	default:
		return nil
	}
	return o.Control("tcp", netip.AddrPortFrom(ip, 0).String(), nil)
}

// Transport makes HTTP requests to allowed addresses, through a proxy if there is one.
func (o Outbound) Transport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	transport.Proxy = nil // it would resolve names after the check
	transport.DialContext = (&Dialer{net.Dialer{Timeout: 5 * time.Second, Resolver: o.Resolver, Control: o.Control}, o.Proxy}).DialContext
	return transport
}

// Client is a client of allowed addresses that follows no redirects: what is sent is for
// the configured host only.
func (o Outbound) Client() *http.Client {
	return &http.Client{
		Transport:     o.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Source is what failures and attempts of an address are counted for: the address, or its
// network of 64 bits, since one IPv6 client has all addresses of it.
func Source(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is6() || ip.Is4In6() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // 64 bits fit
	return network.String()
}
