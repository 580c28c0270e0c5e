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

// The security mechanisms.
const (
	mechanismNull  = "NULL"
	mechanismCurve = "CURVE"
)

// asServer is the position of the byte in a greeting that says which end is the server
// of the mechanism.
const asServer = 32

// greeting is our greeting: ZMTP 3.1.
func (h *handshake) greeting() []byte {
	g := make([]byte, greetingSize)
	g[0], g[8], g[9] = 0xff, 1, 0x7f
	g[10], g[11] = 3, 1
	copy(g[12:], h.mechanism())
	if h.curve != nil && h.listens {
		g[asServer] = 1
	}
	return g
}

func (h *handshake) mechanism() string {
	if h.curve != nil {
		return mechanismCurve
	}
	return mechanismNull
}

// readGreeting reads the peer's greeting and returns its minor version. It fails
// on the first bytes of another protocol, without waiting for more.
func (h *handshake) readGreeting(in io.Reader) (minor int, err error) {
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
	if err := h.checkMechanism(string(bytes.TrimRight(g[12:asServer], "\x00"))); err != nil {
		return 0, err
	}
	if g[10] > 3 {
		return 1, nil // later versions fall back to ours
	}
	return int(g[11]), nil
}

// checkMechanism checks that both ends use the same mechanism. Which end is its server is
// not checked: libzmq does not say so in its greeting.
func (h *handshake) checkMechanism(theirs string) error {
	if ours := h.mechanism(); theirs != ours {
		return fault.New(fault.Upstream, "read greeting: the peer uses the security mechanism %.20q, this end %s", theirs, ours).
			WithHint("set the CURVE keys at both ends or at none")
	}
	return nil
}

// handshake is how one end introduces itself.
type handshake struct {
	kind    Kind
	curve   *Curve // nil: no security
	listens bool   // this end listens, and is the server of the mechanism
}

// do exchanges greetings, keys and READY with the peer. The caller limits its time
// with the connection's deadline. The cipher is nil without security.
func (h *handshake) do(conn net.Conn, in *bufio.Reader) (Peer, *cipher, error) {
	peer := Peer{Addr: conn.RemoteAddr().String()}
	if _, err := conn.Write(h.greeting()); err != nil {
		return peer, nil, err
	}
	minor, err := h.readGreeting(in)
	if err != nil {
		return peer, nil, err
	}
	peer.Minor = minor
	x := exchange{in, bufio.NewWriter(conn)}
	sealed, theirs, err := h.introduce(x)
	if err != nil {
		return peer, nil, err
	}
	if err := peer.read(theirs); err != nil {
		return peer, nil, err
	}
	if !h.kind.accepts(peer.Kind) {
		if sealed == nil {
			writeFrame(x.out, flagCommand, refusal("a "+h.kind.String()+" does not connect to this kind of socket"))
			_ = x.out.Flush() // the connection ends either way
		}
		return peer, nil, violation("read READY: a %s cannot connect to a %.20q", h.kind, peer.Kind)
	}
	return peer, sealed, nil
}

// introduce exchanges the metadata of both ends with the mechanism.
func (h *handshake) introduce(x exchange) (*cipher, []byte, error) {
	ours := metadata(h.kind)
	switch {
	case h.curve != nil && h.listens:
		return curveServer(x, h.curve, ours)
	case h.curve != nil:
		return curveClient(x, h.curve, ours)
	}
	if err := x.send(cmdReady, ours); err != nil {
		return nil, nil, err
	}
	theirs, err := x.receive(cmdReady, 0)
	return nil, theirs, err
}

// read reads the peer's metadata.
func (p *Peer) read(metadata []byte) error {
	found, err := properties(metadata)
	if err != nil {
		return err
	}
	p.Kind, p.Identity = found["socket-type"], found["identity"]
	if len(p.Identity) > 255 {
		return violation("read READY: an identity of %d bytes", len(p.Identity))
	}
	return nil
}

// refusedByPeer is the error for a peer that sent ERROR.
func refusedByPeer(data []byte) error {
	return fault.New(fault.Upstream, "the peer refused the connection: %q", reason(data)).
		WithHint("check that both ends are ZeroMQ sockets of compatible kinds and, with CURVE, that the peer allows this end's public key")
}
