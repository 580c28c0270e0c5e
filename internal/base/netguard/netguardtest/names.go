// Package netguardtest has names lead where a test says, and gives it addresses: of its
// own, and one that must not be reached.
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

// Names answers whatever this program looks up. Names that it was not told of do
// not exist, so that nothing is ever asked outside.
type Names struct {
	server net.PacketConn

	mu      sync.Mutex
	answers map[string]func() netip.Addr // by name
}

// InterceptDNS has every name looked up here from now on. It is for a variable of a
// test's package: nobody may look up anything meanwhile.
func InterceptDNS() *Names {
	server, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("listen for questions about names: %v", err))
	}
	n := &Names{server: server, answers: map[string]func() netip.Addr{}}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	go n.serve()
	return n
}

// Add makes a new name, which leads where to says each time that it is looked up.
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

// Of messages of the domain name system (RFC 1035).
const (
	headerSize = 12
	typeA      = 1
	typeAAAA   = 28
	answered   = 0x8180
	noSuchName = 0x8183
)

// reply is the question, with the address as its answer where it is of the kind
// that was asked for.
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
	reply = append(reply, 0xc0, headerSize) // the name that was asked for
	reply = binary.BigEndian.AppendUint16(reply, kind)
	reply = append(reply, 0, 1, 0, 0, 0, 0) // of the internet, to be kept no second
	reply = binary.BigEndian.AppendUint16(reply, uint16(address.BitLen()/8))
	return append(reply, address.AsSlice()...)
}

// readName is the name that a message asks for, and where it ends.
func readName(query []byte) (name string, end int) {
	var labels []string
	for end = headerSize; end < len(query) && query[end] != 0; end += int(query[end]) + 1 {
		labels = append(labels, string(query[min(end+1, len(query)):min(end+1+int(query[end]), len(query))]))
	}
	return strings.ToLower(strings.Join(labels, ".")), end + 1
}
