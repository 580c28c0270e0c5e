package artifact

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// restorable is how long a deleted artifact can be restored.
const restorable = 30 * 24 * time.Hour

// Deleted is published when an artifact is deleted or restored.
type Deleted struct {
	ID       string  `json:"artifact_id"`
	Hash     cas.Ref `json:"hash"`
	Restored bool    `json:"restored,omitempty"`
}

// EventType is "artifact.deleted".
func (Deleted) EventType() string { return "artifact.deleted" }

// EventKey is the artifact's hash.
func (d Deleted) EventKey() string { return d.Hash.String() }

// Delete removes the metadata of ref: it is not listed or found any more, and its content is
// no longer one of its owner, whose organisation's quota it does not count for. Restore
// brings it back within 30 days.
func (s *Store) Delete(ctx context.Context, ref cas.Ref) (a Artifact, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return a, err
	}
	if a, err = s.Get(ctx, ref); err == nil {
		err = s.mayDelete(ctx, w, &a)
	}
	if err != nil {
		return a, err
	}
	now := s.clock.Now()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if a, err = load(ctx, tx, w, ref); err != nil {
			return err
		}
		record, err := json.Marshal(a)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO artifacts_deleted (hash, owner, person, org, record, deleted_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (hash, owner, person, org) DO UPDATE SET record = excluded.record, deleted_at = excluded.deleted_at`,
			ref.String(), a.Owner.ID, a.Owner.Person, a.Owner.Org, string(record), now.UnixMicro())
		if err == nil {
			_, err = disown(ctx, tx, ref, a.Size, "owner = $2 AND person = $3 AND org = $4", a.Owner.ID, a.Owner.Person, a.Owner.Org)
		}
		if err == nil {
			err = s.forgetWords(ctx, tx, a.number)
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"artifact_tags", "artifact_annotations", "artifacts"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE number = $1", a.number); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.events.PublishTo(a.Owner, []string{w.who.ID}, Deleted{ID: ID(ref), Hash: ref})
	}
	return a, err
}

// mayDelete is mayChange, and for the artifacts of nobody only administrators may.
func (s *Store) mayDelete(ctx context.Context, w audience, a *Artifact) error {
	if a.Owner == (principal.Owner{}) && !w.who.Admin() {
		return fault.New(fault.Denied, "the artifact %s is everybody's", a.Hash.Short()).WithHint("administrators can delete it")
	}
	return s.mayChange(ctx, w, a)
}

// Restore brings back a deleted artifact as it was.
func (s *Store) Restore(ctx context.Context, ref cas.Ref) (a Artifact, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return a, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		was, err := s.takeDeleted(ctx, tx, w, ref)
		if err != nil {
			return err
		}
		owner := audience{who: w.who, own: was.Owner, shared: w.shared}
		details := Details{MIME: was.MIME, Tags: was.Tags, Creator: was.Creator, Name: was.Name, Description: was.Description}
		if _, err := s.record(ctx, tx, owner, ref, was.Size, details); err != nil {
			return err
		}
		number, err := numberOf(ctx, tx, ref, was.Owner)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE artifacts SET parent = $2, created_at = $3 WHERE number = $1`, number, written(was.Parent), was.CreatedAt.UnixMicro())
		for i, n := range was.Annotations {
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO artifact_annotations (number, place, message, vibe, source, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
				number, i+1, n.Message, n.Vibe, n.Source, n.Time.UnixMicro())
		}
		if err != nil {
			return err
		}
		if a, err = load(ctx, tx, owner, ref); err != nil {
			return err
		}
		return s.words.put(ctx, tx, &a)
	})
	if err == nil {
		s.events.PublishTo(a.Owner, []string{w.who.ID}, Deleted{ID: ID(ref), Hash: ref, Restored: true})
	}
	return a, err
}

// takeDeleted removes the record of a deleted artifact, gives its content back to its owner,
// and returns it. Content that was stored again meanwhile is an artifact of its own.
func (s *Store) takeDeleted(ctx context.Context, tx *db.Tx, w audience, ref cas.Ref) (was Artifact, err error) {
	var record string
	query, args := w.rowsOf("artifacts_deleted", "record", ref)
	err = tx.QueryRow(ctx, query+", deleted_at DESC LIMIT 1", args...).Scan(&record)
	if err == nil {
		err = json.Unmarshal([]byte(record), &was)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return was, err
	}
	owner := was.Owner
	if record == "" {
		owner = w.own
	}
	if _, err := numberOf(ctx, tx, ref, owner); err == nil {
		return was, fault.New(fault.Conflict, "the artifact %s exists", ref.Short()).WithHint("it was stored again after it was deleted")
	} else if !errors.Is(err, sql.ErrNoRows) {
		return was, err
	}
	if record == "" {
		return was, fault.New(fault.NotFound, "no deleted artifact %s", ref.Short()).WithHint("deleted artifacts can be restored for 30 days")
	}
	if err := s.mayDelete(ctx, w, &was); err != nil {
		return was, err
	}
	if err := s.checkQuota(ctx, tx, owner.Org, ref, was.Size); err != nil {
		return was, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM artifacts_deleted WHERE hash = $1 AND owner = $2 AND person = $3 AND org = $4`, ref.String(), owner.ID, owner.Person, owner.Org)
	if err != nil {
		return was, err
	}
	if err := s.own(ctx, tx, owner, Content{Hash: ref, Size: was.Size, MIME: was.MIME}); err != nil {
		return was, err
	}
	return was, s.Use(ctx, tx, ref)
}

// Erasing erases what tables of Personal do not: the words of a person's artifacts in the
// index, and the bytes of contents that only this person had.
type Erasing struct{ *Store }

// Export writes nothing: the rows say what is stored.
func (e Erasing) Export(context.Context, personal.Person, func(kind string, value any) error) error {
	return nil
}

// Erase deletes the words, takes the person's contents from them, and removes what nobody
// needs any more. The bytes of artifacts go when it is called again, after their rows.
func (e Erasing) Erase(ctx context.Context, p personal.Person) error {
	names, number := e.words.tables()
	tables := []personal.Table{
		{Name: "org_storage", Where: "org IN (SELECT org FROM content_owners WHERE " + ofPerson + ")"}, // it is counted again
		{Name: "content_owners", Where: ofPerson},
	}
	for _, name := range names {
		tables = append(tables, personal.Table{Name: name, Where: number + " IN (SELECT number FROM artifacts WHERE " + ofPerson + orCreator + ")"})
	}
	err := e.db.Write(ctx, func(tx *db.Tx) error {
		for _, table := range tables {
			if _, err := table.Erase(ctx, tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = e.words.purge(ctx, e.db)
	}
	if err == nil {
		_, err = e.Collect(ctx)
	}
	return err
}
