package hootenanny

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
)

// Store stores contents, and artifacts with their annotations.
type Store interface {
	// PutContent stores content without making it an artifact.
	PutContent(ctx context.Context, r io.Reader, mime string) (Content, error)
	// Find returns the content with that hash, unique prefix of a hash, or artifact
	// id.
	Find(ctx context.Context, name string) (Content, error)
	// Open opens a content for reading.
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	// Stats counts all contents.
	Stats(ctx context.Context) (Stats, error)

	// Put creates an artifact from content.
	Put(ctx context.Context, r io.Reader, d Details) (Artifact, error)
	// Get returns the artifact with that id or hash.
	Get(ctx context.Context, id string) (Artifact, error)
	// Search finds artifacts, a page at a time: the newest first, or the best
	// matches first if the search has words.
	Search(ctx context.Context, q Search) (Page, error)
	// Annotate adds an annotation to an artifact.
	Annotate(ctx context.Context, ref cas.Ref, n Annotation) (Artifact, error)
}

// Content is data stored under its hash.
type Content = cas.File

// Stats is the number and size of all contents.
type Stats struct {
	Items  int64  `json:"total_items"`
	Bytes  int64  `json:"total_bytes"`
	Folder string `json:"cas_dir,omitempty"`
}

// Details describe an artifact to create.
type Details struct {
	MIME        string
	Tags        []string
	Creator     string
	Parent      cas.Ref
	Name        string
	Description string
}

// Artifact is a content with its description and lineage.
type Artifact struct {
	ID          string
	Hash        cas.Ref
	Size        int64
	MIME        string
	Tags        []string
	Creator     string
	Parent      cas.Ref
	Name        string
	Description string
	Annotations []Annotation
	Created     time.Time

	owner    principal.Owner // whose variations and metadata it has
	set      string          // of variations; "" if none
	index    int
	metadata json.RawMessage
}

// Annotation is a note about an artifact.
type Annotation struct {
	Message string    `json:"message"`
	Vibe    string    `json:"vibe,omitempty"`
	Source  string    `json:"source,omitempty"`
	Time    time.Time `json:"created_at"`
}

// Search says which artifacts to find; empty fields match all.
type Search struct {
	Tags    []string
	Creator string
	Name    string
	Parent  cas.Ref
	Vibe    string
	Limit   int
	Cursor  string
}

// Page is one page of a search.
type Page struct {
	Artifacts []Artifact
	Total     int
	Next      string // "" at the end
}

// IDOf returns the id of the artifact of that content.
func IDOf(ref cas.Ref) string { return "artifact_" + ref.Short() }
