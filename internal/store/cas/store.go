package cas

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// ErrRemoved means that a content was removed while it was stored again: storing it once
// more helps.
var ErrRemoved = errors.New("the same content was just removed")

// Store stores content. castest.Run tests its contract.
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
