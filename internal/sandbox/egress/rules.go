package egress

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

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
