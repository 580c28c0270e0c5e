// Package netguardtest controls name resolution in tests, and reserves addresses,
// among them one that must not be reached.
package netguardtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// Names answers all DNS lookups of this program. Other names do not exist, so no
// lookup leaves the machine.
type Names struct {
	server net.PacketConn

	mu      sync.Mutex
	answers map[string]func() netip.Addr // by name
}

// InterceptDNS answers all lookups from now on. Call it to initialize a package
// variable of a test, because no lookup may run at the same time.
func InterceptDNS() *Names {
	server, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("listen for DNS queries: %v", err))
	}
	n := &Names{server: server, answers: map[string]func() netip.Addr{}}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	go n.serve()
	return n
}

// Add returns a new name, which resolves to the result of to each time.
func (n *Names) Add(to func() netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := fmt.Sprintf("n%d.rebind.example", len(n.answers))
	n.answers[name] = to
	return name
}

func (n *Names) serve() {
	query := make([]byte, 512)
	for {
		size, from, err := n.server.ReadFrom(query)
		if err != nil {
			return
		}
		if reply := n.reply(query[:size]); reply != nil {
			_, _ = n.server.WriteTo(reply, from)
		}
	}
}

// Constants of DNS messages (RFC 1035).
const (
	headerSize = 12
	typeA      = 1
	typeAAAA   = 28
	answered   = 0x8180
	noSuchName = 0x8183
)

// reply returns the response to a query. It has the address if that is of the
// requested type.
func (n *Names) reply(query []byte) []byte {
	name, end := readName(query)
	if end+4 > len(query) {
		return nil
	}
	n.mu.Lock()
	to := n.answers[name]
	n.mu.Unlock()
	reply := append([]byte(nil), query[:end+4]...)
	binary.BigEndian.PutUint16(reply[2:], noSuchName)
	clear(reply[6:headerSize])
	if to == nil {
		return reply
	}
	binary.BigEndian.PutUint16(reply[2:], answered)
	kind := binary.BigEndian.Uint16(query[end:])
	address := to()
	if address.Is4() != (kind == typeA) || address.Is6() != (kind == typeAAAA) {
		return reply
	}
	binary.BigEndian.PutUint16(reply[6:], 1)
	reply = append(reply, 0xc0, headerSize) // the name in the query
	reply = binary.BigEndian.AppendUint16(reply, kind)
	reply = append(reply, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
	reply = binary.BigEndian.AppendUint16(reply, uint16(address.BitLen()/8))
	return append(reply, address.AsSlice()...)
}

// readName returns the name in a query, and where it ends.
func readName(query []byte) (name string, end int) {
	var labels []string
	for end = headerSize; end < len(query) && query[end] != 0; end += int(query[end]) + 1 {
		labels = append(labels, string(query[min(end+1, len(query)):min(end+1+int(query[end]), len(query))]))
	}
	return strings.ToLower(strings.Join(labels, ".")), end + 1
}
