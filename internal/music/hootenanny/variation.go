package hootenanny

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// maxMetadata is the largest metadata of an artifact, in bytes.
const maxMetadata = 64 << 10

// detailsOwner returns whose variations and metadata an artifact has. The local owner also has
// those of nobody, as with artifacts.
func detailsOwner(o principal.Owner) principal.Owner {
	if o == principal.Local().Owner() {
		return principal.Owner{}
	}
	return o
}

// storeDetails stores what the store of artifacts does not: an artifact's set of variations and its
// metadata.
func (h *Backend) storeDetails(ctx context.Context, a *artifact.Artifact, m newArtifact) error {
	if len(m.metadata) > maxMetadata {
		return invalid("the metadata has %d bytes", len(m.metadata)).WithHint("at most %d are allowed; store the rest as a content", maxMetadata)
	}
	if m.Set == "" && len(m.metadata) == 0 {
		return nil
	}
	of := detailsOwner(a.Owner)
	return h.db.Write(ctx, func(tx *db.Tx) error {
		if len(m.metadata) > 0 {
			_, err := tx.Exec(ctx, `INSERT INTO hoot_metadata (hash, owner, person, org, metadata) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (hash, owner, person, org) DO UPDATE SET metadata = excluded.metadata`, a.Hash.String(), of.ID, of.Person, of.Org, string(m.metadata))
			if err != nil {
				return err
			}
		}
		if m.Set == "" {
			return nil
		}
		return join(ctx, tx, a.Hash, of, m.Lineage)
	})
}

// join adds a content to a set of its owner: at the requested index, or the next free one. A
// content that is already in the set keeps its index.
func join(ctx context.Context, tx *db.Tx, ref cas.Ref, of principal.Owner, in Lineage) error {
	const ofSet = " FROM hoot_variations WHERE owner = $1 AND person = $2 AND org = $3 AND set_id = $4"
	set := []any{of.ID, of.Person, of.Org, in.Set}
	places, err := db.All(ctx, tx, db.Column[int64], "SELECT place"+ofSet+" AND hash = $5", append(set, ref.String())...)
	if err != nil || len(places) > 0 {
		return err
	}
	const insert = "INSERT INTO hoot_variations (owner, person, org, set_id, place, hash) "
	if in.Index > 0 {
		_, err = tx.Exec(ctx, insert+"VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", append(set, in.Index, ref.String())...)
		if err != nil {
			return err
		}
		var holder string
		if err := tx.QueryRow(ctx, "SELECT hash"+ofSet+" AND place = $5", append(set, in.Index)...).Scan(&holder); err != nil {
			return err
		}
		if holder != ref.String() {
			return fault.New(fault.Conflict, "variation %d of %s is another artifact", in.Index, in.Set).
				WithHint("omit variation_index to get the next free one")
		}
		return nil
	}
	_, err = tx.Exec(ctx, insert+"SELECT $1, $2, $3, $4, COALESCE(MAX(place), 0) + 1, $5"+ofSet, append(set, ref.String())...)
	return err
}

// detailsKey is whose details of which content are meant.
type detailsKey struct {
	hash  string
	owner principal.Owner
}

// addDetails adds what storeDetails stored to artifacts.
func (h *Backend) addDetails(ctx context.Context, list []Artifact) error {
	if len(list) == 0 {
		return nil
	}
	byKey := map[detailsKey][]*Artifact{}
	for i := range list {
		key := detailsKey{list[i].Hash.String(), detailsOwner(list[i].Owner)}
		byKey[key] = append(byKey[key], &list[i])
	}
	in, args := placeholders(hashes(list))
	return h.db.Read(ctx, func(tx *db.Tx) error {
		_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
			var key detailsKey
			var set string
			var place int
			err = row.Scan(&key.hash, &key.owner.ID, &key.owner.Person, &key.owner.Org, &set, &place)
			for _, a := range byKey[key] {
				a.set, a.index = set, place
			}
			return none, err
		}, "SELECT hash, owner, person, org, set_id, place FROM hoot_variations WHERE hash IN ("+in+") ORDER BY set_id", args...)
		if err != nil {
			return err
		}
		_, err = db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
			var key detailsKey
			var metadata string
			err = row.Scan(&key.hash, &key.owner.ID, &key.owner.Person, &key.owner.Org, &metadata)
			for _, a := range byKey[key] {
				a.metadata = json.RawMessage(metadata)
			}
			return none, err
		}, "SELECT hash, owner, person, org, metadata FROM hoot_metadata WHERE hash IN ("+in+")", args...)
		return err
	})
}

// variations returns the artifacts of the caller's set, and of nobody's of that name, in
// order.
func (h *Backend) variations(ctx context.Context, set string, limit int) (list []artifact.Artifact, err error) {
	var found []string
	of := detailsOwner(principal.OwnerOf(ctx))
	found, err = db.Find(ctx, h.db, db.Column[string], `SELECT hash FROM hoot_variations
			WHERE set_id = $1 AND (owner = $2 AND person = $3 AND org = $4 OR owner = '') ORDER BY place, owner LIMIT $5`,
		set, of.ID, of.Person, of.Org, limit)
	for _, hash := range found {
		if err != nil {
			return nil, err
		}
		var a artifact.Artifact
		if a, err = h.stored(ctx, hash); fault.CodeOf(err) == fault.NotFound {
			err = nil // it was deleted, or is the local owner's
			continue
		}
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
