package cas

import (
	"errors"
	"io"

	"lukechampine.com/blake3"
)

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
