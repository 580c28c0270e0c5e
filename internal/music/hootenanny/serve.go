package hootenanny

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/store/cas"
)

// What follows is for doors other than the tools.

// Artifact shows the artifact that an id or a hash names.
func (h *Hoot) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	a, err := h.get(ctx, id)
	if err != nil {
		return ArtifactView{}, err
	}
	return h.view(a), nil
}

// Artifacts lists what a search finds.
func (h *Hoot) Artifacts(ctx context.Context, q Search) (ArtifactList, error) {
	page, err := h.shelf.Search(ctx, q)
	if err != nil {
		return ArtifactList{}, err
	}
	views, err := h.views(ctx, page.Artifacts)
	return ArtifactList{Artifacts: views, Count: len(views), Next: page.Next}, err
}

// Content is what a hash, the beginning of one, or an artifact's id names.
func (h *Hoot) Content(ctx context.Context, name string) (Content, error) {
	return h.shelf.Find(ctx, name)
}

// Open reads a content.
func (h *Hoot) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return h.shelf.Open(ctx, ref)
}

// Keep stores content of a MIME type.
func (h *Hoot) Keep(ctx context.Context, r io.Reader, mime string) (Stored, error) {
	kind, err := mediaType(mime)
	if err != nil {
		return Stored{}, err
	}
	c, err := h.shelf.Keep(ctx, r, kind)
	return Stored{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME}, err
}

// Garden is the transport and the whole timeline.
func (h *Hoot) Garden(context.Context) (GardenView, error) { return h.look(gardenQueryIn{}), nil }
