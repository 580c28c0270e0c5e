package host

import (
	"bytes"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// overlay is what a run would have written by now: files in memory over those
// that are there. It lets a rehearsal read back what it would have written.
type overlay struct {
	mu    sync.Mutex
	files map[string][]byte // by full path; nil is one that would be gone
	left  int64             // bytes it may still hold
}

// ForRehearsal is the same folders with whatever is written kept aside. What was
// written before, for real, is seen; nothing on disk changes any more. Paths are
// refused as they would be for real.
func (f *Files) ForRehearsal() *Files {
	pretended := *f
	pretended.aside = &overlay{files: map[string][]byte{}, left: f.temp.limit}
	return &pretended
}

// get is the content of a file aside; known tells that there is one, or would be
// none any more.
func (o *overlay) get(full string) (content []byte, known bool) {
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	content, known = o.files[full]
	return content, known
}

// has tells whether a file or folder of that path is aside.
func (o *overlay) has(full string) bool {
	content, known := o.get(full)
	return known && content != nil || o.holds(full)
}

// holds tells whether a folder of that path has files aside in it.
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
		return fault.New(fault.Limit, "the rehearsal would hold too much that it would write")
	}
	o.files[full] = content
	return nil
}

// below are the files aside in a folder and those below it, sorted.
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

// writeAside is Write for an overlay; full is the file's whole path.
func (f *Files) writeAside(name, full string, data []byte, add bool) error {
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
	return f.aside.put(full, content)
}

// merge puts what is aside into the list of a folder.
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

// find puts what is aside into what Find found below a folder.
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

// walk visits what is aside below a folder.
func (o *overlay) walk(folder string, visit visitor) error {
	for _, full := range o.below(folder) {
		content, _ := o.get(full)
		if content == nil {
			continue
		}
		err := visit(full, asideInfo{path.Base(filepath.ToSlash(full)), int64(len(content))}, func() ([]byte, error) { return bytes.Clone(content), nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// asideInfo is a file that is not there.
type asideInfo struct {
	name string
	size int64
}

func (i asideInfo) Name() string     { return i.name }
func (i asideInfo) Size() int64      { return i.size }
func (asideInfo) Mode() fs.FileMode  { return 0o644 }
func (asideInfo) ModTime() time.Time { return time.Time{} }
func (asideInfo) IsDir() bool        { return false }
func (asideInfo) Sys() any           { return nil }
