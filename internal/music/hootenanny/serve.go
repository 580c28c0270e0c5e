package hootenanny

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/store/cas"
)

// The methods below are for HTTP endpoints and resources.

// Artifact returns the artifact with that id or hash.
func (h *Backend) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	a, err := h.get(ctx, id)
	if err != nil {
		return ArtifactView{}, err
	}
	return h.view(a), nil
}

// Artifacts returns a page of a search.
func (h *Backend) Artifacts(ctx context.Context, q Search) (ArtifactList, error) {
	page, err := h.store.Search(ctx, q)
	if err != nil {
		return ArtifactList{}, err
	}
	views, err := h.views(ctx, page.Artifacts)
	return ArtifactList{Artifacts: views, Count: len(views), Next: page.Next}, err
}

// Content returns the content with that hash, prefix of a hash, or artifact id.
func (h *Backend) Content(ctx context.Context, name string) (Content, error) {
	return h.store.Find(ctx, name)
}

// Open opens a content for reading.
func (h *Backend) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return h.store.Open(ctx, ref)
}

// PutContent stores content with a MIME type.
func (h *Backend) PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error) {
	kind, err := mediaType(mime)
	if err != nil {
		return StoredContent{}, err
	}
	c, err := h.store.PutContent(ctx, r, kind)
	return StoredContent{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME}, err
}

// Garden returns the transport and the whole timeline of a project; "" is the default one.
func (h *Backend) Garden(ctx context.Context, project string) (GardenView, error) {
	if project == "" {
		project = DefaultProject
	}
	return h.look(ctx, project, gardenQueryIn{})
}
