// Package artifact stores what people and scripts create: content under its hash, and
// its metadata: kind, tags, creator, parent, time and annotations. A cas.Store holds the
// content, the database everything else. The same content is one artifact of each owner,
// however often it is stored, and its content is stored once.
//
// Everything that takes a context shows what the principal in it may see: see audience.
// Read and Open do not check, for content that was found before, or that the program needs.
package artifact

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
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
	Message string    `json:"message"`
	Vibe    string    `json:"vibe,omitempty"`   // a few words about its mood
	Source  string    `json:"source,omitempty"` // who made the remark
	Time    time.Time `json:"created_at"`
}

// RunTag is the tag of scripts without a name that were stored only to run a file. They are
// in no list.
const RunTag = "kind:run"

// ResultTag is the tag of what a script stored by its hash. It is no artifact yet: what makes
// one of it removes the tag, and says who made it.
const ResultTag = "kind:result"

// JobTag begins the tag of a result that names the job which stored it first.
const JobTag = "job:"

// Details is the metadata given when content is stored. All fields may be empty.
type Details struct {
	MIME        string // "" is application/octet-stream
	Tags        []string
	FirstTags   []string // those that it only gets if it is new
	Untag       string   // a tag that it loses, if it is known already
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

const columns = "hash, owner, person, org, number, size, mime, creator, parent, name, description, created_at"

// scanRow reads a row of columns, which does not include tags and annotations.
func scanRow(row db.Scanner) (Artifact, error) {
	var a Artifact
	var hash, parent string
	err := row.Scan(&hash, &a.Owner.ID, &a.Owner.Person, &a.Owner.Org, &a.number, &a.Size, &a.MIME, &a.Creator, &parent, &a.Name, &a.Description, db.Micros(&a.CreatedAt))
	if err != nil {
		return Artifact{}, err
	}
	if err := a.Hash.UnmarshalText([]byte(hash)); err != nil {
		return Artifact{}, err
	}
	return a, a.Parent.UnmarshalText([]byte(parent))
}

func scanRef(row db.Scanner) (ref cas.Ref, err error) {
	var hash string
	if err := row.Scan(&hash); err != nil {
		return cas.Ref{}, err
	}
	return cas.Parse(hash)
}

// load reads all metadata of ref that the caller sees: of their own artifact, or else of
// the oldest.
func load(ctx context.Context, tx *db.Tx, w audience, ref cas.Ref) (Artifact, error) {
	query, args := w.rowsOf("artifacts", columns, ref)
	a, err := scanRow(tx.QueryRow(ctx, query+", number LIMIT 1", args...))
	if errors.Is(err, sql.ErrNoRows) {
		return Artifact{}, missing(ref)
	}
	if err != nil {
		return Artifact{}, err
	}
	return a, loadDetails(ctx, tx, &a)
}

// loadDetails reads the tags and annotations of an artifact.
func loadDetails(ctx context.Context, tx *db.Tx, a *Artifact) (err error) {
	a.Tags, err = db.All(ctx, tx, db.Column[string], "SELECT tag FROM artifact_tags WHERE number = $1 ORDER BY tag", a.number)
	if err != nil {
		return err
	}
	a.Annotations, err = db.All(ctx, tx, scanAnnotation,
		"SELECT message, vibe, source, created_at FROM artifact_annotations WHERE number = $1 ORDER BY place", a.number)
	return err
}

func scanAnnotation(row db.Scanner) (n Annotation, err error) {
	return n, row.Scan(&n.Message, &n.Vibe, &n.Source, db.Micros(&n.Time))
}

// numberOf returns the number of an owner's artifact. The local owner, who was the only one
// before artifacts had owners, also has those of nobody.
func numberOf(ctx context.Context, tx *db.Tx, ref cas.Ref, owner principal.Owner) (number int64, err error) {
	const query = "SELECT number FROM artifacts WHERE hash = $1 AND owner = $2 AND person = $3 AND org = $4"
	err = tx.QueryRow(ctx, query, ref.String(), owner.ID, owner.Person, owner.Org).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) && owner == principal.Local().Owner() {
		err = tx.QueryRow(ctx, query, ref.String(), "", "", "").Scan(&number)
	}
	return number, err
}

// written returns the stored form of a ref; "" for the zero Ref.
func written(ref cas.Ref) string {
	if ref.IsZero() {
		return ""
	}
	return ref.String()
}

func missing(ref cas.Ref) error {
	return fault.New(fault.NotFound, "no artifact %s", ref.Short()).
		WithHint("search for it, or store the content again: the same content gets the same hash")
}

// maxGenerations limits a walk up the ancestors.
const maxGenerations = 1000

// Ancestors returns the parent of ref, its parent and so on, nearest first, at most
// limit of them.
func (s *Store) Ancestors(ctx context.Context, ref cas.Ref, limit int) (line []Artifact, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		line = nil
		a, err := load(ctx, tx, w, ref)
		for err == nil && !a.Parent.IsZero() && len(line) < min(limit, maxGenerations) {
			if a, err = load(ctx, tx, w, a.Parent); err == nil {
				line = append(line, a)
			} else if fault.CodeOf(err) == fault.NotFound {
				return nil // it was deleted, or is not shown to the caller
			}
		}
		return err
	})
	return line, err
}

// Children returns a page of the artifacts made from ref, newest first.
func (s *Store) Children(ctx context.Context, ref cas.Ref, limit int) ([]Artifact, error) {
	page, err := s.Search(ctx, Query{Parent: ref, Limit: limit})
	return page.Artifacts, err
}

// Versions returns a page of the artifacts of one name, newest first.
func (s *Store) Versions(ctx context.Context, name string, limit int) ([]Artifact, error) {
	page, err := s.Search(ctx, Query{Name: name, Limit: limit})
	return page.Artifacts, err
}

// ErrOwnAncestor is wrapped by the error about a parent that descends from the artifact.
var ErrOwnAncestor = errors.New("an artifact cannot descend from itself")

// checkParent checks that the caller sees the parent, and that it does not descend from ref,
// which would create a cycle.
func checkParent(ctx context.Context, tx *db.Tx, w audience, ref, parent cas.Ref) error {
	if parent.IsZero() {
		return nil
	}
	for at, depth := parent, 0; !at.IsZero() && depth < maxGenerations; depth++ {
		if at == ref {
			return fault.Wrap(fault.Conflict, ErrOwnAncestor, "artifact %s", ref.Short()).
				WithHint("give the artifact it was really made from, or none")
		}
		var above string
		query, args := w.rowsOf("artifacts", "parent", at)
		err := tx.QueryRow(ctx, query+", number LIMIT 1", args...).Scan(&above)
		if errors.Is(err, sql.ErrNoRows) && at != parent {
			return nil // it was deleted, or is not shown to the caller
		}
		if errors.Is(err, sql.ErrNoRows) {
			return fault.Wrap(fault.NotFound, missing(at), "find parent").WithHint("store the parent first, or give none")
		}
		if err != nil {
			return err
		}
		at = cas.Ref{}
		if err := at.UnmarshalText([]byte(above)); err != nil {
			return err
		}
	}
	return nil
}

// The rows of a person, and those from before artifacts had owners.
const (
	ofPerson  = "(OWNER(owner) OR OWNER(person))"
	orCreator = " OR owner = '' AND OWNER(creator)"
)

// Personal lists the tables with artifacts and contents that a person stored, also in chats.
// Erasing erases the rest.
func Personal() []personal.Table {
	const of = ofPerson + orCreator
	return []personal.Table{
		{Name: "artifact_annotations", Where: "number IN (SELECT number FROM artifacts WHERE " + of + ")"},
		{Name: "artifact_tags", Where: "number IN (SELECT number FROM artifacts WHERE " + of + ")"},
		{Name: "artifacts", Where: of},
		{Name: "artifacts_deleted", Where: ofPerson},
		{Name: "content_owners", Where: ofPerson},
	}
}
