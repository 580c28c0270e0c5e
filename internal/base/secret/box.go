package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Box encrypts what is kept. What it is about is authenticated with it, so that
// a row cannot be passed off as another upstream's or issuer's.
type Box struct {
	Key          func() (Text, error)
	RecoveryHint string // how to come by the contents again when the key is lost: "log in again with …"
}

// shortestKey is the least a key may have in bytes.
const shortestKey = 16

func (b Box) cipher() (cipher.AEAD, error) {
	given, err := b.Key()
	if err != nil {
		return nil, err
	}
	if len(given.Reveal()) < shortestKey {
		return nil, fault.New(fault.Config, "oauth.key is shorter than %d bytes", shortestKey).
			WithHint("make one with `openssl rand -hex 32`")
	}
	key, err := hkdf.Key(sha256.New, []byte(given.Reveal()), nil, "luanette oauth", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts v, bound to about: what kind of thing it is, and whose.
func (b Box) Seal(v any, about ...string) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	aead, err := b.cipher()
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, bound(about)), nil
}

// Open decrypts what Seal made, into v.
func (b Box) Open(sealed []byte, v any, about ...string) error {
	aead, err := b.cipher()
	if err != nil {
		return err
	}
	plain, err := aead.Open(nil, nil, sealed, bound(about))
	if err != nil {
		return fault.New(fault.Config, "credentials of %s cannot be decrypted: they were kept under another key", strings.Join(about[1:], " at ")).
			WithHint("bring back the key they were kept under, or %s", b.RecoveryHint)
	}
	return json.Unmarshal(plain, v)
}

// bound joins words so that no two lists of them are alike.
func bound(words []string) []byte {
	var out []byte
	for _, word := range words {
		out = binary.AppendUvarint(out, uint64(len(word)))
		out = append(out, word...)
	}
	return out
}
