package host

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/luanette/luanette/internal/base/fault"
)

// Files is a run's access to the file system: its own temp folder and the folders that
// the configuration allows. Every path is opened inside one of them with os.Root, which
// neither ".." nor a symbolic link can leave.
type Files struct {
	temp    *Temp
	read    []string
	write   []string
	named   string
	allowed func(inside string) bool
	limit   int64
	overlay *overlay // for a rehearsal: what would be written; nil writes to disk
}

// FilesOptions are the allowed folders. The zero value allows only temp.
type FilesOptions struct {
	Read  []string // folders scripts may read
	Write []string // folders scripts may read and write
	Named string   // a folder whose files scripts may read by path, but not list
	// Allowed tells which files of Named the run may read, by their path in it; nil: all.
	Allowed func(inside string) bool
	Limit   int64 // largest file read whole, in bytes; 0 means 10 MiB
}

// NewFiles allows the folders of options and the run's temp folder.
func NewFiles(temp *Temp, options FilesOptions) *Files {
	if options.Limit == 0 {
		options.Limit = 10 << 20
	}
	return &Files{temp: temp, read: absolute(options.Read), write: absolute(options.Write), named: options.Named, allowed: options.Allowed, limit: options.Limit}
}

func absolute(folders []string) []string {
	var full []string
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil {
			full = append(full, abs)
		}
	}
	return full
}

// Read returns a file's content.
func (f *Files) Read(path string) ([]byte, error) { return f.ReadUpTo(path, f.limit) }

// ReadUpTo returns the content of a file of at most limit bytes.
func (f *Files) ReadUpTo(path string, limit int64) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fileFault("read", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fault.New(fault.Limit, "read %s: larger than %d bytes", path, limit)
	}
	return data, nil
}

// File is a file open for reading.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// overlayFile is a file of an overlay.
type overlayFile struct{ *bytes.Reader }

func (overlayFile) Close() error { return nil }

// Open opens a file for reading. The caller closes it.
func (f *Files) Open(path string) (File, error) {
	root, inside, err := f.openNamed(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if content, known := f.overlay.get(filepath.Join(root.Name(), inside)); known {
		if content == nil {
			return nil, fileFault("read", path, fs.ErrNotExist)
		}
		return overlayFile{bytes.NewReader(slices.Clone(content))}, nil
	}
	file, err := root.Open(inside)
	if err != nil {
		return nil, fileFault("read", path, err)
	}
	return file, nil
}

// openNamed returns the folder that holds path, including the one that cannot be listed.
func (f *Files) openNamed(path string) (*os.Root, string, error) {
	if f.named != "" && filepath.IsAbs(path) {
		if inside, err := filepath.Rel(f.named, filepath.Clean(path)); err == nil && filepath.IsLocal(inside) {
			if f.allowed != nil && !f.allowed(inside) {
				return nil, "", fileFault("read", path, fs.ErrNotExist)
			}
			if root, err := os.OpenRoot(f.named); err == nil {
				return root, inside, nil
			}
		}
	}
	return f.open(path, false)
}

// Write replaces a file's content, or appends to it, and creates its folder if needed.
func (f *Files) Write(path string, data []byte, add bool) error {
	root, inside, err := f.open(path, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if f.overlay != nil {
		return f.writeOverlay(root, inside, path, data, add)
	}
	if f.InTemp(path) {
		if err := f.temp.take(int64(len(data))); err != nil {
			return err
		}
	}
	if err := makeFolder(root, filepath.Dir(inside)); err != nil {
		return fileFault("write", path, err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if add {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	file, err := root.OpenFile(inside, flags, 0o644)
	if err != nil {
		return fileFault("write", path, err)
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return fileFault("write", path, err)
	}
	return nil
}

func makeFolder(root *os.Root, folder string) error {
	err := root.MkdirAll(folder, 0o755)
	if errors.Is(err, fs.ErrExist) { // as something else than a folder
		return syscall.ENOTDIR
	}
	return err
}

// Remove deletes a file in a writable folder.
func (f *Files) Remove(path string) error {
	root, inside, err := f.open(path, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if f.overlay != nil {
		if err := f.removable(root, path, inside); err != nil {
			return fileFault("remove", path, err)
		}
		return f.overlay.put(filepath.Join(root.Name(), inside), nil)
	}
	if err := root.Remove(inside); err != nil {
		return fileFault("remove", path, err)
	}
	return nil
}

// removable returns why a file or folder could not be removed from the disk.
func (f *Files) removable(root *os.Root, path, inside string) error {
	switch there, err := f.there(root, inside); {
	case err != nil:
		return err
	case !there:
		return syscall.ENOENT
	case inside == ".":
		return syscall.EINVAL // as os.Root refuses to remove itself
	}
	if entries, err := f.List(path); err == nil && len(entries) > 0 {
		return syscall.ENOTEMPTY
	}
	return nil
}

// Exists reports whether there is a file or folder at path.
func (f *Files) Exists(path string) (bool, error) {
	root, inside, err := f.openNamed(path)
	if err != nil {
		if !filepath.IsAbs(path) || fault.CodeOf(err) == fault.NotFound {
			return false, nil // no allowed folder has it, or it is a content of somebody else
		}
		return false, err
	}
	defer root.Close()
	return f.there(root, inside)
}

// there reports whether a file exists inside root, or in the overlay.
func (f *Files) there(root *os.Root, inside string) (bool, error) {
	full := filepath.Join(root.Name(), inside)
	if content, known := f.overlay.get(full); known {
		return content != nil, nil
	}
	_, err := root.Stat(inside)
	if errors.Is(err, fs.ErrNotExist) {
		return f.overlay.holds(full), nil
	}
	return err == nil, err
}

// DirEntry is one entry of a folder.
type DirEntry struct {
	Name  string `json:"name"`
	IsDir bool   `json:"is_dir"`
	Size  int64  `json:"size"`
}

// List returns the entries of a folder, sorted by name.
func (f *Files) List(path string) ([]DirEntry, error) {
	root, inside, err := f.open(path, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	full := filepath.Join(root.Name(), inside)
	found, err := fs.ReadDir(root.FS(), filepath.ToSlash(inside))
	if err != nil && !f.overlay.holds(full) {
		return nil, fileFault("list", path, err)
	}
	entries := make([]DirEntry, 0, len(found))
	for _, d := range found {
		entry := DirEntry{Name: d.Name(), IsDir: d.IsDir()}
		if info, err := d.Info(); err == nil {
			entry.Size = info.Size()
		}
		entries = append(entries, entry)
	}
	if f.overlay != nil {
		entries = f.overlay.merge(full, entries)
	}
	return entries, nil
}

// Find returns the files below the allowed folders whose path matches the pattern,
// sorted, at most limit. Relative patterns ("**/*.mid", "songs/*.abc") are tried in
// every folder.
func (f *Files) Find(pattern string, limit int) ([]string, error) {
	var found []string
	for _, folder := range f.folders() {
		root, err := os.OpenRoot(folder)
		if err != nil {
			continue // a configured folder that does not exist holds no files
		}
		err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || len(found) >= limit {
				return fs.SkipDir
			}
			if !d.IsDir() && matchPath(pattern, folder, path) {
				found = append(found, filepath.Join(folder, filepath.FromSlash(path)))
			}
			return nil
		})
		root.Close()
		if err != nil {
			return nil, fileFault("find", pattern, err)
		}
		found = f.overlay.find(pattern, folder, found)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Walk visits the files below a folder, or below all allowed folders if it is "", in
// order of their names. It does not follow links, and skips folders for which skip
// returns true. visit gets the file's full path and a function that reads it; it ends
// the walk by returning fs.SkipAll.
func (f *Files) Walk(folder string, skip func(name string) bool, visit visitFunc) error {
	folders := f.folders()
	if folder != "" {
		folders = []string{folder}
	}
	for _, one := range folders {
		root, inside, err := f.open(one, false)
		if err != nil {
			return err
		}
		err = walkRoot(root, inside, skip, f.real(visit))
		if err == nil {
			err = f.overlay.walk(filepath.Join(root.Name(), inside), visit)
		}
		root.Close()
		if err != nil {
			return fileFault("walk", one, err)
		}
	}
	return nil
}

// visitFunc is called by Walk for every file.
type visitFunc = func(path string, info fs.FileInfo, read func() ([]byte, error)) error

// real leaves out files that the overlay replaces.
func (f *Files) real(visit visitFunc) visitFunc {
	if f.overlay == nil {
		return visit
	}
	return func(path string, info fs.FileInfo, read func() ([]byte, error)) error {
		if _, known := f.overlay.get(path); known {
			return nil
		}
		return visit(path, info, read)
	}
}

func walkRoot(root *os.Root, inside string, skip func(string) bool, visit visitFunc) error {
	files := root.FS()
	return fs.WalkDir(files, filepath.ToSlash(inside), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // unreadable folders are skipped
		}
		if d.IsDir() && path != "." && skip(d.Name()) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // gone meanwhile, or no file
		}
		full := filepath.Join(root.Name(), filepath.FromSlash(path))
		return visit(full, info, func() ([]byte, error) { return fs.ReadFile(files, path) })
	})
}

// Folders returns the allowed folders, writable ones first.
func (f *Files) Folders() []string { return f.folders() }

// Workspace returns the folder that scripts work on: the first one they may write to, in
// which programs run, or else the first one they may read; "" if there is none but temp.
func (f *Files) Workspace() string {
	for _, folder := range slices.Concat(f.write, f.read) {
		return folder
	}
	return ""
}

// matchPath matches slash-separated patterns in which ** matches any number of folders.
func matchPath(pattern, folder, path string) bool {
	if filepath.IsAbs(pattern) {
		rel, ok := strings.CutPrefix(filepath.ToSlash(pattern), filepath.ToSlash(folder)+"/")
		if !ok {
			return false
		}
		pattern = rel
	}
	return matchParts(strings.Split(pattern, "/"), strings.Split(path, "/"))
}

func matchParts(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		for i := range len(path) + 1 {
			if matchParts(pattern[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	if len(path) == 0 {
		return false
	}
	ok, err := filepath.Match(pattern[0], path[0])
	return err == nil && ok && matchParts(pattern[1:], path[1:])
}

// open returns the allowed folder that holds path. A relative path is resolved in the
// first folder that may be used for the purpose.
func (f *Files) open(path string, forWriting bool) (*os.Root, string, error) {
	folders := f.folders()
	if forWriting {
		folders = f.writable()
	}
	clean := filepath.Clean(path)
	for _, folder := range folders {
		inside, ok := f.inside(folder, clean, forWriting)
		if !ok {
			continue
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, "", fileFault("open", path, err)
		}
		return root, inside, nil
	}
	if !forWriting && !filepath.IsAbs(clean) && filepath.IsLocal(clean) {
		return nil, "", fault.New(fault.NotFound, "read %s: no such file in the allowed folders", path).
			WithHint("allowed now: %s", strings.Join(folders, ", "))
	}
	return nil, "", f.outside(path, forWriting)
}

// inside returns path relative to folder; ok is false if it lies elsewhere, or if a
// relative path that is to be read does not exist.
func (f *Files) inside(folder, clean string, forWriting bool) (rel string, ok bool) {
	if filepath.IsAbs(clean) {
		rel, err := filepath.Rel(folder, clean)
		return rel, err == nil && filepath.IsLocal(rel)
	}
	if forWriting {
		return clean, true
	}
	full := filepath.Join(folder, clean)
	_, err := os.Lstat(full)
	return clean, err == nil || f.overlay.has(full)
}

func (f *Files) outside(path string, forWriting bool) error {
	verb, list := "read", f.folders()
	if forWriting {
		verb, list = "write", f.writable()
	}
	return fault.New(fault.Denied, "%s: scripts may not %s here", path, verb).
		WithHint("use temp.path(name), or allow the folder in the configuration; allowed now: %s", strings.Join(list, ", "))
}

func (f *Files) folders() []string {
	return append(f.writable(), f.read...)
}

func (f *Files) writable() []string {
	var open []string
	if dir, err := f.temp.Dir(); err == nil {
		open = append(open, dir)
	}
	return append(open, f.write...)
}

// InTemp reports whether a path to be written lies in the run's temp folder.
func (f *Files) InTemp(path string) bool {
	dir, err := f.temp.Dir()
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return !filepath.IsAbs(path) || err == nil && filepath.IsLocal(rel)
}

// fileFault words a file system error with the path as the script wrote it.
func fileFault(doing, path string, err error) error {
	code := fault.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = fault.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = fault.Denied
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fault.Wrap(code, err, "%s %s", doing, path)
}

// Files in parts, so that a caller need not hold a large one in memory.

// LargestPart is the most bytes that ReadPart returns.
const LargestPart = 4 << 20

// ReadPart returns up to count bytes of a file from offset on; none at its end.
func (f *Files) ReadPart(path string, offset, count int64) ([]byte, error) {
	if offset < 0 || count < 0 {
		return nil, fault.New(fault.InvalidParams, "read %s: offset and count must not be negative", path)
	}
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	part := make([]byte, min(count, LargestPart, max(0, sizeOf(file)-offset)))
	n, err := file.ReadAt(part, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fileFault("read", path, err)
	}
	if len(part) == 0 { // reading a folder fails only here
		if _, err := file.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
			return nil, fileFault("read", path, err)
		}
	}
	return part[:n], nil
}

// Size returns the size of a file.
func (f *Files) Size(path string) (int64, error) {
	file, err := f.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return sizeOf(file), nil
}

func sizeOf(file File) int64 {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0
	}
	return size
}

// WritePart writes data into a file at offset. If offset is beyond its end, the gap is
// filled with zeros.
func (f *Files) WritePart(path string, data []byte, offset int64) error {
	if offset < 0 {
		return fault.New(fault.InvalidParams, "write %s: the offset must not be negative", path)
	}
	root, inside, err := f.open(path, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if f.overlay != nil {
		return f.patchOverlay(root, inside, path, data, offset)
	}
	if err := makeFolder(root, filepath.Dir(inside)); err != nil {
		return fileFault("write", path, err)
	}
	file, err := root.OpenFile(inside, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fileFault("write", path, err)
	}
	defer file.Close()
	if f.InTemp(path) {
		if err := f.temp.take(max(0, offset+int64(len(data))-sizeOf(file))); err != nil {
			return err
		}
	}
	_, err = file.WriteAt(data, offset)
	if err := errors.Join(err, file.Close()); err != nil {
		return fileFault("write", path, err)
	}
	return nil
}

// patchOverlay is WritePart with an overlay.
func (f *Files) patchOverlay(root *os.Root, inside, name string, data []byte, offset int64) error {
	if err := f.refuses(root, inside); err != nil {
		return fileFault("write", name, err)
	}
	content, err := f.ReadUpTo(name, f.temp.limit)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	end := offset + int64(len(data))
	if end > f.temp.limit {
		return fault.New(fault.Limit, "the rehearsal writes more than it may hold in memory")
	}
	content = slices.Grow(content, max(0, int(end)-len(content)))
	if int64(len(content)) < end {
		content = content[:end]
	}
	copy(content[offset:], data)
	return f.overlay.put(filepath.Join(root.Name(), inside), content)
}
