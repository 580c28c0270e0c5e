package cas

import (
	"context"
	"errors"
	"io"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
)

// verified wraps content that should be ref's: at its end it gives an error in
// place of io.EOF unless it was. Closing it closes content.
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
	_, _ = v.hash.Write(p[:n]) // a hash takes everything
	if errors.Is(err, io.EOF) && sumOf(v.hash) != v.ref {
		err = damaged(v.ref)
	}
	return n, err
}

func (v *verifier) Close() error { return v.closer.Close() }

// ctxReader is a reader that ends with its context. It lives as long as one call
// or one open content, which is why it may hold ctx.
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
	return fault.New(fault.Internal, "stored content %s is damaged: it no longer has its hash", ref).
		WithHint("check the disk, then store the content again: that repairs it")
}
