package hootenanny

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/luanette/luanette/internal/store/cas"
)

// Store keeps contents, and artifacts with what is said of them.
type Store interface {
	// PutContent stores content without making it an artifact.
	PutContent(ctx context.Context, r io.Reader, mime string) (Content, error)
	// Find is the content that a hash, a unique beginning of one, or an artifact's
	// id names.
	Find(ctx context.Context, name string) (Content, error)
	// Open opens a content for reading.
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	// Stats counts all contents.
	Stats(ctx context.Context) (Stats, error)

	// Put makes an artifact of content.
	Put(ctx context.Context, r io.Reader, d Details) (Artifact, error)
	// Get is the artifact that an id or a hash names.
	Get(ctx context.Context, id string) (Artifact, error)
	// Search finds artifacts, a page at a time: the newest first, or with words the
	// best.
	Search(ctx context.Context, q Search) (Page, error)
	// Annotate adds something said of an artifact.
	Annotate(ctx context.Context, ref cas.Ref, n Annotation) (Artifact, error)
}

// Content is data stored under its hash.
type Content = cas.File

// Stats is how much is kept.
type Stats struct {
	Items  int64  `json:"total_items"`
	Bytes  int64  `json:"total_bytes"`
	Folder string `json:"cas_dir,omitempty"`
}

// Details is what somebody who makes an artifact says of it.
type Details struct {
	MIME        string
	Tags        []string
	Creator     string
	Parent      cas.Ref
	Name        string
	Description string
}

// Artifact is what is known of a content that somebody made.
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

	set      string // of variations; "" for none
	index    int
	metadata json.RawMessage
}

// Annotation is something said of an artifact.
type Annotation struct {
	Message string    `json:"message"`
	Vibe    string    `json:"vibe,omitempty"`
	Source  string    `json:"source,omitempty"`
	Time    time.Time `json:"created_at"`
}

// Search says which artifacts are looked for; empty fields do not matter.
type Search struct {
	Tags    []string
	Creator string
	Name    string
	Parent  cas.Ref
	Vibe    string
	Limit   int
	Cursor  string
}

// Page is some of what a search found.
type Page struct {
	Artifacts []Artifact
	Total     int
	Next      string // "" at the end
}

// IDOf is what the artifact of that content is called.
func IDOf(ref cas.Ref) string { return "artifact_" + ref.Short() }
