// Package backup packs what a data folder holds into one file and unpacks it
// again. The file is a tar archive, compressed with gzip: first a header that says
// what made it and of which versions its tables are, then the files, last a list
// of all of them with their sizes and SHA-256 sums. Without that list, or with any
// sum that differs, nothing is unpacked.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/fault"
)

// Format is the number of the layout described above.
const Format = 1

// Header says what a backup is of.
type Header struct {
	Format  int              `json:"format"`
	Program string           `json:"program"` // version
	Created time.Time        `json:"created"`
	Schema  map[string]int64 `json:"schema"` // versions of tables, by set
}

// entry is one file in the list at the end.
type entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

const (
	headerName = "luanette-backup.json"
	listName   = "luanette-files.json"
	mostMeta   = 256 << 20 // bytes of the list: some two million files
)

// Progress hears how far it is, in bytes of files; total is zero where nobody
// knows.
type Progress func(done, total int64)

// Source is a file to pack: From on disk, Name in the backup, with slashes.
type Source struct {
	Name string
	From string
}

// Pack writes a backup.
func Pack(ctx context.Context, w io.Writer, h Header, files []Source, progress Progress) (err error) {
	h.Format = Format
	packed := gzip.NewWriter(w)
	p := &packer{tar: tar.NewWriter(packed), at: h.Created, progress: progress}
	for _, f := range files {
		if info, err := os.Stat(f.From); err == nil {
			p.total += info.Size()
		}
	}
	if err := p.meta(headerName, h); err != nil {
		return err
	}
	for _, f := range files {
		if err := p.file(ctx, f); err != nil {
			return fault.Wrap(fault.Internal, err, "pack %s", f.From)
		}
	}
	if err := p.meta(listName, p.list); err != nil {
		return err
	}
	return errors.Join(p.tar.Close(), packed.Close())
}

type packer struct {
	tar         *tar.Writer
	at          time.Time
	list        []entry
	done, total int64
	progress    Progress
}

func (p *packer) meta(name string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = p.begin(name, int64(len(text)))
	}
	if err == nil {
		_, err = p.tar.Write(text)
	}
	return err
}

func (p *packer) begin(name string, size int64) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: p.at, Format: tar.FormatPAX})
}

// file packs a file as long as it is when it is opened. One that went away since
// the files were listed is not part of the backup.
func (p *packer) file(ctx context.Context, f Source) error {
	in, err := os.Open(f.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := p.begin(f.Name, info.Size()); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.CopyN(io.MultiWriter(p.tar, sum, step{ctx, p.moved}), in, info.Size())
	if err != nil {
		return err
	}
	p.list = append(p.list, entry{f.Name, n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (p *packer) moved(n int64) {
	if p.done += n; p.progress != nil {
		p.progress(p.done, max(p.total, p.done))
	}
}

// step hears of bytes on their way and stops them when ctx ends.
type step struct {
	ctx   context.Context //nolint:containedctx // of the one copy it is made for
	moved func(int64)
}

func (s step) Write(b []byte) (int, error) {
	s.moved(int64(len(b)))
	return len(b), s.ctx.Err()
}

// Unpack reads a backup into a folder that must not exist yet. Judge sees the
// header before anything is written, and may refuse.
func Unpack(ctx context.Context, r io.Reader, folder string, judge func(Header) error, progress Progress) (h Header, err error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return h, notABackup(err)
	}
	u := &unpacker{tar: tar.NewReader(unpacked), all: unpacked, folder: folder, found: map[string]entry{}, progress: progress}
	if h, err = u.header(); err != nil {
		return h, err
	}
	if err := judge(h); err != nil {
		return h, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return h, fault.Wrap(fault.Config, err, "make folder to restore into")
	}
	for !u.listed {
		if err := u.next(ctx); err != nil {
			return h, errors.Join(err, os.RemoveAll(folder))
		}
	}
	return h, nil
}

type unpacker struct {
	tar      *tar.Reader
	all      io.Reader
	folder   string
	found    map[string]entry
	listed   bool // the list was there, and all is as it says
	done     int64
	progress Progress
}

func (u *unpacker) header() (h Header, err error) {
	head, err := u.tar.Next()
	if err != nil || head.Name != headerName || head.Size > 1<<20 {
		return h, notABackup(err)
	}
	if err := json.NewDecoder(u.tar).Decode(&h); err != nil {
		return h, notABackup(err)
	}
	if h.Format > Format {
		return h, fault.New(fault.Conflict, "the backup was made by luanette %s, in a form this program does not know", h.Program).
			WithHint("restore it with luanette %s or newer", h.Program)
	}
	return h, nil
}

// next takes the next file, or the list at the end.
func (u *unpacker) next(ctx context.Context) error {
	head, err := u.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return damaged("its end is missing")
	case err != nil:
		return damaged("it cannot be read on: %v", err)
	case head.Name == listName:
		return u.compare(head.Size)
	}
	name := filepath.FromSlash(head.Name)
	if _, twice := u.found[head.Name]; twice || head.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || path.Clean(head.Name) != head.Name {
		return damaged("it holds %q, which no backup does", head.Name)
	}
	place := filepath.Join(u.folder, name)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	sum, n, err := u.write(ctx, place)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errReading):
		return damaged("%s cannot be read: %v", head.Name, err)
	case err != nil:
		return fault.Wrap(fault.Internal, err, "unpack %s", head.Name)
	}
	u.found[head.Name] = entry{head.Name, n, sum}
	return nil
}

// write puts the current file on disk.
func (u *unpacker) write(ctx context.Context, place string) (sum string, n int64, err error) {
	out, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	n, err = io.Copy(io.MultiWriter(out, hash, step{ctx, u.moved}), source{u.tar})
	if err == nil {
		err = out.Sync()
	}
	return hex.EncodeToString(hash.Sum(nil)), n, err
}

// source tells errors of the backup from those of the disk it is unpacked to.
type source struct{ io.Reader }

var errReading = errors.New("read")

func (s source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errReading, err)
	}
	return n, err
}

func (u *unpacker) moved(n int64) {
	if u.done += n; u.progress != nil {
		u.progress(u.done, 0)
	}
}

// compare holds what was unpacked against the list.
func (u *unpacker) compare(size int64) error {
	var list []entry
	if err := json.NewDecoder(io.LimitReader(u.tar, min(size, mostMeta))).Decode(&list); err != nil {
		return damaged("its list of files cannot be read")
	}
	for _, want := range list {
		got, there := u.found[want.Name]
		if !there || got != want {
			return damaged("%s is not as it was packed", want.Name)
		}
		delete(u.found, want.Name)
	}
	for name := range u.found {
		return damaged("%s is not in its list", name)
	}
	if _, err := io.Copy(io.Discard, u.all); err != nil { // the last of it is a sum of it all
		return damaged("its end cannot be read: %v", err)
	}
	u.listed = true
	return nil
}

func damaged(format string, args ...any) error {
	return fault.New(fault.InvalidParams, "the backup is damaged: "+format, args...).
		WithHint("use another copy of it; nothing was restored")
}

func notABackup(err error) error {
	text := "the file is not a backup of luanette"
	if err != nil && !errors.Is(err, io.EOF) {
		text += ": " + err.Error()
	}
	return fault.New(fault.InvalidParams, "%s", text).WithHint("`luanette backup FILE` makes one")
}

// Files lists what is below a folder, except what skip says of its path there.
func Files(folder string, skip func(name string, isFolder bool) bool) (files []Source, err error) {
	err = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // gone since it was listed
			return nil
		}
		if err != nil || at == folder {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(at, folder+string(filepath.Separator)))
		switch {
		case skip(name, d.IsDir()) && d.IsDir():
			return fs.SkipDir
		case skip(name, d.IsDir()), !d.Type().IsRegular():
			return nil
		}
		files = append(files, Source{Name: name, From: at})
		return nil
	})
	return files, err
}
