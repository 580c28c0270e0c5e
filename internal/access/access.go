// Package access knows who asks: a Principal travels in the context from the door
// on. It also knows the keys that open the HTTP doors: who holds each, and what it
// is for. Only hashes of keys are kept.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/fault"
)

// Scope is something a key opens.
type Scope string

// The scopes there are. Admin opens everything; Org opens what concerns one
// organisation, its conversations included.
const (
	Chat  Scope = "chat"
	Admin Scope = "admin"
	Org   Scope = "org"
)

// Scopes lists them all.
var Scopes = []Scope{Chat, Admin, Org}

// Key is a key as it is known to us: its hash and what it opens.
type Key struct {
	Name    string
	Hash    [sha256.Size]byte
	Scopes  []Scope
	Org     string    // of which it may be used; empty: any
	Expires time.Time // zero: never
}

// HashOf is the hash of a token.
func HashOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// ParseHash reads "sha256:" and 64 hexadecimal digits.
func ParseHash(text string) (hash [sha256.Size]byte, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(hash) {
		return hash, fault.New(fault.Config, "the hash of a key must be sha256: and 64 hexadecimal digits").
			WithHint("printf %%s KEY | sha256sum prints them")
	}
	return [sha256.Size]byte(raw), nil
}

// Principal is who asks with the key.
func (k Key) Principal() Principal {
	return Principal{ID: "key:" + k.Name, Name: k.Name, Org: k.Org, Scopes: k.Scopes, Expires: k.Expires}
}

// Keys are all there are.
type Keys struct {
	keys []Key
	now  func() time.Time
}

// New makes a set of keys. A nil now is the machine's clock.
func New(keys []Key, now func() time.Time) *Keys {
	if now == nil {
		now = time.Now
	}
	return &Keys{keys, now}
}

// Any tells whether there is a key at all. Without one everything is open, which
// is meant for a program that only its own machine can reach.
func (k *Keys) Any() bool { return len(k.keys) > 0 }

// Find returns the key that a token is. All are compared, each in the same time,
// so that how long it takes tells nothing.
func (k *Keys) Find(token string) (found Key, ok bool) {
	hash := HashOf(token)
	for _, key := range k.keys {
		if subtle.ConstantTimeCompare(hash[:], key.Hash[:]) == 1 && (key.Expires.IsZero() || k.now().Before(key.Expires)) {
			found, ok = key, true
		}
	}
	return found, ok
}

// Admit returns the key of a request that may do what needs a scope, for an
// organisation or, where that is empty, in general. Without a token the error is
// needs_auth; with a wrong one, or one for something else, it is permission_denied.
func (k *Keys) Admit(r *http.Request, scope Scope, org string) (Key, error) {
	if !k.Any() {
		return Key{Name: "anybody", Scopes: Scopes}, nil
	}
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") || strings.TrimSpace(token) == "" {
		return Key{}, fault.New(fault.NeedsAuth, "Authorization header with Bearer token required")
	}
	key, ok := k.Find(strings.TrimSpace(token))
	switch {
	case !ok:
		return Key{}, fault.New(fault.Denied, "Invalid API key")
	case !key.Principal().May(scope, org):
		return Key{}, fault.New(fault.Denied, "the key %s is not for this", key.Name).
			WithHint("it takes a key with the scope %s%s", scope, of(org))
	}
	return key, nil
}

func of(org string) string {
	if org == "" {
		return ""
	}
	return " of the organisation " + org
}
