// Package cas stores content under its own hash. A Ref is enough to verify the bytes it
// names, the same content is stored once, and stored content never changes.
package cas

import (
	"encoding/hex"
	"strings"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
)

const (
	// Scheme is an optional prefix of a hash.
	Scheme = "cas:"
	// MinPrefix is the minimum number of hex digits that can abbreviate a hash.
	MinPrefix = 12

	refSize = 32
	refHex  = 2 * refSize
)

// Ref names content: its BLAKE3-256 hash, written as 64 lower-case hex digits.
// Refs are comparable; the zero Ref names nothing.
type Ref struct {
	sum [refSize]byte
}

// Sum returns the ref of content.
func Sum(content []byte) Ref {
	return Ref{sum: blake3.Sum256(content)}
}

// Parse parses a whole ref: 64 hex digits in either case, with or without "cas:"
// or "cas://".
func Parse(s string) (Ref, error) {
	digits := withoutScheme(s)
	var r Ref
	if len(digits) != refHex {
		return Ref{}, malformed(s, "a hash has %d hex digits, this has %d characters", refHex, len(digits))
	}
	if _, err := hex.Decode(r.sum[:], []byte(digits)); err != nil {
		return Ref{}, malformed(s, "a hash has only the digits 0-9 and a-f")
	}
	return r, nil
}

// String returns the 64 hex digits.
func (r Ref) String() string { return hex.EncodeToString(r.sum[:]) }

// URI returns the hash with its scheme: "cas:" and the 64 hex digits.
func (r Ref) URI() string { return Scheme + r.String() }

// Short returns the first digits, for display; they are accepted in place of the hash.
func (r Ref) Short() string { return r.String()[:MinPrefix] }

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// MarshalText returns the hex digits; nothing for the zero Ref.
func (r Ref) MarshalText() ([]byte, error) {
	if r.IsZero() {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText parses what Parse does, and empty text as the zero Ref.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*r = Ref{}
		return nil
	}
	*r, err = Parse(string(text))
	return err
}

// ParsePrefix parses the beginning of a ref, at least MinPrefix digits of it, and
// returns the digits in lower case without the scheme.
func ParsePrefix(s string) (string, error) {
	digits := strings.ToLower(withoutScheme(s))
	switch {
	case len(digits) < MinPrefix || len(digits) > refHex:
		return "", malformed(s, "a hash is given by %d to %d hex digits, this has %d characters",
			MinPrefix, refHex, len(digits))
	case strings.Trim(digits, "0123456789abcdef") != "":
		return "", malformed(s, "a hash has only the digits 0-9 and a-f")
	}
	return digits, nil
}

func withoutScheme(s string) string {
	digits, found := strings.CutPrefix(s, Scheme)
	if found {
		digits = strings.TrimPrefix(digits, "//")
	}
	return digits
}

func malformed(s, format string, args ...any) error {
	return fault.New(fault.InvalidParams, "read hash %q: "+format, append([]any{clip(s)}, args...)...).
		WithHint("give a hash of %d hex digits, or its first %d or more", refHex, MinPrefix)
}

// clip shortens a string for use in a message.
func clip(s string) string {
	if len(s) > refHex+len(Scheme) {
		return s[:refHex] + "…"
	}
	return s
}
