package hub

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// pendingCalls are the requests of the modern era that wait for input of their client.
// The client gets an encrypted ticket for each, as requestState. A ticket is valid once,
// until a deadline, for the same request of the same principal, and as long as the
// process runs.
type pendingCalls struct {
	seal cipher.AEAD
	max  int

	mu      sync.Mutex
	waiting map[ticket]*pendingCall
}

// ticket is the secret that identifies a pending call.
type ticket [16]byte

// pendingCall is one request that waits. The goroutine that claims it sends on back.
type pendingCall struct {
	task   *request
	ticket ticket
	back   chan json.RawMessage // the client's input; buffered for one
}

func newPendingCalls(key []byte, max int) *pendingCalls {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key is 32 bytes
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return &pendingCalls{seal: seal, max: max, waiting: map[ticket]*pendingCall{}}
}

// add registers a request and returns its ticket, encrypted and bound to the request.
func (l *pendingCalls) add(req *request, bound []byte, deadline time.Time) (*pendingCall, string, error) {
	p := &pendingCall{task: req, back: make(chan json.RawMessage, 1)}
	rand.Read(p.ticket[:]) // never fails
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.max {
		return nil, "", fault.New(fault.Limit, "%d calls wait for their clients' input already", l.max).WithHint("try again later")
	}
	l.waiting[p.ticket] = p
	plain := binary.BigEndian.AppendUint64(p.ticket[:], uint64(deadline.UnixMilli()))
	return p, base64.RawURLEncoding.EncodeToString(l.seal.Seal(nil, nil, plain, bound)), nil
}

var errBadState = wire.Errorf(wire.CodeInvalidParams, "requestState is not valid for this request")

var errExpiredState = wire.Errorf(wire.CodeInvalidParams,
	"the call this requestState belongs to no longer waits: make the request again without it")

// claim removes and returns the call that a ticket identifies.
func (l *pendingCalls) claim(state string, bound []byte, now time.Time) (*pendingCall, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return nil, errBadState
	}
	plain, err := l.seal.Open(nil, nil, sealed, bound)
	if err != nil || len(plain) != len(ticket{})+8 {
		return nil, errBadState
	}
	if now.UnixMilli() > int64(binary.BigEndian.Uint64(plain[len(ticket{}):])) {
		return nil, errExpiredState
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.waiting[ticket(plain[:len(ticket{})])]
	if !ok {
		return nil, errExpiredState
	}
	delete(l.waiting, p.ticket)
	return p, nil
}

// remove removes p. It returns false if p was claimed, so that input is on its way.
func (l *pendingCalls) remove(p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.waiting[p.ticket]
	delete(l.waiting, p.ticket)
	return ok
}

// binding is what a ticket is valid for: this principal making this request at this
// endpoint. The order of keys and the spacing of the arguments do not matter.
func (e *endpoint) binding(who, method string, params json.RawMessage) []byte {
	sum := sha256.New()
	for _, part := range []string{e.name, who, method} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	for _, key := range []string{"name", "uri", "arguments"} {
		value, _ := rawjson.Get(params, key)
		sum.Write(canonical(value))
		sum.Write([]byte{0})
	}
	return sum.Sum(nil)
}

// canonical writes JSON with sorted keys and no space, numbers as they were
// written, so that equal values have equal bytes. What is no JSON stays as it is.
func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}
