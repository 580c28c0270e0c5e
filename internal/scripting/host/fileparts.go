package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// Files in parts, so that a large one need not be held whole by whoever reads or
// writes it.

// LargestPart is how many bytes ReadPart gives at a time.
const LargestPart = 4 << 20

// ReadPart returns up to count bytes of a file from offset on; none at its end.
func (f *Files) ReadPart(path string, offset, count int64) ([]byte, error) {
	if offset < 0 || count < 0 {
		return nil, fault.New(fault.InvalidParams, "read %s: offset and count are not below zero", path)
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
	if len(part) == 0 { // a folder says what it is only when it is read
		if _, err := file.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
			return nil, fileFault("read", path, err)
		}
	}
	return part[:n], nil
}

// Size is how large a file is.
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

// WritePart puts data into a file at offset, over what is there; beyond its end
// the file grows, filled with zeros up to there.
func (f *Files) WritePart(path string, data []byte, offset int64) error {
	if offset < 0 {
		return fault.New(fault.InvalidParams, "write %s: the offset is below zero", path)
	}
	root, inside, err := f.open(path, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if f.aside != nil {
		return f.patchAside(path, filepath.Join(root.Name(), inside), data, offset)
	}
	if err := root.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
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

// patchAside is WritePart for an overlay.
func (f *Files) patchAside(name, full string, data []byte, offset int64) error {
	content, err := f.ReadUpTo(name, f.temp.limit)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	end := offset + int64(len(data))
	if end > f.temp.limit {
		return fault.New(fault.Limit, "the rehearsal would hold too much that it would write")
	}
	content = slices.Grow(content, max(0, int(end)-len(content)))
	if int64(len(content)) < end {
		content = content[:end]
	}
	copy(content[offset:], data)
	return f.aside.put(full, content)
}
