package zmtp

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"strings"

	"golang.org/x/crypto/curve25519"

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
