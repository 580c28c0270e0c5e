package artifact

import (
	"context"
	"crypto/rand"
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
	if created && !slices.Contains(d.FirstTags, ResultTag) {
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
		d.Tags = append(d.FirstTags, d.Tags...)
		number, err = s.insert(ctx, tx, Artifact{Hash: ref, Owner: w.own, Size: size}, d)
	case err == nil:
		err = amend(ctx, tx, number, d)
	}
	if err != nil {
		return false, err
	}
	lost, err := tx.Exec(ctx, "DELETE FROM artifact_tags WHERE tag = $1 AND number = $2", d.Untag, number)
	if err == nil && lost > 0 && d.Untag == ResultTag {
		created = true
		_, err = tx.Exec(ctx, "UPDATE artifacts SET creator = $2 WHERE number = $1", number, d.Creator)
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
		description = CASE WHEN $5 = '' THEN description ELSE $5 END,
		mime = CASE WHEN mime = 'application/octet-stream' THEN $6 ELSE mime END
		WHERE number = $1`, number, d.Creator, written(d.Parent), d.Name, d.Description, d.MIME)
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
	refs, err = db.Find(ctx, s.db, scanRef, "SELECT DISTINCT hash FROM artifacts WHERE hash >= $1 AND hash < $2 AND "+sees+" ORDER BY hash LIMIT "+strconv.Itoa(limit), args...)
	if err == nil && len(refs) == 0 && s.public != nil {
		return s.matchPublic(ctx, prefix, limit)
	}
	return refs, err
}

// matchPublic is Match for artifacts of others that are public.
func (s *Store) matchPublic(ctx context.Context, prefix string, limit int) (refs []cas.Ref, err error) {
	refs, err = db.Find(ctx, s.db, scanRef, "SELECT DISTINCT hash FROM artifacts WHERE hash >= $1 AND hash < $2 ORDER BY hash LIMIT $3", prefix, prefix+"g", limit)
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

// Files is the store for callers that need contents as files: scripts and programs.
// Contents that are stored in the database are copied to the folder on first use.
type Files struct {
	*Store
	folder *cas.Dir      // contents as files: all of them, or those used so far
	shared *cas.Database // nil if all contents are files
}

// FilesOptions say where contents are stored.
type FilesOptions struct {
	Folder     string
	InDatabase bool // contents are in the database, and the folder is a cache
	Options
}

// OpenFiles opens the store of a database and its folder.
func OpenFiles(ctx context.Context, database *db.DB, o FilesOptions) (*Files, error) {
	folder, err := cas.OpenDir(o.Folder, cas.DirOptions{})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "open the folder of contents").
			WithHint("choose a folder you may write to, with blobs or --data")
	}
	f := &Files{folder: folder}
	var blobs cas.Store = folder
	if o.InDatabase {
		if f.shared, err = cas.OpenDatabase(ctx, database, folder); err != nil {
			return nil, err
		}
		blobs = f.shared
	}
	f.Store, err = Open(ctx, database, blobs, o.Options)
	return f, err
}

// PutFile stores all of r.
func (f *Files) PutFile(ctx context.Context, r io.Reader, mime string) (cas.File, error) {
	stored, err := f.StoreContent(ctx, r, mime)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, stored)
}

// Result is what a script stores, as people find it.
type Result struct {
	MIME   string
	Name   string // may be empty
	Script string // the name of the script; "" if it has none
	Job    string // id of the job that the run is; "" if it is none
}

// PutResult stores all of r, which a script made, so that people find it. It is no artifact
// yet, and keeps what is known of it if it is one.
func (f *Files) PutResult(ctx context.Context, r io.Reader, about Result) (cas.File, error) {
	d := Details{MIME: about.MIME, Name: about.Name, Creator: about.Script, FirstTags: []string{ResultTag}}
	if about.Job != "" {
		d.FirstTags = append(d.FirstTags, JobTag+about.Job)
	}
	a, _, err := f.Put(ctx, r, d)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, Content{Hash: a.Hash, Size: a.Size, MIME: a.MIME})
}

// FindFile returns the content that a hash, a unique prefix of one, or an artifact's id
// names.
func (f *Files) FindFile(ctx context.Context, name string) (cas.File, error) {
	found, err := f.Find(ctx, name)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, found)
}

// ArtifactFile returns the content of an artifact, named by its id or hash.
func (f *Files) ArtifactFile(ctx context.Context, id string) (cas.File, error) {
	ref, err := f.Resolve(ctx, id)
	if err != nil {
		return cas.File{}, err
	}
	a, err := f.Get(ctx, ref)
	if err != nil {
		return cas.File{}, err
	}
	return f.file(ctx, Content{Hash: a.Hash, Size: a.Size, MIME: a.MIME})
}

// Folder is the folder of the files.
func (f *Files) Folder() string { return f.folder.Folder() }

// file returns the content with its file, which is fetched from the database if
// necessary.
func (f *Files) file(ctx context.Context, c Content) (cas.File, error) {
	if f.shared != nil {
		if err := f.shared.Fetch(ctx, c.Hash); err != nil {
			return cas.File{}, err
		}
	}
	return cas.File{Hash: c.Hash, Size: c.Size, MIME: c.MIME, Path: f.folder.Path(c.Hash)}, nil
}

// Storage returns how many bytes the contents of an organisation have, each counted once.
func (s *Store) Storage(ctx context.Context, org string) (bytes int64, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		bytes, _, err = storageOf(ctx, tx, org)
		return err
	})
	return bytes, err
}

// storageOf returns how many bytes an organisation has, and whether that is stored.
func storageOf(ctx context.Context, tx *db.Tx, org string) (bytes int64, stored bool, err error) {
	err = tx.QueryRow(ctx, "SELECT bytes FROM org_storage WHERE org = $1", org).Scan(&bytes)
	if errors.Is(err, sql.ErrNoRows) {
		bytes, err = countStorage(ctx, tx, org)
		return bytes, false, err
	}
	return bytes, err == nil, err
}

// countStorage counts what an organisation has.
func countStorage(ctx context.Context, tx *db.Tx, org string) (bytes int64, err error) {
	err = tx.QueryRow(ctx, "SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT hash, size FROM content_owners WHERE org = $1) AS owned", org).Scan(&bytes)
	return bytes, err
}

// addStorage adds to what an organisation has, before that is in content_owners.
func addStorage(ctx context.Context, tx *db.Tx, org string, bytes int64) error {
	had, stored, err := storageOf(ctx, tx, org)
	switch {
	case err != nil:
		return err
	case stored:
		_, err = tx.Exec(ctx, "UPDATE org_storage SET bytes = $2 WHERE org = $1", org, had+bytes)
	default:
		_, err = tx.Exec(ctx, "INSERT INTO org_storage (org, bytes) VALUES ($1, $2)", org, had+bytes)
	}
	return err
}

// counted reports whether somebody of an organisation has a content.
func counted(ctx context.Context, tx *db.Tx, org string, ref cas.Ref) (counted bool, err error) {
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM content_owners WHERE org = $1 AND hash = $2)", org, ref.String()).Scan(&counted)
	return counted, err
}

// disown takes a content from the owners that a condition selects, whose arguments begin
// with the hash. It returns how many they were.
func disown(ctx context.Context, tx *db.Tx, ref cas.Ref, size int64, where string, args ...any) (count int, err error) {
	orgs, err := db.All(ctx, tx, db.Column[string], "DELETE FROM content_owners WHERE hash = $1 AND "+where+" RETURNING org", append([]any{ref.String()}, args...)...)
	count = len(orgs)
	slices.Sort(orgs)
	for _, org := range slices.Compact(orgs) {
		if err != nil {
			return count, err
		}
		var others bool
		if others, err = counted(ctx, tx, org, ref); err == nil && !others {
			_, err = tx.Exec(ctx, "UPDATE org_storage SET bytes = bytes - $2 WHERE org = $1", org, size)
		}
	}
	return count, err
}

// limitOf returns how many bytes the contents of an organisation may have; zero is no limit.
func (s *Store) limitOf(org string) int64 {
	if s.quota == nil || org == "" {
		return 0
	}
	return s.quota(org)
}

// checkQuota refuses a content that is too much for an organisation.
func (s *Store) checkQuota(ctx context.Context, tx *db.Tx, org string, ref cas.Ref, size int64) error {
	limit := s.limitOf(org)
	if limit <= 0 {
		return nil
	}
	if counted, err := counted(ctx, tx, org, ref); err != nil || counted {
		return err
	}
	used, _, err := storageOf(ctx, tx, org)
	if err != nil || used+size <= limit {
		return err
	}
	return fault.New(fault.Limit, "the contents of the organisation %s may have %d bytes together: they have %d, and this one has %d", org, limit, used, size).
		WithHint("delete artifacts and contents that nobody needs, with DELETE /api/v1/library/ID or HASH, or ask an administrator to raise orgs.%s.quota.storage_mb", org).
		WithDetails(storageDetails{limit, used, size, org})
}

// storageDetails are the details of a refusal.
type storageDetails struct {
	Limit  int64  `json:"limit_bytes"`
	Used   int64  `json:"used_bytes"`
	Wanted int64  `json:"wanted_bytes"`
	Org    string `json:"org"`
}

// Release takes a content that is no artifact from the caller, or for those who administer it
// from everybody of the organisation: it counts for no quota any more, and they cannot read
// it. Collect removes the bytes if nobody else has it.
func (s *Store) Release(ctx context.Context, name string) (Content, error) {
	c, err := s.Find(ctx, name)
	if err != nil {
		return c, err
	}
	who, own := principal.Of(ctx), ownerOf(ctx)
	where, args := "owner = $2 AND person = $3 AND org = $4", []any{own.ID, own.Person, own.Org}
	switch {
	case who.Person != "":
	case who.Admin():
		where, args = "1 = 1", nil
	case who.Org != "" && who.May(principal.Org, who.Org):
		where, args = "org = $2", []any{who.Org}
	}
	id := rand.Text()
	return c, s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := disown(ctx, tx, c.Hash, c.Size, where, args...)
		if err == nil && n == 0 {
			err = fault.New(fault.Denied, "the content %s belongs to somebody else", c.Hash.Short()).WithHint("its owner and administrators of the organisation can delete it")
		}
		if err != nil {
			return err
		}
		return addClaim(ctx, tx, id, c.Hash, s.clock.Now().Add(inUse))
	})
}
