package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
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
