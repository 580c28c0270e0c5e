package hootenanny

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// artifactStore is the store of artifacts with the types of this package.
type artifactStore struct{ files *artifact.Files }

// NewStore returns the Store that the server's artifacts make.
func NewStore(files *artifact.Files) Store { return artifactStore{files} }

func (s artifactStore) PutContent(ctx context.Context, r io.Reader, mime string) (Content, error) {
	return s.files.PutFile(ctx, r, mime)
}

func (s artifactStore) Find(ctx context.Context, name string) (Content, error) {
	return s.files.FindFile(ctx, name)
}

func (s artifactStore) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return s.files.Open(ctx, ref)
}

func (s artifactStore) Stats(ctx context.Context) (Stats, error) {
	items, bytes, err := s.files.Store.Stats(ctx)
	return Stats{Items: items, Bytes: bytes, Folder: s.files.Folder()}, err
}

func (s artifactStore) Put(ctx context.Context, r io.Reader, d Details) (Artifact, error) {
	a, _, err := s.files.Store.Put(ctx, r, artifact.Details(d))
	return fromStored(a), err
}

func (s artifactStore) Get(ctx context.Context, id string) (Artifact, error) {
	ref, err := s.files.Store.Resolve(ctx, id)
	if err != nil {
		return Artifact{}, err
	}
	a, err := s.files.Store.Get(ctx, ref)
	return fromStored(a), err
}

func (s artifactStore) Search(ctx context.Context, q Search) (Page, error) {
	found, err := s.files.Store.Search(ctx, artifact.Query{
		Tags: q.Tags, Creator: q.Creator, Parent: q.Parent, Name: q.Name, Vibe: q.Vibe, Limit: q.Limit, Cursor: q.Cursor,
	})
	page := Page{Total: found.Total, Next: found.Next}
	for _, a := range found.Artifacts {
		page.Artifacts = append(page.Artifacts, fromStored(a))
	}
	return page, err
}

func (s artifactStore) Annotate(ctx context.Context, ref cas.Ref, n Annotation) (Artifact, error) {
	a, err := s.files.Store.Annotate(ctx, ref, artifact.Annotation(n))
	return fromStored(a), err
}

func fromStored(a artifact.Artifact) Artifact {
	m := Artifact{
		ID: artifact.ID(a.Hash), Hash: a.Hash, Size: a.Size, MIME: a.MIME, Tags: a.Tags, Creator: a.Creator, Parent: a.Parent,
		Name: a.Name, Description: a.Description, Created: a.CreatedAt,
		owner: a.Owner,
	}
	for _, n := range a.Annotations {
		m.Annotations = append(m.Annotations, Annotation(n))
	}
	return m
}
