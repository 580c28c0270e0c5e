// Package secret holds strings that must not be shown (keys, tokens, passwords),
// reads them from the environment, from files and from the operating system's keyring,
// and encrypts stored ones.
package secret

import (
	"fmt"
	"log/slog"
)

// Hidden is shown in place of a secret.
const Hidden = "[hidden]"

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
