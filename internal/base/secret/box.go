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

// Box encrypts stored values with AES-GCM. Each value is bound to its subject, so that
// one row of a table cannot be used as another.
type Box struct {
	Key          func() (Text, error)
	RecoveryHint string // what to do when the key is lost: "log in again with …"
}

// minKey is the shortest key, in bytes.
const minKey = 16

func (b Box) cipher() (cipher.AEAD, error) {
	given, err := b.Key()
	if err != nil {
		return nil, err
	}
	if len(given.Reveal()) < minKey {
		return nil, fault.New(fault.Config, "oauth.key is shorter than %d bytes", minKey).
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

// Seal encrypts v as JSON. about is the kind of value, followed by its owner.
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

// Open decrypts what Seal returned into v. about must be the same.
func (b Box) Open(sealed []byte, v any, about ...string) error {
	aead, err := b.cipher()
	if err != nil {
		return err
	}
	plain, err := aead.Open(nil, nil, sealed, bound(about))
	if err != nil {
		return fault.New(fault.Config, "cannot decrypt the credentials of %s: they were encrypted with another key", strings.Join(about[1:], " at ")).
			WithHint("restore the key they were encrypted with, or %s", b.RecoveryHint)
	}
	return json.Unmarshal(plain, v)
}

// bound joins strings with their lengths, so that different lists never give the same
// bytes.
func bound(words []string) []byte {
	var out []byte
	for _, word := range words {
		out = binary.AppendUvarint(out, uint64(len(word)))
		out = append(out, word...)
	}
	return out
}
