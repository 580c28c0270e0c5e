// Package cas stores content under its own hash. Whoever has a Ref can tell
// whether bytes are the ones it names, the same content is kept once, and what
// is stored never changes.
package cas

import (
	"encoding/hex"
	"strings"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
)

const (
	// Scheme may stand before a hash wherever one is written; it is never needed.
	Scheme = "cas:"
	// MinPrefix is the fewest hex digits that can stand for a hash.
	MinPrefix = 12

	refSize = 32
	refHex  = 2 * refSize
)

// Ref names content: its BLAKE3-256 hash, written as 64 lower-case hex digits.
// Refs are comparable; the zero Ref names nothing.
type Ref struct {
	sum [refSize]byte
}

// Sum is the ref of content.
func Sum(content []byte) Ref {
	return Ref{sum: blake3.Sum256(content)}
}

// Parse reads a whole ref: 64 hex digits in either case, with or without "cas:"
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

// String is the 64 hex digits.
func (r Ref) String() string { return hex.EncodeToString(r.sum[:]) }

// URI is the hash with its scheme: "cas:" and the 64 hex digits.
func (r Ref) URI() string { return Scheme + r.String() }

// Short is the first digits, enough for people and accepted where a hash is.
func (r Ref) Short() string { return r.String()[:MinPrefix] }

// IsZero tells whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// MarshalText writes the hex digits; nothing for the zero Ref.
func (r Ref) MarshalText() ([]byte, error) {
	if r.IsZero() {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what Parse reads, and nothing as the zero Ref.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*r = Ref{}
		return nil
	}
	*r, err = Parse(string(text))
	return err
}

// ParsePrefix reads the beginning of a ref, at least MinPrefix digits of it, and
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

// clip keeps a stranger's string from filling the message.
func clip(s string) string {
	if len(s) > refHex+len(Scheme) {
		return s[:refHex] + "…"
	}
	return s
}
