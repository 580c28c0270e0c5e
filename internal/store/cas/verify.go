package cas

import (
	"context"
	"errors"
	"io"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
)

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
