// Package cas stores content under its own hash. A Ref is enough to verify the bytes it
// names, the same content is stored once, and stored content never changes.
package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
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

// SumOf returns the ref of all that r has.
func SumOf(r io.Reader) (Ref, error) {
	h := blake3.New(refSize, nil)
	_, err := io.Copy(h, r)
	return sumOf(h), err
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

// File is a content with its MIME type and the file that holds it.
type File struct {
	Hash Ref
	Size int64
	MIME string
	Path string // "" if the content is not in a file
}

// ErrRemoved means that a content was removed while it was stored again: storing it once
// more helps.
var ErrRemoved = errors.New("the same content was just removed")

// Store stores content. runSuite in the tests is its contract.
type Store interface {
	// Put stores all of r and returns its ref and size in bytes. When it returns
	// without error the content survives a crash; on an error, nothing is stored.
	// Content that exists already is not stored twice.
	Put(ctx context.Context, r io.Reader) (Ref, int64, error)
	// Open opens the content of ref, which the caller closes. The content is
	// verified as it is read: damage is reported as an error in place of io.EOF.
	Open(ctx context.Context, ref Ref) (io.ReadCloser, error)
	// Stat returns the size of ref's content in bytes.
	Stat(ctx context.Context, ref Ref) (int64, error)
	// Match returns up to limit stored refs that begin with prefix, in order of
	// their digits. The prefix is as ParsePrefix returns it; two digits suffice.
	Match(ctx context.Context, prefix string, limit int) ([]Ref, error)
	// Has reports whether ref's content is stored, to a transaction that is about to
	// refer to it.
	Has(ctx context.Context, tx *db.Tx, ref Ref) (bool, error)
	// Remove removes ref's content, if it is stored, at the latest when tx commits. A Put
	// of the same content does not wait for it. So tx first locks a row that says that
	// nothing refers to the content, and whoever refers to it after a Put changes the
	// same row, and then asks Has.
	Remove(ctx context.Context, tx *db.Tx, ref Ref) error
}

// Matcher is the part of a Store that Resolve needs.
type Matcher interface {
	Match(ctx context.Context, prefix string, limit int) ([]Ref, error)
}

// Resolve returns the one stored ref that s names: a whole hash or a unique prefix
// of one, with or without "cas:".
func Resolve(ctx context.Context, m Matcher, s string) (Ref, error) {
	const enough = 4 // to show, when s is ambiguous
	prefix, err := ParsePrefix(s)
	if err != nil {
		return Ref{}, err
	}
	refs, err := m.Match(ctx, prefix, enough)
	switch {
	case err != nil:
		return Ref{}, err
	case len(refs) == 0:
		return Ref{}, missing(prefix)
	case len(refs) > 1:
		return Ref{}, ambiguous(prefix, refs)
	}
	return refs[0], nil
}

// Read returns the whole verified content of ref. It is for content known to be
// small: more than limit bytes is an error.
func Read(ctx context.Context, s Store, ref Ref, limit int64) (_ []byte, err error) {
	r, err := s.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = tooBig(limit)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

func missing(digits string) error {
	return fault.New(fault.NotFound, "no content with hash %s", digits).
		WithHint("check the hash, or store the content again: the same content gets the same hash")
}

func ambiguous(prefix string, refs []Ref) error {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.String()
	}
	return fault.New(fault.InvalidParams, "hash %s is ambiguous", prefix).
		WithHint("give more digits; it could be %s", strings.Join(names, ", "))
}

func tooBig(limit int64) error {
	return fault.New(fault.Limit, "content is larger than %d bytes", limit).
		WithHint("store it in parts, or raise the size limit").
		WithDetails(map[string]int64{"limit_bytes": limit})
}

// Column is a column of a table that has hashes of contents. Each package with such a
// table lists its columns in a function Contents, so that no content is removed that is
// still needed.
type Column struct {
	Table, Name string
	// Where selects the rows that need their content: as long as they exist, it stays.
	// Rows of columns without it only name a content, which its owner may delete.
	Where string
	// Why says why rows only name their content, or some of them.
	Why string
}

// All is the Where of columns all of whose rows need their content.
const All = "1 = 1"

// Guard returns a reader of r that ends with the error of check, which gets the ref and size
// of everything that was read, or as soon as there is more than limit. A Store stores
// nothing of a reader that ends with an error.
func Guard(r io.Reader, limit int64, check func(ref Ref, size int64) error) io.Reader {
	return &guarded{from: r, limit: limit, check: check, hash: blake3.New(refSize, nil)}
}

type guarded struct {
	from  io.Reader
	limit int64
	check func(ref Ref, size int64) error
	hash  *blake3.Hasher
	size  int64
}

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	_, _ = g.hash.Write(p[:n]) // it never fails
	g.size += int64(n)
	switch {
	case g.size > g.limit:
		err = g.check(Ref{}, g.size)
	case errors.Is(err, io.EOF):
		if failed := g.check(sumOf(g.hash), g.size); failed != nil {
			err = failed
		}
	}
	return n, err
}

// verified wraps a reader of ref's content. At the end it returns an error in place of
// io.EOF if the content does not have ref's hash. Closing it closes the reader.
func verified(ctx context.Context, ref Ref, content io.ReadCloser) io.ReadCloser {
	return &verifier{ctxReader: ctxReader{ctx, content}, closer: content, ref: ref, hash: blake3.New(refSize, nil)}
}

type verifier struct {
	ctxReader
	closer io.Closer
	ref    Ref
	hash   *blake3.Hasher
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.ctxReader.Read(p)
	_, _ = v.hash.Write(p[:n]) // a hash never returns an error
	if errors.Is(err, io.EOF) && sumOf(v.hash) != v.ref {
		err = damaged(v.ref)
	}
	return n, err
}

func (v *verifier) Close() error { return v.closer.Close() }

// ctxReader is a reader that ends with its context. It holds ctx because it lives no
// longer than one call or one open content.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

func sumOf(h *blake3.Hasher) Ref {
	var r Ref
	h.Sum(r.sum[:0])
	return r
}

func damaged(ref Ref) error {
	return fault.New(fault.Internal, "stored content %s is damaged: its hash differs", ref).
		WithHint("check the disk, then store the content again: that repairs it")
}
