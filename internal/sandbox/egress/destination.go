package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// destination is where a program wants to connect to.
type destination struct {
	host    string     // a name in lower-case ASCII without a dot at its end, or an address
	address netip.Addr // valid if host is an address
	port    uint16
}

// String is host:port.
func (d destination) String() string { return net.JoinHostPort(d.host, strconv.Itoa(int(d.port))) }

// parseDestination reads host:port, as it is written in CONNECT and in URLs.
func parseDestination(text string) (destination, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return destination{}, fmt.Errorf("%q is not host:port", shortened(text))
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || port[0] == '+' {
		return destination{}, fmt.Errorf("%q is not a port", shortened(port))
	}
	return newDestination(host, uint16(number))
}

// newDestination brings a host into the one form in which rules are compared.
func newDestination(host string, port uint16) (destination, error) {
	d := destination{port: port}
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" {
			return d, fmt.Errorf("%q: addresses with a zone are not supported", shortened(host))
		}
		d.address = address.Unmap()
		d.host = d.address.String()
		return d, nil
	}
	name, err := normalName(host)
	if err != nil {
		return d, fmt.Errorf("%q is not a host: %w", shortened(host), err)
	}
	d.host = name
	return d, nil
}

// maxName is the longest name in DNS.
const maxName = 253

// names converts international names, as browsers do. Underscores are allowed, since
// hosts are called so in some networks.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(false))

// normalName returns a name in lower-case ASCII without the dot at its end.
func normalName(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 4*maxName {
		return "", errors.New("too long")
	}
	lower, plain := lowerASCII(name)
	if !plain || strings.Contains(lower, "xn--") {
		ascii, err := names.ToASCII(name)
		if err != nil {
			return "", errors.New("not a valid international name")
		}
		if lower, plain = lowerASCII(strings.TrimSuffix(ascii, ".")); !plain {
			return "", errors.New("not a valid international name")
		}
	}
	if lower == "" || len(lower) > maxName {
		return "", errors.New("too long or empty")
	}
	return lower, checkLabels(lower)
}

// lowerASCII returns name in lower case, and whether it is ASCII.
func lowerASCII(name string) (lower string, plain bool) {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return name, false
		}
	}
	return strings.ToLower(name), true
}

const labelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// checkLabels refuses names that no server has, and numbers: some resolvers take
// 0x7f.1 and 2130706433 for addresses.
func checkLabels(name string) error {
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("a part of the name is empty or too long")
		}
		if rest := strings.Trim(label, labelCharacters); rest != "" {
			return fmt.Errorf("it contains %q", rest[:1])
		}
		last = label
	}
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return errors.New("a number is not a name")
	}
	return nil
}

// shortened limits what a program can write into messages.
func shortened(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Rules are the destinations that a program may connect to. The zero value allows none.
type Rules struct {
	list []rule
	all  bool
}

// All are the rules of a program whose network is open: it reaches everything without
// us, so that refusing it something would protect nothing.
func All() Rules { return Rules{all: true} }

// rule is one entry: a name, all names below one, all names, or addresses.
type rule struct {
	text   string
	name   string       // exact, or below it
	below  bool         // *.name; with an empty name, every name
	prefix netip.Prefix // valid if it is about addresses
	port   uint16       // 0 is every port
}

// ParseRules reads entries such as api.github.com:443, *.npmjs.org:443, localhost:5432,
// 10.0.0.5:5432, 10.0.0.0/8:5432, [fd00::5]:80, *:443 and example.org:*. *.npmjs.org does
// not include npmjs.org.
func ParseRules(entries []string) (Rules, error) {
	rules := Rules{list: make([]rule, 0, len(entries))}
	for _, entry := range entries {
		r, problem := parseRule(entry)
		if problem != "" {
			return Rules{}, fault.New(fault.Config, "network: %q: %s", entry, problem).
				WithHint(`write host:port, such as "api.github.com:443", "*.npmjs.org:443" or "10.0.0.5:5432"`)
		}
		rules.list = append(rules.list, r)
	}
	return rules, nil
}

func parseRule(entry string) (r rule, problem string) {
	r.text = entry
	if entry == "*" {
		r.below = true
		return r, ""
	}
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return r, "the port is missing"
	}
	if port != "*" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return r, "the port is not a number from 1 to 65535, or *"
		}
		r.port = uint16(number)
	}
	if prefix, err := netip.ParsePrefix(host); err == nil {
		r.prefix = prefix.Masked()
		return r, ""
	}
	return r.withHost(host)
}

// withHost adds a name, a name below *, or an address.
func (r rule) withHost(host string) (_ rule, problem string) {
	if rest, wild := strings.CutPrefix(host, "*"); wild {
		r.below = true
		if rest == "" {
			return r, ""
		}
		if host, wild = strings.CutPrefix(rest, "."); !wild {
			return r, "* stands for whole parts of a name, as in *.example.org"
		}
	}
	d, err := newDestination(host, 0)
	switch {
	case err != nil:
		return r, "it is not a host"
	case d.address.IsValid() && r.below:
		return r, "* does not stand for parts of an address"
	case d.address.IsValid():
		r.prefix = netip.PrefixFrom(d.address, d.address.BitLen())
	}
	r.name = d.host
	return r, ""
}

// match returns the entry that allows a destination. An address must be listed itself.
func (r Rules) match(d destination) (entry string, allowed bool) {
	for _, rule := range r.list {
		if rule.matches(d) {
			return rule.text, true
		}
	}
	return "", r.all
}

func (r rule) matches(d destination) bool {
	switch {
	case r.port != 0 && r.port != d.port:
		return false
	case d.address.IsValid():
		return r.prefix.IsValid() && r.prefix.Contains(d.address)
	case r.prefix.IsValid():
		return false
	case !r.below:
		return r.name == d.host
	}
	parent, found := strings.CutSuffix(d.host, r.name)
	return r.name == "" || found && strings.HasSuffix(parent, ".") && len(parent) > 1
}

// permits reports whether a connection to d may go to an address that d's name resolves
// to. Addresses of this machine and of private networks must be listed themselves, since
// whoever owns a name decides where it leads; localhost is a name for this machine only.
func (r Rules) permits(d destination, address netip.Addr) bool {
	if r.all || netguard.Public(address) || d.host == "localhost" && address.IsLoopback() {
		return true
	}
	return r.lists(address, d.port)
}

// lists reports whether an address is listed as such.
func (r Rules) lists(address netip.Addr, port uint16) bool {
	_, listed := r.match(destination{address: address.Unmap(), port: port})
	return listed
}
