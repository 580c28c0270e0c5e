package zmtp

import (
	"bufio"
	"bytes"
	"io"
	"net"

	"github.com/luanette/luanette/internal/base/fault"
)

// The two parts of a greeting: a signature that older versions understand as
// well, then version, mechanism and filler.
const (
	signatureSize = 10
	greetingSize  = 64
)

// greeting is our greeting: ZMTP 3.1, no security.
func greeting() []byte {
	g := make([]byte, greetingSize)
	g[0], g[8], g[9] = 0xff, 1, 0x7f
	g[10], g[11] = 3, 1
	copy(g[12:], "NULL")
	return g
}

// readGreeting reads the peer's greeting and returns its minor version. It fails
// on the first bytes of another protocol, without waiting for more.
func readGreeting(in io.Reader) (minor int, err error) {
	g := make([]byte, greetingSize)
	if _, err := io.ReadFull(in, g[:signatureSize]); err != nil {
		return 0, err
	}
	if g[0] != 0xff || g[9]&1 == 0 {
		return 0, violation("read greeting: %q is not ZMTP", g[:signatureSize])
	}
	if _, err := io.ReadFull(in, g[signatureSize:signatureSize+1]); err != nil {
		return 0, midFrame(err)
	}
	if g[10] < 3 {
		return 0, violation("read greeting: the peer uses a version of ZMTP before 3.0")
	}
	if _, err := io.ReadFull(in, g[signatureSize+1:]); err != nil {
		return 0, midFrame(err)
	}
	if mechanism := bytes.TrimRight(g[12:32], "\x00"); string(mechanism) != "NULL" {
		return 0, violation("read greeting: the peer requires the security mechanism %q", mechanism)
	}
	if g[10] > 3 {
		return 1, nil // later versions fall back to ours
	}
	return int(g[11]), nil
}

// handshake exchanges greetings and READY with the peer. The caller limits its
// time with the connection's deadline.
func handshake(conn net.Conn, in *bufio.Reader, kind Kind, identity string) (Peer, error) {
	peer := Peer{Addr: conn.RemoteAddr().String()}
	if _, err := conn.Write(greeting()); err != nil {
		return peer, err
	}
	minor, err := readGreeting(in)
	if err != nil {
		return peer, err
	}
	peer.Minor = minor
	out := bufio.NewWriter(conn)
	writeFrame(out, flagCommand, ready(kind, identity))
	if err := out.Flush(); err != nil {
		return peer, err
	}
	if err := readReady(in, &peer); err != nil {
		return peer, err
	}
	if !kind.accepts(peer.Kind) {
		writeFrame(out, flagCommand, refusal("a "+kind.String()+" does not connect to this kind of socket"))
		_ = out.Flush() // the connection ends either way
		return peer, violation("read READY: a %s cannot connect to a %.20q", kind, peer.Kind)
	}
	return peer, nil
}

// readReady reads the peer's READY, or the ERROR it sends instead.
func readReady(in *bufio.Reader, peer *Peer) error {
	flags, body, err := readFrame(in, maxCommand)
	if err != nil {
		return midFrame(err)
	}
	if flags&flagCommand == 0 {
		return violation("read READY: the peer sent a message instead")
	}
	name, data, err := splitCommand(body)
	if err != nil {
		return err
	}
	switch name {
	case cmdReady:
	case cmdError:
		return refusedByPeer(data)
	default:
		return violation("read READY: the peer sent %.20q instead", name)
	}
	found, err := properties(data)
	if err != nil {
		return err
	}
	peer.Kind, peer.Identity = found["socket-type"], found["identity"]
	if len(peer.Identity) > 255 {
		return violation("read READY: an identity of %d bytes", len(peer.Identity))
	}
	return nil
}

// refusedByPeer is the error for a peer that sent ERROR.
func refusedByPeer(data []byte) error {
	return fault.New(fault.Upstream, "the peer refused the connection: %q", reason(data)).
		WithHint("check that both ends are ZeroMQ sockets of compatible kinds")
}
