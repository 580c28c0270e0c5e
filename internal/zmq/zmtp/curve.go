package zmtp

import (
	"encoding/binary"
	"slices"

	"golang.org/x/crypto/nacl/box"

	"github.com/luanette/luanette/internal/base/fault"
)

// Curve configures the CURVE mechanism, which authenticates both ends and encrypts
// everything between them; https://rfc.zeromq.org/spec/26. A listening socket is the
// server of the mechanism, a dialing one the client.
type Curve struct {
	// Secret is this end's long-term secret key. A dialing socket without one uses a
	// new one for each connection, which servers accept that know no clients.
	Secret Key
	// Server is the server's public key, for a dialing socket.
	Server Key
	// Clients are the public keys of the clients that a listening socket accepts. If it
	// is empty, every client is accepted that knows the server's public key.
	Clients []Key
}

// ServerCurve reads the keys of a listening socket. Without any it returns nil.
func ServerCurve(secret string, clients []string) (*Curve, error) {
	if secret == "" && len(clients) == 0 {
		return nil, nil
	}
	key, err := ParseKey(secret)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "secret key").WithHint("%s", fault.HintOf(err))
	}
	c := &Curve{Secret: key}
	for _, text := range clients {
		client, err := ParseKey(text)
		if err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "public key %q of a client", text).WithHint("%s", fault.HintOf(err))
		}
		c.Clients = append(c.Clients, client)
	}
	return c, nil
}

// ClientCurve reads the keys of a dialing socket: the server's public key and its own
// secret key, which may be empty. Without any it returns nil.
func ClientCurve(server, secret string) (*Curve, error) {
	if server == "" && secret == "" {
		return nil, nil
	}
	key, err := ParseKey(server)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "public key %q of the server", server).WithHint("%s", fault.HintOf(err))
	}
	c := &Curve{Server: key}
	if secret == "" {
		return c, nil
	}
	if c.Secret, err = ParseKey(secret); err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "secret key").WithHint("%s", fault.HintOf(err))
	}
	return c, nil
}

// accepts reports whether a server accepts a client's long-term key.
func (c *Curve) accepts(client Key) bool {
	return len(c.Clients) == 0 || slices.ContainsFunc(c.Clients, client.equal)
}

// check reports what is missing.
func (c *Curve) check(listens bool) error {
	switch {
	case c == nil:
		return nil
	case listens && c.Secret.isZero():
		return fault.New(fault.InvalidParams, "open socket: CURVE without a secret key").
			WithHint("`luanette backend keygen` makes a pair of keys")
	case !listens && c.Server.isZero():
		return fault.New(fault.InvalidParams, "open socket: CURVE without the server's public key").
			WithHint("the owner of the backend knows it; `luanette backend keygen` prints it beside the secret key")
	}
	return nil
}

// cipher encrypts the frames of one connection after the handshake. The reader uses
// open and the writer seal.
type cipher struct {
	shared         *[32]byte
	sealed, opened string // prefixes of the nonces
	sent, received uint64 // the last nonce in either direction
}

// The nonces of messages begin with the direction.
const (
	fromClient = "CurveZMQMESSAGEC"
	fromServer = "CurveZMQMESSAGES"
)

// messagePrefix begins every encrypted frame.
const messagePrefix = "\x07MESSAGE"

// sealOverhead is how much longer a frame is when it is encrypted: prefix, nonce, flags
// and authenticator.
const sealOverhead = len(messagePrefix) + 8 + 1 + box.Overhead

// The flags in an encrypted frame, which replace those of the frame around it.
const (
	innerMore = 1 << iota
	innerCommand
)

// seal encrypts a frame.
func (c *cipher) seal(flags byte, body []byte) []byte {
	plain := make([]byte, 1, 1+len(body))
	if flags&flagMore != 0 {
		plain[0] |= innerMore
	}
	if flags&flagCommand != 0 {
		plain[0] |= innerCommand
	}
	plain = append(plain, body...)
	c.sent++
	out := make([]byte, 0, len(body)+sealOverhead)
	out = append(out, messagePrefix...)
	out = binary.BigEndian.AppendUint64(out, c.sent)
	return box.SealAfterPrecomputation(out, plain, shortNonce(c.sealed, c.sent), c.shared)
}

// open decrypts a frame. A nonce that does not increase is a replay.
func (c *cipher) open(frame []byte) (flags byte, body []byte, err error) {
	if len(frame) < sealOverhead || string(frame[:len(messagePrefix)]) != messagePrefix {
		return 0, nil, violation("read frame: the peer sent something that is not encrypted")
	}
	nonce := binary.BigEndian.Uint64(frame[len(messagePrefix):])
	if nonce <= c.received {
		return 0, nil, violation("read frame: the peer repeated a nonce")
	}
	c.received = nonce
	plain, ok := box.OpenAfterPrecomputation(nil, frame[len(messagePrefix)+8:], shortNonce(c.opened, nonce), c.shared)
	if !ok {
		return 0, nil, violation("read frame: it cannot be decrypted")
	}
	if plain[0]&innerMore != 0 {
		flags |= flagMore
	}
	if plain[0]&innerCommand != 0 {
		flags |= flagCommand
	}
	if flags == flagMore|flagCommand {
		return 0, nil, violation("read frame: invalid flags %#02x", plain[0])
	}
	return flags, plain[1:], nil
}

// shortNonce is a nonce of a prefix of 16 bytes and a counter.
func shortNonce(prefix string, counter uint64) *[24]byte {
	var nonce [24]byte
	copy(nonce[:], prefix)
	binary.BigEndian.PutUint64(nonce[16:], counter)
	return &nonce
}

// longNonce is a nonce of a prefix of 8 bytes and 16 random ones.
func longNonce(prefix string, random []byte) *[24]byte {
	var nonce [24]byte
	copy(nonce[:], prefix)
	copy(nonce[8:], random)
	return &nonce
}
