// Package artifact keeps what people and scripts make: content under its hash,
// and beside it what is known of it: kind, tags, who made it, from what, when,
// and what was said about it since. Content is kept by a cas.Store, everything
// else in the database. The same content is one artifact, however often and by
// whomever it is stored.
package artifact

import (
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// Artifact is what is known of one content.
type Artifact struct {
	Hash        cas.Ref
	Size        int64 // bytes
	MIME        string
	Tags        []string // sorted, each once
	Creator     string   // who stored it first; "" when nobody said
	Parent      cas.Ref  // what it was made from; zero when nothing
	Name        string
	Description string
	Annotations []Annotation // oldest first
	CreatedAt   time.Time

	number int64 // its place in the order of creation
}

// Annotation is something said about an artifact after it was made.
type Annotation struct {
	Message string
	Vibe    string // a few words for its mood; may be empty
	Source  string // who said it; may be empty
	Time    time.Time
}

// Details is what somebody who stores content says of it. Everything may be
// empty.
type Details struct {
	MIME        string // "" is application/octet-stream
	Tags        []string
	Creator     string
	Parent      cas.Ref // of an artifact that exists
	Name        string
	Description string
}

// Bounds of what is said of one artifact, so that no one of them fills the
// database or a listing.
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
				WithHint("at most %d are kept", field.limit)
		}
	}
	return d, nil
}

// cleanTags trims, sorts and bounds tags, and drops doubles and empty ones.
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

// Created is published when content becomes an artifact: once per content.
type Created struct {
	ID      string   `json:"artifact_id"`
	Hash    cas.Ref  `json:"hash"`
	Content cas.Ref  `json:"content_hash"` // the same, as backends say it
	MIME    string   `json:"mime"`
	Name    string   `json:"name,omitempty"`
	Creator string   `json:"creator,omitempty"`
	Tags    []string `json:"tags"`
}

// EventType is "artifact.created".
func (Created) EventType() string { return "artifact.created" }

// EventKey is the hash.
func (c Created) EventKey() string { return c.Hash.String() }
