package artifact

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

const columns = "hash, owner, person, org, number, size, mime, creator, parent, name, description, created_at"

// scanRow reads a row of columns, which does not include tags and annotations.
func scanRow(row db.Scanner) (Artifact, error) {
	var a Artifact
	var hash, parent string
	var created int64
	err := row.Scan(&hash, &a.Owner.ID, &a.Owner.Person, &a.Owner.Org, &a.number, &a.Size, &a.MIME, &a.Creator, &parent, &a.Name, &a.Description, &created)
	if err != nil {
		return Artifact{}, err
	}
	a.CreatedAt = time.UnixMicro(created)
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

func scanText(row db.Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

func scanNumber(row db.Scanner) (number int64, err error) {
	err = row.Scan(&number)
	return number, err
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
	a.Tags, err = db.All(ctx, tx, scanText, "SELECT tag FROM artifact_tags WHERE number = $1 ORDER BY tag", a.number)
	if err != nil {
		return err
	}
	a.Annotations, err = db.All(ctx, tx, scanAnnotation,
		"SELECT message, vibe, source, created_at FROM artifact_annotations WHERE number = $1 ORDER BY place", a.number)
	return err
}

func scanAnnotation(row db.Scanner) (Annotation, error) {
	var n Annotation
	var created int64
	err := row.Scan(&n.Message, &n.Vibe, &n.Source, &created)
	n.Time = time.UnixMicro(created)
	return n, err
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
