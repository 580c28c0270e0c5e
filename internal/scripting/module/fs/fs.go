// Package fs is the fs module of scripts, and the confined io library on top of it:
// files in the run's temp folder and in the allowed folders.
package fs

import (
	"context"
	"embed"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed fs.md prelude.lua prelude.js
var files embed.FS

// findLimit is the most files that fs.find returns.
const findLimit = 10_000

// Module is the globals fs and io.
func Module() host.Module {
	return host.Module{Name: "fs", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "read", Kind: host.Read, Effect: host.Bind(read)},
		{Name: "write", Kind: host.Idempotent, Effect: host.Bind(write), Path: 1, Action: host.Does("write", 1)},
		{Name: "append", Kind: host.Write, Effect: host.Bind(add), Path: 1, Action: host.Does("append to", 1)},
		{Name: "list", Kind: host.Read, Effect: host.Bind(list)},
		{Name: "find", Kind: host.Read, Effect: host.Bind(find)},
		{Name: "exists", Kind: host.Read, Effect: host.Bind(exists)},
		{Name: "remove", Kind: host.Write, Effect: host.Bind(remove), Path: 1, Action: host.Does("remove", 1)},
		{Name: "restore", Kind: host.Idempotent, Effect: host.Bind(restore), Path: 1, Action: host.Does("restore", 1)},
		{Name: "size", Kind: host.Read, Effect: host.Bind(size)},
	}}
}

func read(w *host.Services, path string, offset, count *int64) ([]byte, error) {
	if offset == nil {
		return w.Files.Read(path)
	}
	return w.Files.ReadPart(path, *offset, host.Or(count, host.LargestPart))
}

func write(w *host.Services, path, data string, offset *int64) error {
	if offset == nil {
		return w.Files.Write(path, []byte(data), false)
	}
	return w.Files.WritePart(path, []byte(data), *offset)
}

func add(w *host.Services, path, data string) error {
	return w.Files.Write(path, []byte(data), true)
}

func size(w *host.Services, path string) (int64, error) { return w.Files.Size(path) }

func list(w *host.Services, path string) ([]host.DirEntry, error) { return w.Files.List(path) }

func find(w *host.Services, pattern string) ([]string, error) {
	return w.Files.Find(pattern, findLimit)
}

func exists(w *host.Services, path string) (bool, error) { return w.Files.Exists(path) }

func remove(w *host.Services, path string) error { return w.Files.Remove(path) }

func restore(ctx context.Context, w *host.Services, path, job string) (string, error) {
	if w.Jobs == nil {
		return "", fault.New(fault.Unavailable, "fs.restore: no jobs run in this process").WithHint("run the script on a server")
	}
	was, err := w.Jobs.ChangedFile(ctx, job, path)
	if err != nil {
		return "", err
	}
	return w.Files.Restore(ctx, path, was)
}
