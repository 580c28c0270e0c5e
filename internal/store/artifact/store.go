package artifact

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a store. With the zero value it publishes no events and uses the
// machine's clock.
type Options struct {
	Events *event.Bus
	Clock  clock.Clock
	Shares principal.Shares // nil: nobody shares anything
	// Quota returns how many bytes the contents of an organisation may have together; zero
	// is no limit. nil: nobody has one.
	Quota func(org string) int64
	// Columns are those of other packages that have hashes of contents.
	Columns []cas.Column
}

// Store stores artifacts. It is safe for concurrent use.
type Store struct {
	db     *db.DB
	blobs  cas.Store
	words  words
	events *event.Bus
	clock  clock.Clock
	shares principal.Shares
	quota  func(org string) int64
	public func(ctx context.Context, ref cas.Ref) bool

	columns    []cas.Column
	collecting sync.Mutex // held while contents are removed
}

// Open opens the store of a database and a store of contents, and creates or updates its
// tables. The caller closes both.
func Open(ctx context.Context, database *db.DB, blobs cas.Store, o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if err := database.Migrate(ctx, "artifact", Migrations); err != nil {
		return nil, err
	}
	index := openFTS5
	if database.Kind() == db.Postgres {
		index = openTSVector
	}
	words, err := index(ctx, database)
	if err != nil {
		return nil, err
	}
	return &Store{
		db: database, blobs: blobs, words: words, events: o.Events, clock: o.Clock, shares: o.Shares,
		quota: o.Quota, columns: o.Columns,
	}, nil
}

// Put stores all of content. If it is an artifact already, tags are added, name and
// description are replaced if given, and a parent is set if it had none and does not
// descend from it; its creator stays the first. created reports whether it is new.
func (s *Store) Put(ctx context.Context, content io.Reader, d Details) (a Artifact, created bool, err error) {
	d, err = d.checked()
	if err != nil {
		return Artifact{}, false, err
	}
	w, err := s.audience(ctx)
	if err != nil {
		return Artifact{}, false, err
	}
	err = s.putContent(ctx, w.own, content, d.MIME, func(tx *db.Tx, ref cas.Ref, size int64) error {
		created, err = s.record(ctx, tx, w, ref, size, d)
		if err != nil {
			return err
		}
		a, err = load(ctx, tx, w, ref)
		if err != nil {
			return err
		}
		return s.words.put(ctx, tx, &a)
	})
	if err != nil {
		return Artifact{}, false, err
	}
	if created {
		s.events.PublishFor(principal.OwnerOf(ctx), Created{ID: ID(a.Hash), Hash: a.Hash, Content: a.Hash, MIME: a.MIME, Name: a.Name, Creator: a.Creator, Tags: a.Tags})
	}
	return a, created, nil
}

// record stores the metadata of the caller's artifact, and adds to existing metadata.
func (s *Store) record(ctx context.Context, tx *db.Tx, w audience, ref cas.Ref, size int64, d Details) (created bool, err error) {
	if err := checkParent(ctx, tx, w, ref, d.Parent); err != nil {
		return false, err
	}
	number, err := numberOf(ctx, tx, ref, w.own)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		created = true
		number, err = s.insert(ctx, tx, Artifact{Hash: ref, Owner: w.own, Size: size}, d)
	case err == nil:
		err = amend(ctx, tx, number, d)
	}
	if err != nil {
		return false, err
	}
	return created, addTags(ctx, tx, number, d.Tags)
}

func (s *Store) insert(ctx context.Context, tx *db.Tx, a Artifact, d Details) (number int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO artifacts (hash, number, size, mime, creator, parent, name, description, created_at, owner, person, org)
		VALUES ($1, (SELECT COALESCE(MAX(number), 0) + 1 FROM artifacts), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING number`,
		a.Hash.String(), a.Size, d.MIME, d.Creator, written(d.Parent), d.Name, d.Description, s.clock.Now().UnixMicro(),
		a.Owner.ID, a.Owner.Person, a.Owner.Org).Scan(&number)
	return number, err
}

// amend adds metadata to an existing artifact.
func amend(ctx context.Context, tx *db.Tx, number int64, d Details) error {
	_, err := tx.Exec(ctx, `UPDATE artifacts SET
		creator = CASE WHEN creator = '' THEN $2 ELSE creator END,
		parent = CASE WHEN parent = '' THEN $3 ELSE parent END,
		name = CASE WHEN $4 = '' THEN name ELSE $4 END,
		description = CASE WHEN $5 = '' THEN description ELSE $5 END
		WHERE number = $1`, number, d.Creator, written(d.Parent), d.Name, d.Description)
	return err
}

func addTags(ctx context.Context, tx *db.Tx, number int64, tags []string) error {
	for _, tag := range tags {
		if _, err := tx.Exec(ctx, "INSERT INTO artifact_tags (tag, number) VALUES ($1, $2) ON CONFLICT DO NOTHING", tag, number); err != nil {
			return err
		}
	}
	var count int
	if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM artifact_tags WHERE number = $1", number).Scan(&count); err != nil {
		return err
	}
	if count > maxTags {
		return fault.New(fault.Limit, "the artifact would have %d tags", count).WithHint("an artifact has at most %d", maxTags)
	}
	return nil
}

// Get returns the metadata of ref.
func (s *Store) Get(ctx context.Context, ref cas.Ref) (a Artifact, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return a, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		a, err = load(ctx, tx, w, ref)
		if fault.CodeOf(err) == fault.NotFound && s.isPublic(ctx, ref) {
			a, err = load(ctx, tx, everything, ref)
		}
		return err
	})
	return a, err
}

// MIMEOf returns the type of an artifact, whoever it belongs to: for contents that the
// program uses itself, such as the sources of published scripts. It is "" if there is none.
func (s *Store) MIMEOf(ctx context.Context, ref cas.Ref) (mime string, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		query, args := audience{who: principal.Local(), own: ownerOf(ctx)}.rowsOf("artifacts", "mime", ref)
		return tx.QueryRow(ctx, query+", number LIMIT 1", args...).Scan(&mime)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return mime, err
}

// Read returns the whole content of ref, of at most limit bytes.
func (s *Store) Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error) {
	return cas.Read(ctx, s.blobs, ref, limit)
}

// Open opens the content of ref, which the caller closes.
func (s *Store) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return s.blobs.Open(ctx, ref)
}

// Resolve finds the one artifact that text names: a whole hash or a unique
// prefix of one, with or without "cas:", or its id.
func (s *Store) Resolve(ctx context.Context, text string) (cas.Ref, error) {
	return cas.Resolve(ctx, s, strings.TrimPrefix(text, idPrefix))
}

// Match returns up to limit artifacts whose hash begins with prefix.
func (s *Store) Match(ctx context.Context, prefix string, limit int) (refs []cas.Ref, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return nil, err
	}
	sees, args := w.sees("artifacts", 2)
	args = append([]any{prefix, prefix + "g"}, args...)
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		refs, err = db.All(ctx, tx, scanRef, "SELECT DISTINCT hash FROM artifacts WHERE hash >= $1 AND hash < $2 AND "+sees+" ORDER BY hash LIMIT "+strconv.Itoa(limit), args...)
		return err
	})
	if err == nil && len(refs) == 0 && s.public != nil {
		return s.matchPublic(ctx, prefix, limit)
	}
	return refs, err
}

// matchPublic is Match for artifacts of others that are public.
func (s *Store) matchPublic(ctx context.Context, prefix string, limit int) (refs []cas.Ref, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		refs, err = db.All(ctx, tx, scanRef, "SELECT DISTINCT hash FROM artifacts WHERE hash >= $1 AND hash < $2 ORDER BY hash LIMIT $3", prefix, prefix+"g", limit)
		return err
	})
	return slices.DeleteFunc(refs, func(ref cas.Ref) bool { return !s.isPublic(ctx, ref) }), err
}

// SetPublic sets what tells whether an artifact of somebody else is shown to the caller
// without a share: a script that is one of the caller's tools. It is called once, before
// the store is used by others.
func (s *Store) SetPublic(public func(ctx context.Context, ref cas.Ref) bool) { s.public = public }

func (s *Store) isPublic(ctx context.Context, ref cas.Ref) bool {
	return s.public != nil && s.public(ctx, ref)
}

// Annotate adds an annotation to ref. Searches find its words from now on.
func (s *Store) Annotate(ctx context.Context, ref cas.Ref, n Annotation) (a Artifact, err error) {
	if len(n.Message)+len(n.Vibe)+len(n.Source) > maxDescription {
		return a, fault.New(fault.InvalidParams, "annotate %s: the annotation is too long", ref.Short()).
			WithHint("at most %d bytes are allowed", maxDescription)
	}
	w, err := s.audience(ctx)
	if err != nil {
		return a, err
	}
	if a, err = s.Get(ctx, ref); err == nil {
		err = s.mayChange(ctx, w, &a)
	}
	if err != nil {
		return a, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if a, err = load(ctx, tx, w, ref); err != nil {
			return err
		}
		n.Time = s.clock.Now()
		_, err := tx.Exec(ctx, "INSERT INTO artifact_annotations (number, place, message, vibe, source, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
			a.number, len(a.Annotations)+1, n.Message, n.Vibe, n.Source, n.Time.UnixMicro())
		if err != nil {
			return err
		}
		n.Time = time.UnixMicro(n.Time.UnixMicro())
		a.Annotations = append(a.Annotations, n)
		return s.words.put(ctx, tx, &a)
	})
	return a, err
}

var _ cas.Matcher = (*Store)(nil)
