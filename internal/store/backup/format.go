package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// The byte before each value of a row is its kind. Lengths and integers are varints.
const (
	isNull  = 'n'
	isFalse = 'f'
	isTrue  = 't'
	isInt   = 'i'
	isFloat = 'd' // 8 bytes, big-endian
	isText  = 's' // length, bytes
	isBytes = 'b' // likewise
)

// encode appends the values of a row, which have the types that database drivers
// return.
func encode(out *bytes.Buffer, row []any) error {
	var number [binary.MaxVarintLen64]byte
	sized := func(kind byte, size int) {
		out.WriteByte(kind)
		out.Write(number[:binary.PutUvarint(number[:], uint64(size))]) // a length
	}
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			out.WriteByte(isNull)
		case bool:
			kind := byte(isFalse)
			if v {
				kind = isTrue
			}
			out.WriteByte(kind)
		case int64:
			out.WriteByte(isInt)
			out.Write(number[:binary.PutVarint(number[:], v)])
		case float64:
			out.WriteByte(isFloat)
			out.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
		case string:
			sized(isText, len(v))
			out.WriteString(v)
		case []byte:
			sized(isBytes, len(v))
			out.Write(v)
		default:
			return fmt.Errorf("cannot back up a value of type %T", value)
		}
	}
	return nil
}

// rows reads rows with a number of columns; size is their total number of bytes.
type rows struct {
	from    *bufio.Reader
	columns int
	size    int64
}

// next returns the next row, or nil after the last.
func (r *rows) next() ([]any, error) {
	if _, err := r.from.Peek(1); errors.Is(err, io.EOF) || r.columns == 0 {
		return nil, nil
	}
	row := make([]any, r.columns)
	for i := range row {
		var err error
		if row[i], err = r.value(); err != nil {
			return nil, damaged("a row cannot be read: %v", err)
		}
	}
	return row, nil
}

func (r *rows) value() (any, error) {
	kind, err := r.from.ReadByte()
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	switch kind {
	case isNull:
		return nil, nil // the value is NULL
	case isFalse, isTrue:
		return kind == isTrue, nil
	case isInt:
		return binary.ReadVarint(r.from)
	case isFloat:
		var bits [8]byte
		_, err := io.ReadFull(r.from, bits[:])
		return math.Float64frombits(binary.BigEndian.Uint64(bits[:])), err
	case isText:
		text, err := r.bytes()
		return string(text), err
	case isBytes:
		return r.bytes()
	}
	return nil, fmt.Errorf("unknown kind of value %q", kind)
}

// bytes never returns nil, which databases store as NULL.
func (r *rows) bytes() ([]byte, error) {
	size, err := binary.ReadUvarint(r.from)
	if err != nil {
		return nil, err
	}
	if size > uint64(r.size) { // not negative
		return nil, fmt.Errorf("a value of %d bytes in a portion of %d", size, r.size)
	}
	if size <= 1<<20 {
		value := make([]byte, size)
		_, err = io.ReadFull(r.from, value)
		return value, err
	}
	value, err := io.ReadAll(io.LimitReader(r.from, int64(size))) // at most r.size
	if err == nil && uint64(len(value)) < size {
		err = io.ErrUnexpectedEOF
	}
	return value, err
}

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
	ctx    context.Context // for a single file
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

// Writer writes a backup. The backup is complete after Close.
type Writer struct {
	ctx         context.Context // for a single backup
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
	ctx   context.Context // for a single copy
	moved func(int64)
}

func (s step) Write(b []byte) (int, error) {
	s.moved(int64(len(b)))
	return len(b), context.Cause(s.ctx)
}
