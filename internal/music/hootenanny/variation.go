package hootenanny

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// maxMetadata is the largest metadata of an artifact, in bytes.
const maxMetadata = 64 << 10

// storeDetails stores what the Store does not: an artifact's set of variations and its
// metadata.
func (h *Backend) storeDetails(ctx context.Context, ref cas.Ref, m newArtifact) error {
	if len(m.metadata) > maxMetadata {
		return invalid("the metadata has %d bytes", len(m.metadata)).WithHint("at most %d are allowed; store the rest as a content", maxMetadata)
	}
	if m.Set == "" && len(m.metadata) == 0 {
		return nil
	}
	return h.db.Write(ctx, func(tx *db.Tx) error {
		if len(m.metadata) > 0 {
			_, err := tx.Exec(ctx, `INSERT INTO hoot_metadata (hash, metadata) VALUES ($1, $2)
				ON CONFLICT (hash) DO UPDATE SET metadata = excluded.metadata`, ref.String(), string(m.metadata))
			if err != nil {
				return err
			}
		}
		if m.Set == "" {
			return nil
		}
		return join(ctx, tx, ref, m.Set, m.Index)
	})
}

// join adds a content to a set: at the requested index, or the next free one. A
// content that is already in the set keeps its index.
func join(ctx context.Context, tx *db.Tx, ref cas.Ref, set string, place int) error {
	places, err := db.All(ctx, tx, scan[int64],
		"SELECT place FROM hoot_variations WHERE set_id = $1 AND hash = $2", set, ref.String())
	if err != nil || len(places) > 0 {
		return err
	}
	if place > 0 {
		_, err = tx.Exec(ctx, "INSERT INTO hoot_variations (set_id, place, hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", set, place, ref.String())
		if err != nil {
			return err
		}
		var holder string
		if err := tx.QueryRow(ctx, "SELECT hash FROM hoot_variations WHERE set_id = $1 AND place = $2", set, place).Scan(&holder); err != nil {
			return err
		}
		if holder != ref.String() {
			return fault.New(fault.Conflict, "variation %d of %s is another artifact", place, set).
				WithHint("omit variation_index to get the next free one")
		}
		return nil
	}
	_, err = tx.Exec(ctx, `INSERT INTO hoot_variations (set_id, place, hash)
		SELECT $1, COALESCE(MAX(place), 0) + 1, $2 FROM hoot_variations WHERE set_id = $1`, set, ref.String())
	return err
}

// addDetails adds what storeDetails stored to artifacts.
func (h *Backend) addDetails(ctx context.Context, list []Artifact) error {
	if len(list) == 0 {
		return nil
	}
	byHash := map[string][]*Artifact{}
	for i := range list {
		hash := list[i].Hash.String()
		byHash[hash] = append(byHash[hash], &list[i])
	}
	in, args := placeholders(hashes(list))
	return h.db.Read(ctx, func(tx *db.Tx) error {
		_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
			var hash, set string
			var place int
			err = row.Scan(&hash, &set, &place)
			for _, a := range byHash[hash] {
				a.set, a.index = set, place
			}
			return none, err
		}, "SELECT hash, set_id, place FROM hoot_variations WHERE hash IN ("+in+") ORDER BY set_id", args...)
		if err != nil {
			return err
		}
		_, err = db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
			var hash, metadata string
			err = row.Scan(&hash, &metadata)
			for _, a := range byHash[hash] {
				a.metadata = json.RawMessage(metadata)
			}
			return none, err
		}, "SELECT hash, metadata FROM hoot_metadata WHERE hash IN ("+in+")", args...)
		return err
	})
}

// variations returns the artifacts of a set in order.
func (h *Backend) variations(ctx context.Context, set string, limit int) (list []Artifact, err error) {
	var found []string
	err = h.db.Read(ctx, func(tx *db.Tx) error {
		found, err = db.All(ctx, tx, scan[string],
			"SELECT hash FROM hoot_variations WHERE set_id = $1 ORDER BY place LIMIT $2", set, limit)
		return err
	})
	for _, hash := range found {
		if err != nil {
			return nil, err
		}
		var a Artifact
		a, err = h.store.Get(ctx, hash)
		list = append(list, a)
	}
	return list, err
}

// placeholders returns "$1, $2 …" for values, and the values.
func placeholders(values []string) (string, []any) {
	marks, args := make([]string, len(values)), make([]any, len(values))
	for i, v := range values {
		marks[i], args[i] = fmt.Sprintf("$%d", i+1), v
	}
	return strings.Join(marks, ", "), args
}

// scan reads a row of one column.
func scan[T any](row db.Scanner) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
