package zmtp

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"

	"golang.org/x/crypto/nacl/box"

	"github.com/luanette/luanette/internal/base/fault"
)

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
