// Package cas is the cas module of scripts: contents stored under their hashes.
package cas

import (
	"bytes"
	"context"
	_ "embed"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

//go:embed cas.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global cas.
func Module() host.Module {
	return host.Module{Name: "cas", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "path", Kind: host.Read, Effect: path},
		{Name: "exists", Kind: host.Read, Effect: exists},
		{Name: "size", Kind: host.Read, Effect: size},
		{Name: "info", Kind: host.Read, Effect: info},
		{Name: "store", Kind: host.Idempotent, Overlay: true, Effect: store},
		{Name: "store_file", Kind: host.Idempotent, Overlay: true, Effect: storeFile},
		{Name: "read", Kind: host.Read, Effect: read},
		{Name: "base_path", Kind: host.Nondeterministic, Effect: basePath},
		{Name: "hash", Pure: hash},
	}}
}

// most is the largest content that cas.read returns.
const most = 32 << 20

// find returns the content that argument 1 names.
func find(ctx context.Context, w *host.Services, args host.Args) (host.Contents, host.Content, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, host.Content{}, err
	}
	contents, err := w.Store()
	if err != nil {
		return nil, host.Content{}, err
	}
	c, err := contents.Find(ctx, name)
	return contents, c, err
}

func path(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	_, c, err := find(ctx, w, args)
	if err == nil && c.Path == "" {
		err = fault.New(fault.Unavailable, "contents are not stored as files here").WithHint("use cas.read")
	}
	return []host.Value{c.Path}, err
}

func exists(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	_, _, err := find(ctx, w, args)
	if fault.CodeOf(err) == fault.NotFound {
		return []host.Value{false}, nil
	}
	return []host.Value{err == nil}, err
}

func size(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	_, c, err := find(ctx, w, args)
	return []host.Value{c.Size}, err
}

func info(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	_, c, err := find(ctx, w, args)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(map[string]any{"hash": c.Hash, "size_bytes": c.Size, "mime_type": c.MIME, "local_path": c.Path})
	return []host.Value{table}, err
}

// store(data, mime?) stores a string.
func store(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	data, err := args.String(1)
	if err != nil {
		return nil, err
	}
	return put(ctx, w, args, bytes.NewReader([]byte(data)))
}

// storeFile(path, mime?) stores a file that the script may read.
func storeFile(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	file, err := w.Files.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return put(ctx, w, args, file)
}

// put stores content with the MIME type in argument 2.
func put(ctx context.Context, w *host.Services, args host.Args, r io.Reader) ([]host.Value, error) {
	mime, err := args.OptString(2, "application/octet-stream")
	if err != nil {
		return nil, err
	}
	contents, err := w.Store()
	if err != nil {
		return nil, err
	}
	c, err := contents.Put(ctx, r, mime)
	if err != nil {
		return nil, err
	}
	return []host.Value{c.Hash.String()}, nil
}

func read(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	contents, c, err := find(ctx, w, args)
	if err != nil {
		return nil, err
	}
	if c.Size > most {
		return nil, fault.New(fault.Limit, "content %s has %d bytes", c.Hash.Short(), c.Size).
			WithHint("cas.read returns at most %d bytes; use cas.path and functions that work on files", most)
	}
	r, err := contents.Open(ctx, c.Hash)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	return []host.Value{string(data)}, err
}

func basePath(_ context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	contents, err := w.Store()
	if err != nil {
		return nil, err
	}
	return []host.Value{contents.Folder()}, nil
}

// hash(data) returns the hash of data.
func hash(args host.Args) ([]host.Value, error) {
	data, err := args.String(1)
	return []host.Value{cas.Sum([]byte(data)).String()}, err
}
