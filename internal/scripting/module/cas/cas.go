// Package cas is the cas module of scripts: contents stored under their hashes.
package cas

import (
	"context"
	"embed"
	"io"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

//go:embed cas.md prelude.lua prelude.js
var files embed.FS

// Module is the global cas.
func Module() host.Module {
	return host.Module{Name: "cas", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "path", Kind: host.Read, Effect: host.Bind(path)},
		{Name: "exists", Kind: host.Read, Effect: host.Bind(exists)},
		{Name: "size", Kind: host.Read, Effect: host.Bind(size)},
		{Name: "info", Kind: host.Read, Effect: host.Bind(info)},
		{Name: "store", Kind: host.Idempotent, Overlay: true, Effect: host.Bind(store), Action: host.Does("store", 1)},
		{Name: "store_file", Kind: host.Idempotent, Overlay: true, Effect: host.Bind(storeFile), Action: host.Does("store", 1)},
		{Name: "read", Kind: host.Read, Effect: host.Bind(read)},
		{Name: "base_path", Kind: host.Nondeterministic, Effect: host.Bind(basePath)},
		{Name: "hash", Pure: host.BindPure(hash)},
	}}
}

// most is the largest content that cas.read returns.
const most = 32 << 20

// find returns the content that a hash or a prefix of one names.
func find(ctx context.Context, w *host.Services, name string) (host.Content, error) {
	contents, err := w.Store()
	if err != nil {
		return host.Content{}, err
	}
	return contents.Find(ctx, name)
}

func path(ctx context.Context, w *host.Services, name string) (string, error) {
	c, err := find(ctx, w, name)
	if err == nil && c.Path == "" {
		err = fault.New(fault.Unavailable, "contents are not stored as files here").WithHint("use cas.read")
	}
	return c.Path, err
}

func exists(ctx context.Context, w *host.Services, name string) (bool, error) {
	_, err := find(ctx, w, name)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

func size(ctx context.Context, w *host.Services, name string) (int64, error) {
	c, err := find(ctx, w, name)
	return c.Size, err
}

func info(ctx context.Context, w *host.Services, name string) (map[string]any, error) {
	c, err := find(ctx, w, name)
	return map[string]any{"hash": c.Hash, "size_bytes": c.Size, "mime_type": c.MIME, "local_path": c.Path}, err
}

// store(data, mime?) stores a string.
func store(ctx context.Context, w *host.Services, data string, mime *string) (string, error) {
	return put(ctx, w, strings.NewReader(data), mime)
}

// storeFile(path, mime?) stores a file that the script may read.
func storeFile(ctx context.Context, w *host.Services, path string, mime *string) (string, error) {
	file, err := w.Files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	return put(ctx, w, file, mime)
}

func put(ctx context.Context, w *host.Services, r io.Reader, mime *string) (string, error) {
	contents, err := w.Store()
	if err != nil {
		return "", err
	}
	c, err := contents.Put(ctx, r, host.Or(mime, "application/octet-stream"))
	return c.Hash.String(), err
}

func read(ctx context.Context, w *host.Services, name string) ([]byte, error) {
	c, err := find(ctx, w, name)
	if err != nil {
		return nil, err
	}
	if c.Size > most {
		return nil, fault.New(fault.Limit, "content %s has %d bytes", c.Hash.Short(), c.Size).
			WithHint("cas.read returns at most %d bytes; use cas.path and functions that work on files", most)
	}
	r, err := w.Contents.Open(ctx, c.Hash)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

func basePath(w *host.Services) (string, error) {
	contents, err := w.Store()
	if err != nil {
		return "", err
	}
	return contents.Folder(), nil
}

// hash(data) returns the hash of data.
func hash(data string) string { return cas.Sum([]byte(data)).String() }
