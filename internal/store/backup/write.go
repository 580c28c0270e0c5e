package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Writer writes a backup. The backup is complete after Close.
type Writer struct {
	ctx         context.Context //nolint:containedctx // for a single backup
	zip         *gzip.Writer
	tar         *tar.Writer
	at          time.Time
	list        []entry
	done, total int64
	progress    Progress
}

// NewWriter starts a backup of about total bytes. The backup fails when ctx ends.
func NewWriter(ctx context.Context, w io.Writer, h Header, total int64, progress Progress) (*Writer, error) {
	h.Format = Format
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	b := &Writer{ctx: ctx, zip: zip, tar: tar.NewWriter(zip), at: h.Created, total: total, progress: progress}
	return b, b.meta(headerName, h)
}

func (b *Writer) meta(name string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = b.begin(name, int64(len(text)))
	}
	if err == nil {
		_, err = b.tar.Write(text)
	}
	return err
}

func (b *Writer) begin(name string, size int64) error {
	return b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: b.at, Format: tar.FormatPAX})
}

// File adds a file, with the size it has when it is opened. A file that was removed
// since it was listed is not part of the backup.
func (b *Writer) File(f Source) error {
	in, err := os.Open(f.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = b.open(in, f.Name)
		_ = in.Close() // it was only read
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "back up %s", f.From)
	}
	return nil
}

func (b *Writer) open(in *os.File, name string) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return b.add(filesName+name, info.Size(), in)
}

func (b *Writer) add(name string, size int64, from io.Reader) error {
	if err := b.begin(name, size); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(b.tar, sum, step{b.ctx, b.moved}), from, size); err != nil {
		return err
	}
	b.list = append(b.list, entry{name, size, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (b *Writer) moved(n int64) {
	if b.done += n; b.progress != nil {
		b.progress(b.done, max(b.total, b.done))
	}
}

// portion is the approximate number of bytes of rows in one entry. The writer holds
// that much in memory, and one row.
const portion = 4 << 20

// Table adds the rows that each yields.
func (b *Writer) Table(t Table, each func(take func(row []any) error) error) error {
	var rows bytes.Buffer
	number := 0
	flush := func() error {
		if rows.Len() == 0 {
			return nil
		}
		err := b.add(tablesName+t.Name+"/"+strconv.Itoa(number), int64(rows.Len()), &rows)
		number++
		rows.Reset()
		return err
	}
	err := each(func(row []any) error {
		if err := encode(&rows, row); err != nil {
			return err
		}
		if rows.Len() < portion {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// Close writes the list of all entries.
func (b *Writer) Close() error {
	if err := b.meta(listName, b.list); err != nil {
		return err
	}
	return errors.Join(b.tar.Close(), b.zip.Close())
}

// step reports the progress of a copy and stops the copy when ctx ends.
type step struct {
	ctx   context.Context //nolint:containedctx // for a single copy
	moved func(int64)
}

func (s step) Write(b []byte) (int, error) {
	s.moved(int64(len(b)))
	return len(b), context.Cause(s.ctx)
}
