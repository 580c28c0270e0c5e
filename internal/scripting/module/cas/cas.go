// Package cas is the cas module of scripts: contents stored under their hashes.
package cas

import (
	"context"
	"embed"
	"io"
	"path"
	"path/filepath"
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
		{Name: "path", Kind: host.Read, Effect: host.Bind(localPath)},
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

func localPath(ctx context.Context, w *host.Services, name string) (string, error) {
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

// store(data, mime?, name?) stores a string.
func store(ctx context.Context, w *host.Services, data string, mime, name *string) (string, error) {
	return put(ctx, w, strings.NewReader(data), mime, host.Or(name, ""))
}

// storeFile(path, mime?, name?) stores a file that the script may read.
func storeFile(ctx context.Context, w *host.Services, file string, mime, name *string) (string, error) {
	r, err := w.Files.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	return put(ctx, w, r, mime, host.Or(name, filepath.Base(file)))
}

// typeOf returns the type of a content: what the script says, or what the name says.
func typeOf(said *string, name string) string {
	if kind := types[strings.ToLower(path.Ext(name))]; said == nil && kind != "" {
		return kind
	}
	return host.Or(said, "application/octet-stream")
}

// types are those of names. They are not the machine's, so that a script does the same on
// every one.
var types = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".json": "application/json",
	".html": "text/html", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".flac": "audio/flac", ".mid": "audio/midi", ".midi": "audio/midi", ".abc": "text/vnd.abc", ".pdf": "application/pdf",
}

func put(ctx context.Context, w *host.Services, r io.Reader, mime *string, name string) (string, error) {
	contents, err := w.Store()
	if err != nil {
		return "", err
	}
	c, err := contents.Put(ctx, r, host.Stored{MIME: typeOf(mime, name), Name: name, Script: w.Script, Job: w.Job})
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
