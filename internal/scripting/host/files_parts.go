package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

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
		return f.patchOverlay(path, filepath.Join(root.Name(), inside), data, offset)
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

// patchOverlay is WritePart with an overlay.
func (f *Files) patchOverlay(name, full string, data []byte, offset int64) error {
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
	return f.overlay.put(full, content)
}
