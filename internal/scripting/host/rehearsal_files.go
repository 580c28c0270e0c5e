package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// overlay holds the files that a rehearsal would have written, in memory, over those on
// disk. It lets the rehearsal read back what it would have written.
type overlay struct {
	mu    sync.Mutex
	files map[string][]byte // by full path; nil means removed
	left  int64             // bytes it may still hold
}

// ForRehearsal returns the same folders with an overlay for writes. Files written before
// are visible; nothing on disk changes. Paths are refused as in a live run.
func (f *Files) ForRehearsal() *Files {
	rehearsed := *f
	rehearsed.overlay = &overlay{files: map[string][]byte{}, left: f.temp.limit}
	return &rehearsed
}

// maxPeek is the size of files whose changes are shown in plans.
const maxPeek = 64 << 10

// fileState is a file at one moment of a rehearsal.
type fileState struct {
	path    string
	there   bool
	size    int
	content []byte // nil if it cannot be read or is large
}

func (f *Files) state(path string) fileState {
	s := fileState{path: path}
	size, err := f.Size(path)
	if err != nil {
		return s
	}
	s.there, s.size = true, int(size)
	if content, err := f.ReadUpTo(path, maxPeek); err == nil {
		s.content = content
	}
	return s
}

// refuses returns why a file cannot be written, as writing it would say: there is a folder
// in its place, a file in place of its folder, or its permissions forbid it.
func (f *Files) refuses(root *os.Root, inside string) error {
	full := filepath.Join(root.Name(), inside)
	if f.overlay.holds(full) {
		return syscall.EISDIR
	}
	for folder := filepath.Dir(full); len(folder) > len(root.Name()); folder = filepath.Dir(folder) {
		if content, _ := f.overlay.get(folder); content != nil {
			return syscall.ENOTDIR
		}
	}
	if _, known := f.overlay.get(full); known {
		return nil
	}
	info, err := root.Stat(inside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil // opening a pipe would wait for its reader
	}
	file, err := root.OpenFile(inside, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// get returns the content of a file in the overlay; known is also true for a file
// removed in it.
func (o *overlay) get(full string) (content []byte, known bool) {
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	content, known = o.files[full]
	return content, known
}

// has reports whether the overlay has a file or folder at that path.
func (o *overlay) has(full string) bool {
	content, known := o.get(full)
	return known && content != nil || o.holds(full)
}

// holds reports whether the overlay has files in the folder at that path.
func (o *overlay) holds(full string) bool {
	return slices.ContainsFunc(o.below(full), func(one string) bool {
		content, _ := o.get(one)
		return content != nil
	})
}

func (o *overlay) put(full string, content []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left += int64(len(o.files[full]) - len(content)); o.left < 0 {
		return fault.New(fault.Limit, "the rehearsal writes more than it may hold in memory")
	}
	o.files[full] = content
	return nil
}

// below returns the files of the overlay in a folder and its subfolders, sorted.
func (o *overlay) below(folder string) []string {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for full := range o.files {
		if strings.HasPrefix(full, folder+string(filepath.Separator)) {
			found = append(found, full)
		}
	}
	slices.Sort(found)
	return found
}

// writeOverlay is Write with an overlay.
func (f *Files) writeOverlay(root *os.Root, inside, name string, data []byte, add bool) error {
	if err := f.refuses(root, inside); err != nil {
		return fileFault("write", name, err)
	}
	content := slices.Clone(data)
	if content == nil {
		content = []byte{}
	}
	if add {
		before, err := f.ReadUpTo(name, f.temp.limit)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		content = append(before, content...)
	}
	return f.overlay.put(filepath.Join(root.Name(), inside), content)
}

// merge adds the overlay's files to the listing of a folder.
func (o *overlay) merge(folder string, entries []DirEntry) []DirEntry {
	for _, full := range o.below(folder) {
		inside, _ := filepath.Rel(folder, full)
		name, rest, deeper := strings.Cut(filepath.ToSlash(inside), "/")
		content, _ := o.get(full)
		i := slices.IndexFunc(entries, func(e DirEntry) bool { return e.Name == name })
		switch {
		case deeper && rest != "":
			if i < 0 && content != nil {
				entries = append(entries, DirEntry{Name: name, IsDir: true})
			}
		case content == nil && i >= 0:
			entries = slices.Delete(entries, i, i+1)
		case content != nil && i >= 0:
			entries[i].Size = int64(len(content))
		case content != nil:
			entries = append(entries, DirEntry{Name: name, Size: int64(len(content))})
		}
	}
	slices.SortFunc(entries, func(a, b DirEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// find adds the overlay's files to those Find found below a folder.
func (o *overlay) find(pattern, folder string, found []string) []string {
	for _, full := range o.below(folder) {
		content, _ := o.get(full)
		inside, _ := filepath.Rel(folder, full)
		i := slices.Index(found, full)
		switch {
		case content == nil && i >= 0:
			found = slices.Delete(found, i, i+1)
		case content != nil && i < 0 && matchPath(pattern, folder, filepath.ToSlash(inside)):
			found = append(found, full)
		}
	}
	return found
}

// walk visits the overlay's files below a folder.
func (o *overlay) walk(folder string, visit visitFunc) error {
	for _, full := range o.below(folder) {
		content, _ := o.get(full)
		if content == nil {
			continue
		}
		err := visit(full, overlayInfo{path.Base(filepath.ToSlash(full)), int64(len(content))}, func() ([]byte, error) { return bytes.Clone(content), nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// overlayInfo describes a file of the overlay.
type overlayInfo struct {
	name string
	size int64
}

func (i overlayInfo) Name() string     { return i.name }
func (i overlayInfo) Size() int64      { return i.size }
func (overlayInfo) Mode() fs.FileMode  { return 0o644 }
func (overlayInfo) ModTime() time.Time { return time.Time{} }
func (overlayInfo) IsDir() bool        { return false }
func (overlayInfo) Sys() any           { return nil }
