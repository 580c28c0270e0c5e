package egress

import (
	"io"
	"net"
	"slices"
	"time"
)

// Ports are the ports at which connections of programs that do not know the proxy are
// taken: those of the web, and those that the rules name.
func (g *Gateway) Ports() []int {
	ports := []int{80, 443}
	for _, r := range g.dialer.rules.list {
		if port := int(r.port); port != 0 && !slices.Contains(ports, port) && len(ports) < maxPorts {
			ports = append(ports, port)
		}
	}
	return ports
}

// maxPorts is at how many ports there is a listener.
const maxPorts = 64

// ServeDirect accepts connections that the program believes to have with another host,
// until the listener is closed. Their local address is that of the host.
func (g *Gateway) ServeDirect(listener net.Listener) { g.accept(listener, g.receiveDirect) }

// receiveDirect connects the program to the host that it means.
func (g *Gateway) receiveDirect(client *clientConn) {
	local, isTCP := client.LocalAddr().(*net.TCPAddr)
	if !isTCP {
		_ = client.Close()
		return
	}
	at := local.AddrPort()
	to, err := newDestination(g.HostOf(at.Addr()), at.Port())
	if err != nil {
		_ = client.Close()
		return
	}
	g.carry(client, to, Direct, func(failed error) error {
		if failed != nil {
			g.explainDirect(client, failed)
		}
		return nil
	})
}

// patience is how long a program may take to speak, and to hear why it is refused.
const patience = 2 * time.Second

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16

// explainDirect tells a program in its own protocol that it is refused, if it is TLS or
// HTTP: others see that the connection ends.
func (g *Gateway) explainDirect(client *clientConn, failed error) {
	_ = client.SetDeadline(time.Now().Add(patience))
	first := make([]byte, 4096)
	n, err := client.Read(first)
	switch {
	case err != nil:
		return
	case first[0] == tlsHandshake:
		_, err = client.Conn.Write([]byte{0x15, 3, 1, 0, 2, 2, 49}) // the alert access_denied
	case n > 4 && isUpper(first[0]) && isUpper(first[1]):
		err = g.writeRefusal(client, failed)
	default:
		return
	}
	if err == nil && client.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(client, maxHeader)) // unread data would take the answer with it
	}
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }
