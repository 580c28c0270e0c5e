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

// Delete removes the metadata of ref: it is not listed or found any more. Restore brings it
// back within 30 days. The content stays, because others may use it by its hash.
func (s *Store) Delete(ctx context.Context, ref cas.Ref) (a Artifact, err error) {
	now := s.clock.Now()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if a, err = load(ctx, tx, ref); err != nil {
			return err
		}
		record, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM artifacts_deleted WHERE deleted_at < $1`, now.Add(-restorable).UnixMicro()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO artifacts_deleted (hash, record, deleted_at) VALUES ($1, $2, $3)
			ON CONFLICT (hash) DO UPDATE SET record = excluded.record, deleted_at = excluded.deleted_at`, ref.String(), string(record), now.UnixMicro())
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
		s.events.PublishFor(principal.OwnerOf(ctx), Deleted{ID: ID(ref), Hash: ref})
	}
	return a, err
}

// Restore brings back a deleted artifact as it was.
func (s *Store) Restore(ctx context.Context, ref cas.Ref) (a Artifact, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		was, err := takeDeleted(ctx, tx, ref)
		if err != nil {
			return err
		}
		details := Details{MIME: was.MIME, Tags: was.Tags, Creator: was.Creator, Name: was.Name, Description: was.Description}
		if _, err := s.record(ctx, tx, ref, was.Size, details); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE artifacts SET parent = $2, created_at = $3 WHERE hash = $1`, ref.String(), written(was.Parent), was.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		number, err := numberOf(ctx, tx, ref)
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
		if a, err = load(ctx, tx, ref); err != nil {
			return err
		}
		return s.words.put(ctx, tx, &a)
	})
	if err == nil {
		s.events.PublishFor(principal.OwnerOf(ctx), Deleted{ID: ID(ref), Hash: ref, Restored: true})
	}
	return a, err
}

// takeDeleted removes the record of a deleted artifact and returns it. Content that was
// stored again meanwhile is an artifact of its own.
func takeDeleted(ctx context.Context, tx *db.Tx, ref cas.Ref) (was Artifact, err error) {
	if _, err := numberOf(ctx, tx, ref); err == nil {
		return was, fault.New(fault.Conflict, "the artifact %s exists", ref.Short()).WithHint("it was stored again after it was deleted")
	} else if !errors.Is(err, sql.ErrNoRows) {
		return was, err
	}
	var record string
	err = tx.QueryRow(ctx, `DELETE FROM artifacts_deleted WHERE hash = $1 RETURNING record`, ref.String()).Scan(&record)
	if errors.Is(err, sql.ErrNoRows) {
		return was, fault.New(fault.NotFound, "no deleted artifact %s", ref.Short()).WithHint("deleted artifacts can be restored for 30 days")
	}
	if err != nil {
		return was, err
	}
	return was, json.Unmarshal([]byte(record), &was)
}
