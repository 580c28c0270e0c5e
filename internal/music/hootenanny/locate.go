package hootenanny

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Locator uses the music backend of this process, or a remote one while an upstream has
// the music namespace. Upstreams come and go, so it decides at each call.
type Locator struct {
	Local    *Backend
	Remote   Remote
	IsRemote func() bool
}

// reader is what both kinds of backend offer beside their tools.
type reader interface {
	Artifact(ctx context.Context, id string) (ArtifactView, error)
	Artifacts(ctx context.Context, q Search) (ArtifactList, error)
	Garden(ctx context.Context, project string) (GardenView, error)
	Content(ctx context.Context, name string) (Content, error)
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error)
}

func (l Locator) current() reader {
	if l.IsRemote() {
		return l.Remote
	}
	return l.Local
}

// Artifact returns the artifact that an id or a hash names.
func (l Locator) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	return l.current().Artifact(ctx, id)
}

// Artifacts returns the artifacts that match a search.
func (l Locator) Artifacts(ctx context.Context, q Search) (ArtifactList, error) {
	return l.current().Artifacts(ctx, q)
}

// Garden returns the transport and the whole timeline of a project; "" is the default one.
func (l Locator) Garden(ctx context.Context, project string) (GardenView, error) {
	return l.current().Garden(ctx, project)
}

// Content returns what a hash, a unique prefix of one, or an artifact's id names.
func (l Locator) Content(ctx context.Context, name string) (Content, error) {
	return l.current().Content(ctx, name)
}

// Open opens a content for reading.
func (l Locator) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return l.current().Open(ctx, ref)
}

// PutContent stores content of a MIME type.
func (l Locator) PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error) {
	return l.current().PutContent(ctx, r, mime)
}

// Contents is the content store for scripts: our own, together with that of a remote
// backend, so that a hash means the same to a script and to the music tools it calls.
type Contents struct {
	Files    *artifact.Files
	Remote   Remote
	IsRemote func() bool
}

// Put stores all of r.
func (c Contents) Put(ctx context.Context, r io.Reader, mime string) (Content, error) {
	if !c.IsRemote() {
		return c.Files.PutFile(ctx, r, mime)
	}
	stored, err := c.Remote.PutContent(ctx, r, mime)
	if err != nil {
		return Content{}, err
	}
	return c.Files.FindFile(ctx, stored.Hash)
}

// Find returns the content that a hash or a unique prefix of one names.
func (c Contents) Find(ctx context.Context, hash string) (Content, error) {
	found, err := c.Files.FindFile(ctx, hash)
	if err == nil || !c.IsRemote() {
		return found, err
	}
	return c.Remote.Content(ctx, hash)
}

// Artifact returns the content of an artifact, named by its id or hash.
func (c Contents) Artifact(ctx context.Context, id string) (Content, error) {
	if c.IsRemote() {
		if a, err := c.Remote.Artifact(ctx, id); err == nil {
			return c.Find(ctx, a.Hash)
		}
	}
	return c.Files.ArtifactFile(ctx, id)
}

// Open opens a content for reading.
func (c Contents) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return c.Files.Open(ctx, ref)
}

// Folder is the folder with the contents as files.
func (c Contents) Folder() string { return c.Files.Folder() }

// LocalTools are the tools of a backend in this process. They are not listed while an
// upstream has the music namespace.
type LocalTools struct {
	tool.Source
	IsRemote func() bool
}

// Tools lists them.
func (t *LocalTools) Tools(ctx context.Context) ([]tool.Info, error) {
	if t.IsRemote() {
		return nil, nil
	}
	return t.Source.Tools(ctx)
}
