package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"lukechampine.com/blake3"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// DefaultMaxSize is the default size limit of a content: 1 GiB.
const DefaultMaxSize = 1 << 30

// abandoned is the age after which an unfinished file cannot belong to a running writer.
const abandoned = 24 * time.Hour

// DirOptions configure a Dir. The zero value is ready to use.
type DirOptions struct {
	MaxSize int64 // bytes per content; zero means DefaultMaxSize, negative no limit
}

// Dir is a Store of files: objects/ab/cdef… holds the content whose hash begins
// with abcdef. Several processes may use one folder.
type Dir struct {
	root       string
	maxSize    int64
	subfolders [256]atomic.Bool // objects/00 … objects/ff known to be on disk
}

// OpenDir opens the store in the folder root, which is created if necessary, and removes
// the unfinished files of writers that died long ago.
func OpenDir(root string, o DirOptions) (*Dir, error) {
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	d := &Dir{root: root, maxSize: o.MaxSize}
	for _, dir := range []string{d.objects(), d.unfinished()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open content store: %w", err)
		}
	}
	if err := syncDir(root); err != nil {
		return nil, fmt.Errorf("open content store: %w", err)
	}
	d.Sweep()
	return d, nil
}

// Put writes r to a temporary file, and moves it below objects when all of it is on disk.
func (d *Dir) Put(ctx context.Context, r io.Reader) (_ Ref, _ int64, err error) {
	f, err := os.CreateTemp(d.unfinished(), "put-*")
	if err != nil {
		return Ref{}, 0, fmt.Errorf("store content: %w", err)
	}
	defer func() { // after the move the file does not exist
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	source := &sourceReader{r: ctxReader{ctx, r}}
	ref, size, err := d.fill(f, source)
	if source.err != nil {
		return Ref{}, 0, source.err
	}
	if err != nil {
		return Ref{}, 0, fmt.Errorf("store content: %w", err)
	}
	if err := d.commit(ctx, f, ref); err != nil {
		return Ref{}, 0, fmt.Errorf("store content %s: %w", ref.Short(), err)
	}
	return ref, size, nil
}

// sourceReader remembers why the source of a content ended early. That is an error of
// whoever produces the content, who words it; storing did not fail.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// fill copies r to f and computes its hash.
func (d *Dir) fill(f *os.File, r io.Reader) (Ref, int64, error) {
	if d.maxSize >= 0 {
		r = io.LimitReader(r, d.maxSize+1)
	}
	hash := blake3.New(refSize, nil)
	size, err := io.Copy(io.MultiWriter(f, hash), r)
	if err == nil && d.maxSize >= 0 && size > d.maxSize {
		err = tooBig(d.maxSize)
	}
	return sumOf(hash), size, err
}

// commit moves the finished file to its place, unless undamaged content is there already.
// Either way the content survives a crash when commit returns.
func (d *Dir) commit(ctx context.Context, f *os.File, ref Ref) error {
	if err := d.addSubfolder(ref); err != nil {
		return err
	}
	place := d.path(ref)
	if d.sound(ctx, ref) {
		now := time.Now() // so that it does not look abandoned; it is no error if it was just removed
		_ = os.Chtimes(place, now, now)
	} else {
		if err := f.Sync(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := os.Rename(f.Name(), place); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(place))
}

// sound reports whether ref's content exists and is undamaged.
func (d *Dir) sound(ctx context.Context, ref Ref) bool {
	r, err := d.Open(ctx, ref)
	if err != nil {
		return false
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// Open opens the file of ref.
func (d *Dir) Open(ctx context.Context, ref Ref) (io.ReadCloser, error) {
	f, err := os.Open(d.path(ref))
	if err != nil {
		return nil, lookup(ref, "open", err)
	}
	return verified(ctx, ref, f), nil
}

// Stat returns the size of ref's file.
func (d *Dir) Stat(_ context.Context, ref Ref) (int64, error) {
	info, err := os.Stat(d.path(ref))
	if err != nil {
		return 0, lookup(ref, "stat", err)
	}
	return info.Size(), nil
}

// Match reads the one subfolder that can contain prefix.
func (d *Dir) Match(_ context.Context, prefix string, limit int) ([]Ref, error) {
	folder, rest := prefix[:2], prefix[2:]
	entries, err := os.ReadDir(filepath.Join(d.objects(), folder)) // sorted by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for content %s: %w", prefix, err)
	}
	var refs []Ref
	for _, e := range entries {
		if len(refs) == limit {
			break
		}
		if strings.HasPrefix(e.Name(), rest) {
			if ref, err := Parse(folder + e.Name()); err == nil {
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}

// Folder returns the folder of the files.
func (d *Dir) Folder() string { return d.objects() }

// Path returns the path of ref's file, which need not exist.
func (d *Dir) Path(ref Ref) string { return d.path(ref) }

func (d *Dir) objects() string    { return filepath.Join(d.root, "objects") }
func (d *Dir) unfinished() string { return filepath.Join(d.root, "unfinished") }

func (d *Dir) path(ref Ref) string {
	digits := ref.String()
	return filepath.Join(d.objects(), digits[:2], digits[2:])
}

// addSubfolder creates the folder of ref's file. The first time, it syncs the folder to disk
// even if it exists: another process may just have created it.
func (d *Dir) addSubfolder(ref Ref) error {
	known := &d.subfolders[ref.sum[0]]
	if known.Load() {
		return nil
	}
	folder := filepath.Join(d.objects(), hex.EncodeToString(ref.sum[:1]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := syncDir(d.objects()); err != nil {
		return err
	}
	known.Store(true)
	return nil
}

// Has reports whether ref's file exists.
func (d *Dir) Has(ctx context.Context, _ *db.Tx, ref Ref) (bool, error) {
	_, err := d.Stat(ctx, ref)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// Remove removes ref's file, at once. After a crash the file is not there again.
func (d *Dir) Remove(_ context.Context, _ *db.Tx, ref Ref) error {
	place := d.path(ref)
	if err := os.Remove(place); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove content %s: %w", ref.Short(), err)
	}
	return syncDir(filepath.Dir(place))
}

// Sweep removes unfinished files of writers that died long ago. It ignores errors: the
// next time it tries again.
func (d *Dir) Sweep() {
	before := time.Now().Add(-abandoned)
	entries, _ := os.ReadDir(d.unfinished())
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(d.unfinished(), e.Name()))
		}
	}
}

func lookup(ref Ref, doing string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return missing(ref.String())
	}
	return fmt.Errorf("%s content %s: %w", doing, ref.Short(), err)
}

// syncDir syncs a folder's entries to disk. Windows has no such call and relies on the
// journal of the file system.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

var _ Store = (*Dir)(nil)
