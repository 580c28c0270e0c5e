package zmtp

import (
	"bufio"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/nacl/box"

	"github.com/luanette/luanette/internal/base/fault"
)

// Key is a key of the CURVE mechanism, public or secret. Its text form is Z85, as
// with libzmq: 40 characters.
type Key [32]byte

// z85 is the alphabet of the text form; https://rfc.zeromq.org/spec/32.
const z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// NewSecretKey returns a random secret key.
func NewSecretKey() (k Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// ParseKey reads the text form of a key. The error does not contain the text, which may
// be secret.
func ParseKey(text string) (k Key, err error) {
	text = strings.TrimSpace(text)
	bad := fault.New(fault.InvalidParams, "read CURVE key of %d characters", len(text)).
		WithHint("a key has 40 characters in Z85; `luanette backend keygen` makes a pair")
	if len(text) != 40 {
		return k, bad
	}
	for i := 0; i < len(text); i += 5 {
		var value uint64
		for _, c := range []byte(text[i : i+5]) {
			digit := strings.IndexByte(z85, c)
			if digit < 0 {
				return Key{}, bad
			}
			value = value*85 + uint64(digit)
		}
		if value > 1<<32-1 {
			return Key{}, bad
		}
		binary.BigEndian.PutUint32(k[i/5*4:], uint32(value))
	}
	return k, nil
}

// Text is the text form. There is no String method, so that secret keys are not printed
// by accident.
func (k Key) Text() string {
	var text [40]byte
	for i := 0; i < len(k); i += 4 {
		value := binary.BigEndian.Uint32(k[i:])
		for j := 4; j >= 0; j-- {
			text[i/4*5+j] = z85[value%85]
			value /= 85
		}
	}
	return string(text[:])
}

// Public returns the public key of a secret key.
func (k Key) Public() (public Key) {
	raw, err := curve25519.X25519(k[:], curve25519.Basepoint)
	if err == nil { // always: the base point is valid
		copy(public[:], raw)
	}
	return public
}

// equal compares in constant time.
func (k Key) equal(other Key) bool { return subtle.ConstantTimeCompare(k[:], other[:]) == 1 }

func (k Key) isZero() bool { return k == Key{} }

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

// The commands of the CURVE handshake: the client says HELLO and INITIATE, the server
// WELCOME and READY.
const (
	cmdHello    = "HELLO"
	cmdWelcome  = "WELCOME"
	cmdInitiate = "INITIATE"
)

// Sizes in the handshake.
const (
	keySize     = 32
	cookieSize  = 16 + 2*keySize + box.Overhead // random nonce and the boxed keys
	helloZeros  = 72                            // makes HELLO longer than its answer
	helloSize   = 2 + helloZeros + keySize + 8 + 64 + box.Overhead
	welcomeSize = 16 + keySize + cookieSize + box.Overhead
	vouchSize   = 16 + 2*keySize + box.Overhead
)

// exchange reads and writes the commands of a handshake.
type exchange struct {
	in  *bufio.Reader
	out *bufio.Writer
}

// send sends a command.
func (x exchange) send(name string, data []byte) error {
	writeFrame(x.out, flagCommand, command(name, data...))
	return x.out.Flush()
}

// receive reads a command, which must have that name and at least size bytes of data.
func (x exchange) receive(want string, size int) ([]byte, error) {
	flags, body, err := readFrame(x.in, maxCommand)
	if err != nil {
		return nil, midFrame(err)
	}
	if flags&flagCommand == 0 {
		return nil, violation("read %s: the peer sent a message instead", want)
	}
	name, data, err := splitCommand(body)
	switch {
	case err != nil:
		return nil, err
	case name == cmdError:
		return nil, refusedByPeer(data)
	case name != want:
		return nil, violation("read %s: the peer sent %.20q instead", want, name)
	case len(data) < size:
		return nil, violation("read %s: %d bytes", want, len(data))
	}
	return data, nil
}

// curveClient does the handshake of a dialing socket. It returns the server's metadata.
func curveClient(x exchange, conf *Curve, metadata []byte) (*cipher, []byte, error) {
	secret := conf.Secret
	if secret.isZero() {
		secret = NewSecretKey()
	}
	transient := NewSecretKey()
	transientPublic := transient.Public()
	hello := make([]byte, 2+helloZeros, helloSize)
	hello[0] = 1 // version 1.0
	hello = append(hello, transientPublic[:]...)
	hello = binary.BigEndian.AppendUint64(hello, 1)
	hello = seal(hello, make([]byte, 64), shortNonce("CurveZMQHELLO---", 1), conf.Server, transient)
	if err := x.send(cmdHello, hello); err != nil {
		return nil, nil, err
	}
	welcome, err := x.receive(cmdWelcome, welcomeSize)
	if err != nil {
		return nil, nil, err
	}
	opened, ok := unseal(welcome[16:], longNonce("WELCOME-", welcome[:16]), conf.Server, transient)
	if !ok || len(opened) != keySize+cookieSize {
		return nil, nil, wrongKey("read WELCOME: the server's public key is not the one that was configured")
	}
	server, cookie := Key(opened[:keySize]), opened[keySize:]
	shared := precompute(server, transient)
	initiate := append([]byte(nil), cookie...)
	initiate = binary.BigEndian.AppendUint64(initiate, 2)
	public := secret.Public()
	plain := append(public[:], vouch(transientPublic, conf.Server, server, secret)...)
	initiate = box.SealAfterPrecomputation(initiate, append(plain, metadata...), shortNonce("CurveZMQINITIATE", 2), shared)
	if err := x.send(cmdInitiate, initiate); err != nil {
		return nil, nil, err
	}
	ready, err := x.receive(cmdReady, 8+box.Overhead)
	if err != nil {
		return nil, nil, err
	}
	counter := binary.BigEndian.Uint64(ready)
	theirs, ok := box.OpenAfterPrecomputation(nil, ready[8:], shortNonce("CurveZMQREADY---", counter), shared)
	if !ok {
		return nil, nil, wrongKey("read READY: it cannot be decrypted")
	}
	return &cipher{shared: shared, sealed: fromClient, opened: fromServer, sent: 2, received: counter}, theirs, nil
}

// vouch proves to the server that the owner of the long-term key uses the transient one.
func vouch(transient, server, serverTransient, secret Key) []byte {
	nonce := random16()
	return seal(nonce, append(transient[:], server[:]...), longNonce("VOUCH---", nonce), serverTransient, secret)
}

// curveServer does the handshake of a listening socket. It returns the client's
// metadata.
func curveServer(x exchange, conf *Curve, metadata []byte) (*cipher, []byte, error) {
	hello, err := x.receive(cmdHello, helloSize)
	if err != nil {
		return nil, nil, err
	}
	at := 2 + helloZeros
	client, counter := Key(hello[at:at+keySize]), binary.BigEndian.Uint64(hello[at+keySize:])
	if _, ok := unseal(hello[at+keySize+8:helloSize], shortNonce("CurveZMQHELLO---", counter), client, conf.Secret); !ok {
		return nil, nil, wrongKey("read HELLO: the client has another public key of this server")
	}
	transient := NewSecretKey()
	transientPublic := transient.Public()
	// The connection keeps its state, so the cookie only has to be unique and to return.
	cookie := make([]byte, cookieSize)
	_, _ = rand.Read(cookie) // never fails
	nonce := random16()
	welcome := seal(nonce, append(transientPublic[:], cookie...), longNonce("WELCOME-", nonce), client, conf.Secret)
	if err := x.send(cmdWelcome, welcome); err != nil {
		return nil, nil, err
	}
	initiate, err := x.receive(cmdInitiate, cookieSize+8+keySize+vouchSize+box.Overhead)
	if err != nil {
		return nil, nil, err
	}
	shared := precompute(client, transient)
	counter = binary.BigEndian.Uint64(initiate[cookieSize:])
	plain, ok := box.OpenAfterPrecomputation(nil, initiate[cookieSize+8:], shortNonce("CurveZMQINITIATE", counter), shared)
	if !ok || string(initiate[:cookieSize]) != string(cookie) {
		return nil, nil, wrongKey("read INITIATE: it cannot be decrypted")
	}
	if err := conf.checkClient(plain, client, transient); err != nil {
		_ = x.send(cmdError, refusalText("400")) // the connection ends either way
		return nil, nil, err
	}
	ready := binary.BigEndian.AppendUint64(nil, 1)
	ready = box.SealAfterPrecomputation(ready, metadata, shortNonce("CurveZMQREADY---", 1), shared)
	if err := x.send(cmdReady, ready); err != nil {
		return nil, nil, err
	}
	return &cipher{shared: shared, sealed: fromServer, opened: fromClient, sent: 1, received: counter}, plain[keySize+vouchSize:], nil
}

// checkClient checks the long-term key in an INITIATE and that its owner vouches for
// the transient key.
func (c *Curve) checkClient(plain []byte, transient, ours Key) error {
	client, vouched := Key(plain[:keySize]), plain[keySize:keySize+vouchSize]
	opened, ok := unseal(vouched[16:], longNonce("VOUCH---", vouched[:16]), client, ours)
	public := c.Secret.Public()
	if !ok || string(opened) != string(transient[:])+string(public[:]) {
		return wrongKey("read INITIATE: the client does not own the key that it presents")
	}
	if !c.accepts(client) {
		return fault.New(fault.Denied, "the client with the key %s is not allowed", client.Text()).
			WithHint("add its public key to the allowed clients")
	}
	return nil
}

// wrongKey is the error for a peer with another key.
func wrongKey(text string) error {
	return fault.New(fault.Denied, "%s", text).
		WithHint("compare the keys at both ends; the client needs the server's public key, the server the client's")
}

func random16() []byte {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	return nonce
}

func seal(out, plain []byte, nonce *[24]byte, to, from Key) []byte {
	return box.Seal(out, plain, nonce, (*[32]byte)(&to), (*[32]byte)(&from))
}

func unseal(boxed []byte, nonce *[24]byte, from, to Key) ([]byte, bool) {
	return box.Open(nil, boxed, nonce, (*[32]byte)(&from), (*[32]byte)(&to))
}

func precompute(theirs, ours Key) *[32]byte {
	var shared [32]byte
	box.Precompute(&shared, (*[32]byte)(&theirs), (*[32]byte)(&ours))
	return &shared
}
