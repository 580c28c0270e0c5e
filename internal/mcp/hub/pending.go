package hub

import (
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

// pendingCalls holds the calls of the modern era that wait for their client to come back.
// A client gets a ticket for each: sealed, good once, until a time, for the same
// request of the same principal. Tickets do not outlive the process, no more
// than the calls do.
type pendingCalls struct {
	seal cipher.AEAD
	max  int

	mu      sync.Mutex
	waiting map[ticket]*pendingCall
}

// ticket is the secret that finds a parked call.
type ticket [16]byte

// pendingCall is one call's place. Whoever takes it out of the lot sends on back.
type pendingCall struct {
	task   *request
	ticket ticket
	back   chan json.RawMessage // the client's answers; holds one
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

// add makes room for a call and seals its ticket for whoever makes the same
// request again before the deadline.
func (l *pendingCalls) add(t *request, bound []byte, deadline time.Time) (*pendingCall, string, error) {
	p := &pendingCall{task: t, back: make(chan json.RawMessage, 1)}
	rand.Read(p.ticket[:]) // never fails
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.max {
		return nil, "", fault.New(fault.Limit, "%d calls wait for answers already", l.max).WithHint("try again later")
	}
	l.waiting[p.ticket] = p
	plain := binary.BigEndian.AppendUint64(p.ticket[:], uint64(deadline.UnixMilli()))
	return p, base64.RawURLEncoding.EncodeToString(l.seal.Seal(nil, nil, plain, bound)), nil
}

var errBadState = wire.Errorf(wire.CodeInvalidParams, "requestState is not valid for this request")

var errExpiredState = wire.Errorf(wire.CodeInvalidParams,
	"the call this requestState belongs to no longer waits: make the request again without it")

// claim takes the call a ticket stands for out of the lot.
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

// remove takes p out unless somebody claimed it: then answers are on their way.
func (l *pendingCalls) remove(p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.waiting[p.ticket]
	delete(l.waiting, p.ticket)
	return ok
}

// binding is what a ticket is good for: this principal making this request at
// this address. The order of keys and the spacing of the arguments do not matter.
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
