package hootenanny

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/store/cas"
)

// EventType follows is for doors other than the tools.

// Artifact shows the artifact that an id or a hash names.
func (h *Backend) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	a, err := h.get(ctx, id)
	if err != nil {
		return ArtifactView{}, err
	}
	return h.view(a), nil
}

// Artifacts lists what a search finds.
func (h *Backend) Artifacts(ctx context.Context, q Search) (ArtifactList, error) {
	page, err := h.store.Search(ctx, q)
	if err != nil {
		return ArtifactList{}, err
	}
	views, err := h.views(ctx, page.Artifacts)
	return ArtifactList{Artifacts: views, Count: len(views), Next: page.Next}, err
}

// Content is what a hash, the beginning of one, or an artifact's id names.
func (h *Backend) Content(ctx context.Context, name string) (Content, error) {
	return h.store.Find(ctx, name)
}

// Subscribe reads a content.
func (h *Backend) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return h.store.Open(ctx, ref)
}

// PutContent stores content of a MIME type.
func (h *Backend) PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error) {
	kind, err := mediaType(mime)
	if err != nil {
		return StoredContent{}, err
	}
	c, err := h.store.PutContent(ctx, r, kind)
	return StoredContent{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME}, err
}

// Garden is the transport and the whole timeline.
func (h *Backend) Garden(context.Context) (GardenView, error) { return h.look(gardenQueryIn{}), nil }
