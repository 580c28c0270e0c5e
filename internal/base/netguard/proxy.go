package netguard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Proxies are the reverse proxies whose statements about their clients are believed.
type Proxies []netip.Prefix

// ParseProxies reads addresses and networks, such as 10.0.0.7 or 10.0.0.0/8.
func ParseProxies(list []string) (Proxies, error) {
	var all Proxies
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fault.New(fault.Config, "trusted_proxies: %q is not an address or a network", text).
				WithHint("write 127.0.0.1 or 10.0.0.0/8")
		}
		all = append(all, netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()).Masked())
	}
	return all, nil
}

// forwarding are the headers that proxies add.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Real-Ip", "Via"}

// Forwarded returns the header by which a proxy shows that it forwarded the request, or
// "" if there is none.
func Forwarded(r *http.Request) string {
	for _, name := range forwarding {
		if _, found := r.Header[name]; found {
			return name
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			return name
		}
	}
	return ""
}

// Client returns the address that a request comes from. If it comes from a trusted proxy,
// that is the last address in its headers that is not a trusted proxy itself: a client
// can write the addresses before it. If the headers contradict each other, the client
// wrote one of them, and the result is the proxy.
func (p Proxies) Client(r *http.Request) string {
	host := hostOf(r.RemoteAddr)
	if !p.trusts(host) {
		return host
	}
	var said []string
	for _, chain := range [][]string{forwardedFor(r.Header.Values("Forwarded")), list(r.Header.Values("X-Forwarded-For")), list(r.Header.Values("X-Real-Ip"))} {
		if len(chain) > 0 {
			said = append(said, p.last(chain))
		}
	}
	said = slices.Compact(said)
	if len(said) != 1 || said[0] == "" {
		return host
	}
	return said[0]
}

// Secure reports whether the client used TLS, to us or to a trusted proxy.
func (p Proxies) Secure(r *http.Request) bool {
	return r.TLS != nil || p.trusts(hostOf(r.RemoteAddr)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// Trusts reports whether a request comes from a trusted proxy.
func (p Proxies) Trusts(r *http.Request) bool { return p.trusts(hostOf(r.RemoteAddr)) }

func (p Proxies) trusts(host string) bool {
	if len(p) == 0 {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(address.Unmap().WithZone("")) })
}

// last returns the last address that is not a trusted proxy, the first if all are, and ""
// if it is not an address.
func (p Proxies) last(chain []string) string {
	at := len(chain) - 1
	for at > 0 && p.trusts(chain[at]) {
		at--
	}
	address, err := netip.ParseAddr(chain[at])
	if err != nil {
		return ""
	}
	return address.Unmap().String()
}

// list returns the addresses of headers whose values are separated by commas.
func list(values []string) (all []string) {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			all = append(all, addressOf(one))
		}
	}
	return all
}

// forwardedFor returns the addresses of Forwarded headers (RFC 7239). An element without
// an address is "unknown".
func forwardedFor(values []string) (all []string) {
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			from := "unknown"
			for pair := range strings.SplitSeq(element, ";") {
				if name, text, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
					from = addressOf(text)
				}
			}
			all = append(all, from)
		}
	}
	return all
}

// addressOf returns the address of 192.0.2.1, 192.0.2.1:80, 2001:db8::1 or
// "[2001:db8::1]:80".
func addressOf(text string) string {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return strings.Trim(text, "[]")
}
