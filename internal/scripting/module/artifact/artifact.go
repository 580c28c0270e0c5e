// Package artifact is the artifact module of scripts: it finds the content of artifacts.
package artifact

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed artifact.md
var page string

// Module is the global artifact.
func Module() host.Module {
	return host.Module{Name: "artifact", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "path", Kind: host.Read, Effect: host.Bind(path)},
		{Name: "content_hash", Kind: host.Read, Effect: host.Bind(contentHash)},
	}}
}

func find(ctx context.Context, w *host.Services, id string) (host.Content, error) {
	contents, err := w.Store()
	if err != nil {
		return host.Content{}, err
	}
	return contents.Artifact(ctx, id)
}

func path(ctx context.Context, w *host.Services, id string) (string, error) {
	c, err := find(ctx, w, id)
	if err == nil && c.Path == "" {
		err = fault.New(fault.Unavailable, "contents are not stored as files here").WithHint("use cas.read(artifact.content_hash(id))")
	}
	return c.Path, err
}

func contentHash(ctx context.Context, w *host.Services, id string) (string, error) {
	c, err := find(ctx, w, id)
	return c.Hash.String(), err
}
