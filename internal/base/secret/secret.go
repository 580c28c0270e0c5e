// Package secret holds strings that must not be shown (keys, tokens, passwords),
// reads them from the environment, from files and from the operating system's keyring,
// and encrypts stored ones.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Hidden is shown in place of a secret.
const Hidden = "[hidden]"

// Prefix begins the value of a variable that refers to a secret of the configuration by its name.
const Prefix = "secret:"

// Text is a secret string. The zero value is no secret. It is read from configuration
// like a string, and never written.
type Text struct {
	// A pointer, because fmt prints unexported fields of a struct without calling
	// their methods: it prints an address.
	value *string
}

// New returns s as a secret.
func New(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{value: &s}
}

// Reveal returns the secret.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return *t.value
}

// IsZero reports whether there is no secret.
func (t Text) IsZero() bool { return t.value == nil }

// String returns Hidden, or "" if there is no secret.
func (t Text) String() string {
	if t.IsZero() {
		return ""
	}
	return Hidden
}

// Format hides the secret from every verb, %x and %#v included.
func (t Text) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue hides the secret from slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the secret from encoders.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a secret.
func (t *Text) UnmarshalText(raw []byte) error {
	*t = New(string(raw))
	return nil
}

// Box encrypts stored values with AES-GCM. Each value is bound to its subject, so that
// one row of a table cannot be used as another.
type Box struct {
	// Key has a key on each line: the first encrypts, the others open what was encrypted before
	// the key was changed.
	Key          func() (Text, error)
	RecoveryHint string // what to do when the key is lost: "log in again with …"
}

// minKey is the shortest key, in bytes.
const minKey = 16

// ciphers are those of the keys.
func (b Box) ciphers() (list []cipher.AEAD, err error) {
	given, err := b.Key()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(given.Reveal()) {
		aead, err := cipherOf(strings.TrimRight(line, "\r\n"))
		if err != nil {
			return nil, err
		}
		list = append(list, aead)
	}
	if list == nil {
		_, err = cipherOf("")
	}
	return list, err
}

func cipherOf(key string) (cipher.AEAD, error) {
	if len(key) < minKey {
		return nil, fault.New(fault.Config, "oauth.key is shorter than %d bytes", minKey).
			WithHint("make one with `openssl rand -hex 32`")
	}
	derived, err := hkdf.Key(sha256.New, []byte(key), nil, "luanette oauth", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
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
	keys, err := b.ciphers()
	if err != nil {
		return nil, err
	}
	return keys[0].Seal(nil, nil, plain, bound(about)), nil
}

// Open decrypts what Seal returned into v. about must be the same.
func (b Box) Open(sealed []byte, v any, about ...string) error {
	plain, _, err := b.open(sealed, about)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

// open decrypts what Seal returned, and tells with which of the keys.
func (b Box) open(sealed []byte, about []string) (plain []byte, key int, err error) {
	keys, err := b.ciphers()
	if err != nil {
		return nil, 0, err
	}
	for i, aead := range keys {
		if plain, err = aead.Open(nil, nil, sealed, bound(about)); err == nil {
			return plain, i, nil
		}
	}
	return nil, 0, fault.New(fault.Config, "cannot decrypt the credentials of %s: they were encrypted with another key", strings.Join(about[1:], " at ")).
		WithHint("restore the key they were encrypted with, or %s", b.RecoveryHint)
}

// Replaces reports whether there are keys that only open what was encrypted before.
func (b Box) Replaces() bool {
	keys, err := b.ciphers()
	return err == nil && len(keys) > 1
}

// Reseal encrypts a value with the first key. It returns nil if it is encrypted with that already.
func (b Box) Reseal(sealed []byte, about ...string) ([]byte, error) {
	plain, key, err := b.open(sealed, about)
	if err != nil || key == 0 {
		return nil, err
	}
	return b.Seal(json.RawMessage(plain), about...)
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

// keyringTimeout leaves time to unlock the keyring in a dialog.
const keyringTimeout = 30 * time.Second

// FromKeyring reads a secret from the operating system's keyring.
func FromKeyring(service, name string) (Text, error) {
	type answer struct {
		value string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := keyring.Get(service, name)
		done <- answer{value, err}
	}()
	timer := time.NewTimer(keyringTimeout)
	defer timer.Stop()
	select {
	case a := <-done:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return Text{}, fault.New(fault.Config, "the keyring has no %s/%s", service, name).
				WithHint("store it; on Linux: secret-tool store --label=luanette service %s username %s", service, name)
		case a.err != nil:
			return Text{}, fault.Wrap(fault.Config, a.err, "read the keyring").
				WithHint("a server without a desktop has none: use ${env:NAME} or ${file:PATH}")
		}
		return New(a.value), nil
	case <-timer.C:
		return Text{}, fault.New(fault.Timeout, "the keyring did not answer within %v", keyringTimeout).
			WithHint("it may be waiting to be unlocked")
	}
}

// Finder resolves references to secrets in configuration: ${env:NAME},
// ${file:PATH} and ${keyring:SERVICE/NAME}. Its errors name the reference, never
// the secret.
type Finder struct {
	Getenv  func(name string) (string, bool)          // nil: no variable is set
	Folder  string                                    // base of relative paths
	Keyring func(service, name string) (Text, error)  // nil: there is no keyring
	Problem func(reference string, cause error) error // makes the error of a reference; may be nil
}

var reference = lazyregexp.New(`\$\{(env|file|keyring):([^}]*)\}`)

// maxFile is the largest file of a secret, in bytes.
const maxFile = 64 << 10

// Find replaces the references in text by their secrets. Text without references is
// the secret itself.
func (f Finder) Find(text string) (Text, error) {
	var failed error
	found := reference().ReplaceAllStringFunc(text, func(form string) string {
		parts := reference().FindStringSubmatch(form)
		value, err := f.lookup(parts[1], parts[2])
		if err != nil && failed == nil {
			failed = f.problem(form, err)
		}
		return value
	})
	if failed != nil {
		return Text{}, failed
	}
	return New(found), nil
}

func (f Finder) problem(form string, cause error) error {
	if f.Problem != nil {
		return f.Problem(form, cause)
	}
	return fmt.Errorf("find %s: %w", form, cause)
}

func (f Finder) lookup(kind, name string) (string, error) {
	switch kind {
	case "env":
		if f.Getenv != nil {
			if value, ok := f.Getenv(name); ok && value != "" {
				return value, nil
			}
		}
		return "", errors.New("the variable is not set")
	case "file":
		return f.file(name)
	default:
		service, user, ok := strings.Cut(name, "/")
		if !ok || service == "" || user == "" {
			return "", errors.New("it must be ${keyring:SERVICE/NAME}")
		}
		if f.Keyring == nil {
			return "", errors.New("there is no keyring here")
		}
		value, err := f.Keyring(service, user)
		return value.Reveal(), err
	}
}

// file reads a file, without the newline at its end.
func (f Finder) file(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Folder, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return "", fmt.Errorf("it is not a file of at most %d bytes", maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", errors.New("the file is empty")
	}
	return value, nil
}

// IsReference reports whether text is a reference to a secret.
func IsReference(text string) bool { return reference().MatchString(text) }

var onlyReferences = lazyregexp.New(`^(?:Bearer |Basic |Token )?(?:\$\{(?:env|file|keyring):[^}]*\})+$`)

// Shown returns a configured secret for display: references unchanged, anything else
// hidden.
func Shown(text string) string {
	if text == "" || onlyReferences().MatchString(text) {
		return text
	}
	return Hidden
}
