package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Reader reads a backup.
type Reader struct {
	Header Header

	tar      *tar.Reader
	all      io.Reader
	found    map[string]entry
	listed   bool // the list was read, and all entries match it
	done     int64
	progress Progress
}

// NewReader reads the header.
func NewReader(r io.Reader, progress Progress) (*Reader, error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, notABackup(err)
	}
	b := &Reader{tar: tar.NewReader(unpacked), all: unpacked, found: map[string]entry{}, progress: progress}
	head, err := b.tar.Next()
	if err != nil || head.Name != headerName || head.Size > maxHeader {
		return nil, notABackup(err)
	}
	if err := json.NewDecoder(b.tar).Decode(&b.Header); err != nil {
		return nil, damaged("its header cannot be read: %v", err)
	}
	if b.Header.Format != Format {
		return nil, fault.New(fault.Conflict, "the backup was made by luanette %s, in a format this program does not know", b.Header.Program).
			WithHint("restore it with luanette %s", b.Header.Program)
	}
	return b, nil
}

// Taker receives the entries of a backup, in their order. Bytes that it does not read
// are skipped. The caller must undo everything if Read returns an error, since the sums
// are compared at the end.
type Taker struct {
	File func(name string, size int64, from io.Reader) error
	// Rows is called several times for a large table; next returns nil after the last
	// row.
	Rows func(t Table, next func() ([]any, error)) error
}

// Read passes all entries of the backup to a Taker. It returns nil if the backup is
// complete and undamaged.
func (b *Reader) Read(ctx context.Context, to Taker) error {
	for !b.listed {
		if err := b.next(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// next reads the next file or portion of rows, or the list at the end.
func (b *Reader) next(ctx context.Context, to Taker) error {
	head, err := b.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return damaged("its end is missing")
	case err != nil:
		return damaged("an entry cannot be read: %v", err)
	case head.Name == listName:
		return b.compare(head.Size)
	}
	if _, twice := b.found[head.Name]; twice || head.Typeflag != tar.TypeReg || path.Clean(head.Name) != head.Name {
		return damaged("it contains the unknown entry %q", head.Name)
	}
	from := &watched{ctx: ctx, from: b.tar, sum: sha256.New(), moved: b.moved}
	err = b.hand(head, from, to)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // the sum includes what was not read
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case from.failed != nil:
		return damaged("%s cannot be read: %v", head.Name, from.failed)
	case err != nil && fault.HintOf(err) == "":
		return fault.Wrap(fault.Internal, err, "restore %s", head.Name)
	case err != nil:
		return err
	}
	b.found[head.Name] = entry{head.Name, from.size, hex.EncodeToString(from.sum.Sum(nil))}
	return nil
}

func (b *Reader) hand(head *tar.Header, from io.Reader, to Taker) error {
	if name, ok := strings.CutPrefix(head.Name, filesName); ok && filepath.IsLocal(filepath.FromSlash(name)) {
		return to.File(name, head.Size, from)
	}
	if name, ok := strings.CutPrefix(head.Name, tablesName); ok {
		at := slices.IndexFunc(b.Header.Tables, func(t Table) bool { return t.Name == path.Dir(name) })
		if at >= 0 {
			r := &rows{from: bufio.NewReaderSize(from, 1<<16), columns: len(b.Header.Tables[at].Columns), size: head.Size}
			return to.Rows(b.Header.Tables[at], r.next)
		}
	}
	return damaged("it contains the unknown entry %q", head.Name)
}

// watched computes the sum of what is read. It distinguishes errors of the backup from
// those of the Taker.
type watched struct {
	ctx    context.Context //nolint:containedctx // for a single file
	from   io.Reader
	sum    hash.Hash
	size   int64
	failed error
	moved  func(int64)
}

func (w *watched) Read(into []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	n, err := w.from.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = err
	}
	w.sum.Write(into[:n])
	w.size += int64(n)
	w.moved(int64(n))
	return n, err
}

func (b *Reader) moved(n int64) {
	if b.done += n; b.progress != nil {
		b.progress(b.done, 0)
	}
}

// compare compares what was read with the list.
func (b *Reader) compare(size int64) error {
	var list []entry
	if err := json.NewDecoder(io.LimitReader(b.tar, min(size, maxList))).Decode(&list); err != nil {
		return damaged("its list of files cannot be read")
	}
	for _, want := range list {
		got, there := b.found[want.Name]
		if !there || got != want {
			return damaged("%s differs from what was backed up", want.Name)
		}
		delete(b.found, want.Name)
	}
	for name := range b.found {
		return damaged("%s is not in its list", name)
	}
	if _, err := io.Copy(io.Discard, b.all); err != nil { // gzip ends with a checksum
		return damaged("its end cannot be read: %v", err)
	}
	b.listed = true
	return nil
}
