// Package artifact stores what people and scripts create: content under its hash, and
// its metadata: kind, tags, creator, parent, time and annotations. A cas.Store holds the
// content, the database everything else. The same content is one artifact of each owner,
// however often it is stored, and its content is stored once.
//
// Everything that takes a context shows what the principal in it may see: see audience.
// Read and Open do not check, for content that was found before, or that the program needs.
package artifact

import (
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
)

// Artifact is the metadata of one content.
type Artifact struct {
	Hash        cas.Ref
	Owner       principal.Owner // zero: nobody's, and everybody sees it
	Size        int64           // bytes
	MIME        string
	Tags        []string // sorted, each once
	Creator     string   // who stored it first; "" if unknown
	Parent      cas.Ref  // what it was made from; zero if nothing
	Name        string
	Description string
	Annotations []Annotation // oldest first
	CreatedAt   time.Time

	number int64 // position in the order of creation
}

// Annotation is a remark about an artifact, added after it was created.
type Annotation struct {
	Message string
	Vibe    string // a few words about its mood; may be empty
	Source  string // who made the remark; may be empty
	Time    time.Time
}

// Details is the metadata given when content is stored. All fields may be empty.
type Details struct {
	MIME        string // "" is application/octet-stream
	Tags        []string
	Creator     string
	Parent      cas.Ref // must exist
	Name        string
	Description string
}

// Limits of the metadata of one artifact, so that none fills the database or a listing.
const (
	maxTags        = 64
	maxTag         = 128
	maxName        = 256
	maxDescription = 8 << 10
)

func (d Details) checked() (Details, error) {
	if d.MIME == "" {
		d.MIME = "application/octet-stream"
	}
	tags, err := cleanTags(d.Tags)
	if err != nil {
		return d, err
	}
	d.Tags = tags
	for _, field := range []struct {
		what, text string
		limit      int
	}{{"name", d.Name, maxName}, {"creator", d.Creator, maxName}, {"mime type", d.MIME, maxName}, {"description", d.Description, maxDescription}} {
		if len(field.text) > field.limit {
			return d, fault.New(fault.InvalidParams, "store artifact: the %s has %d bytes", field.what, len(field.text)).
				WithHint("at most %d are allowed", field.limit)
		}
	}
	return d, nil
}

// cleanTags trims, sorts and limits tags, and removes duplicates and empty ones.
func cleanTags(tags []string) ([]string, error) {
	clean := make([]string, 0, len(tags))
	for _, tag := range tags {
		if tag = strings.TrimSpace(tag); tag == "" {
			continue
		}
		if len(tag) > maxTag {
			return nil, fault.New(fault.InvalidParams, "tag %.40q… is too long", tag).WithHint("a tag has at most %d bytes", maxTag)
		}
		clean = append(clean, tag)
	}
	slices.Sort(clean)
	clean = slices.Compact(clean)
	if len(clean) > maxTags {
		return nil, fault.New(fault.InvalidParams, "%d tags are too many", len(clean)).WithHint("an artifact has at most %d", maxTags)
	}
	return clean, nil
}

// Created is published when content becomes an artifact, once per content and owner.
type Created struct {
	ID      string   `json:"artifact_id"`
	Hash    cas.Ref  `json:"hash"`
	Content cas.Ref  `json:"content_hash"` // the same, under the name that backends use
	MIME    string   `json:"mime"`
	Name    string   `json:"name,omitempty"`
	Creator string   `json:"creator,omitempty"`
	Tags    []string `json:"tags"`
}

// EventType is "artifact.created".
func (Created) EventType() string { return "artifact.created" }

// EventKey is the hash.
func (c Created) EventKey() string { return c.Hash.String() }
