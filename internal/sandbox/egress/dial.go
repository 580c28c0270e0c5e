package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/luanette/luanette/internal/base/netguard"
)

// refusedError says that a destination is not allowed. allow is the entry of network that
// would allow it; empty if none can.
type refusedError struct {
	reason string
	allow  string
}

func (e *refusedError) Error() string { return e.reason }

// dialTimeout bounds one attempt to connect.
const dialTimeout = 15 * time.Second

// dialer connects to destinations within the rules.
type dialer struct {
	rules   Rules
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// connect resolves the name once and connects to one of the addresses it found and
// checked. A name that changes its address in between gains nothing.
func (d dialer) connect(ctx context.Context, to destination) (net.Conn, error) {
	addresses, err := d.addresses(ctx, to)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, address := range addresses {
		conn, err := d.dial(ctx, netip.AddrPortFrom(address, to.port))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		// Public addresses of this machine lead to what listens here, ourselves included.
		if netguard.Public(address) && isOwn(address, conn) && !d.rules.all && !d.rules.lists(address, to.port) {
			_ = conn.Close() // nothing was sent
			return nil, notPublic(to, address)
		}
		return conn, nil
	}
	return nil, errors.Join(failed...)
}

// addresses are those of a destination that the rules permit.
func (d dialer) addresses(ctx context.Context, to destination) ([]netip.Addr, error) {
	found := []netip.Addr{to.address}
	if !to.address.IsValid() {
		var err error
		if found, err = d.lookup(ctx, to.host); err != nil {
			return nil, fmt.Errorf("resolve %s: %w", to.host, err)
		}
	}
	var permitted []netip.Addr
	for i, address := range found {
		found[i] = address.Unmap().WithZone("")
		if d.rules.permits(to, found[i]) {
			permitted = append(permitted, found[i])
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("resolve %s: no address", to.host)
	case len(permitted) == 0:
		return nil, notPublic(to, found[0])
	}
	return permitted, nil
}

// notPublic refuses an address of this machine or of a private network.
func notPublic(to destination, address netip.Addr) error {
	return &refusedError{
		reason: fmt.Sprintf("%s leads to %s, which is not on the public internet", to.host, address),
		allow:  netip.AddrPortFrom(address, to.port).String(),
	}
}

// lookup resolves a name. localhost is this machine, whatever a resolver says.
func (d dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return d.resolve(ctx, host)
}

// resolveName asks the system's resolver.
func resolveName(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// dialAddress connects to an address.
func dialAddress(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	plain := net.Dialer{Timeout: dialTimeout}
	conn, err := plain.DialTCP(ctx, "tcp", netip.AddrPort{}, address)
	if err != nil {
		return nil, err // not conn, which is a nil pointer
	}
	return conn, nil
}

// isOwn reports whether an address is this machine's: then the kernel also chose it for
// our end of the connection.
func isOwn(address netip.Addr, conn net.Conn) bool {
	local, known := conn.LocalAddr().(*net.TCPAddr)
	return known && local.AddrPort().Addr().Unmap() == address
}

// maxNames is how many names of a program have an address at a time.
const maxNames = 8192

// nameTable gives names addresses of 198.18.0.0/15, a range that nobody uses, so that a
// connection to the address tells the name that was meant. The oldest name loses its
// address when there are too many.
type nameTable struct {
	mu        sync.Mutex
	addresses map[string]netip.Addr
	names     map[netip.Addr]string
	given     int
}

// addressOf is the address of a name.
func (t *nameTable) addressOf(name string) netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	if address, found := t.addresses[name]; found {
		return address
	}
	n := t.given%maxNames + 256 // 198.18.0 has the program's own address
	address := netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
	t.given++
	if t.names == nil {
		t.addresses, t.names = map[string]netip.Addr{}, map[netip.Addr]string{}
	}
	delete(t.addresses, t.names[address])
	t.addresses[name], t.names[address] = address, name
	return address
}

// HostOf is the host that the program means by an address: the name that it asked for,
// localhost, or the address itself.
func (g *Gateway) HostOf(address netip.Addr) string {
	address = address.Unmap()
	if address.IsLoopback() {
		return "localhost"
	}
	g.names.mu.Lock()
	defer g.names.mu.Unlock()
	if name, found := g.names.names[address]; found {
		return name
	}
	return address.String()
}

// ServeNames answers questions of DNS until conn is closed. Every name has an address,
// also one that is not allowed: the connection is refused, whose port says more.
func (g *Gateway) ServeNames(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		switch {
		case err == nil:
			if answer := g.answerNames(buffer[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from) // whoever got no answer asks again
			}
		case errors.Is(err, net.ErrClosed) || g.service.options.Clock.Sleep(g.ctx, 10*time.Millisecond) != nil:
			return
		}
	}
}

// nameLife is how long programs may remember an address, in seconds.
const nameLife = 60

// answerNames answers one message; nil if it is no question.
func (g *Gateway) answerNames(message []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || header.Response {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Header{ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	name, err := normalName(question.Name.String())
	switch {
	case header.OpCode != 0 || question.Class != dnsmessage.ClassINET:
		reply.RCode = dnsmessage.RCodeNotImplemented
	case err != nil:
		reply.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	err = errors.Join(b.StartQuestions(), b.Question(question), b.StartAnswers())
	if reply.RCode == dnsmessage.RCodeSuccess && question.Type == dnsmessage.TypeA {
		address := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if name != "localhost" {
			address = g.names.addressOf(name)
		}
		about := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: nameLife}
		err = errors.Join(err, b.AResource(about, dnsmessage.AResource{A: address.As4()}))
	}
	answer, built := b.Finish()
	if errors.Join(err, built) != nil {
		return nil
	}
	return answer
}
