package hootenanny

import (
	"cmp"
	"context"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Region is a part of the timeline with a behaviour.
type Region struct {
	ID        string  `json:"region_id"`
	Position  float64 `json:"position" jsonschema:"where it begins, in beats"`
	Duration  float64 `json:"duration" jsonschema:"how long it is, in beats"`
	Behavior  string  `json:"behavior_type"`
	ContentID string  `json:"content_id,omitempty"`
	Name      string  `json:"name,omitempty"`
}

// Marker is a position of the timeline that is published when playback reaches it.
type Marker struct {
	ID       string  `json:"marker_id"`
	Position float64 `json:"position" jsonschema:"in beats"`
	Type     string  `json:"marker_type"`
	Metadata object  `json:"metadata,omitempty"`
}

// Limits of a timeline.
const (
	maxRegions = 10_000
	maxMarkers = 10_000
	lastBeat   = 1e9
)

func (g *garden) load(ctx context.Context) error {
	return g.db.Read(ctx, func(tx *db.Tx) (err error) {
		g.regions, err = db.All(ctx, tx, func(row db.Scanner) (r Region, err error) {
			err = row.Scan(&r.ID, &r.Position, &r.Duration, &r.Behavior, &r.ContentID, &r.Name)
			return r, err
		}, "SELECT id, position, duration, behavior, content_id, name FROM hoot_regions ORDER BY position, id")
		if err != nil {
			return err
		}
		g.markers, err = db.All(ctx, tx, func(row db.Scanner) (m Marker, err error) {
			var metadata string
			err = row.Scan(&m.ID, &m.Position, &m.Type, &metadata)
			if metadata != "" {
				m.Metadata = object(metadata)
			}
			return m, err
		}, "SELECT id, position, kind, metadata FROM hoot_markers ORDER BY position, id")
		return err
	})
}

// save writes to the database and, if that succeeds, changes the timeline.
func (g *garden) save(ctx context.Context, write func(tx *db.Tx) error, change func()) error {
	if err := g.db.Write(ctx, write); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publishDue()
	change()
	slices.SortStableFunc(g.regions, func(a, b Region) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(g.markers, func(a, b Marker) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	g.arm()
	return nil
}

func (g *garden) addRegion(ctx context.Context, r Region) error {
	if g.state().RegionCount >= maxRegions {
		return fault.New(fault.Limit, "the timeline has %d regions", maxRegions).WithHint("delete some, or garden_clear_regions")
	}
	return g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO hoot_regions (id, position, duration, behavior, content_id, name) VALUES ($1, $2, $3, $4, $5, $6)",
			r.ID, r.Position, r.Duration, r.Behavior, r.ContentID, r.Name)
		return err
	}, func() { g.regions = append(g.regions, r) })
}

func (g *garden) deleteRegion(ctx context.Context, id string) error {
	if _, err := g.region(id); err != nil {
		return err
	}
	return g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM hoot_regions WHERE id = $1", id)
		return err
	}, func() { g.regions = slices.DeleteFunc(g.regions, func(r Region) bool { return r.ID == id }) })
}

func (g *garden) moveRegion(ctx context.Context, id string, position float64) (Region, error) {
	moved, err := g.region(id)
	if err != nil {
		return Region{}, err
	}
	moved.Position = position
	err = g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE hoot_regions SET position = $2 WHERE id = $1", id, position)
		return err
	}, func() {
		for i := range g.regions {
			if g.regions[i].ID == id {
				g.regions[i].Position = position
			}
		}
	})
	return moved, err
}

func (g *garden) clearRegions(ctx context.Context) (count int, err error) {
	err = g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM hoot_regions")
		return err
	}, func() { count, g.regions = len(g.regions), nil })
	return count, err
}

func (g *garden) addMarker(ctx context.Context, m Marker) error {
	if g.state().MarkerCount >= maxMarkers {
		return fault.New(fault.Limit, "the timeline has %d markers", maxMarkers).WithHint("delete some with garden_delete_marker")
	}
	return g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO hoot_markers (id, position, kind, metadata) VALUES ($1, $2, $3, $4)", m.ID, m.Position, m.Type, string(m.Metadata))
		return err
	}, func() { g.markers = append(g.markers, m) })
}

func (g *garden) deleteMarker(ctx context.Context, id string) error {
	g.mu.Lock()
	known := slices.ContainsFunc(g.markers, func(m Marker) bool { return m.ID == id })
	g.mu.Unlock()
	if !known {
		return fault.New(fault.NotFound, "there is no marker %s", id).WithHint("garden_query lists them")
	}
	return g.save(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM hoot_markers WHERE id = $1", id)
		return err
	}, func() { g.markers = slices.DeleteFunc(g.markers, func(m Marker) bool { return m.ID == id }) })
}

func (g *garden) region(id string) (Region, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.regions, func(r Region) bool { return r.ID == id }); i >= 0 {
		return g.regions[i], nil
	}
	return Region{}, fault.New(fault.NotFound, "there is no region %s", id).WithHint("garden_get_regions lists them")
}

// between returns the regions and markers that overlap a part of the timeline.
func (g *garden) between(start, end float64) (regions []Region, markers []Marker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	regions, markers = []Region{}, []Marker{}
	for _, r := range g.regions {
		if r.Position < end && r.Position+r.Duration > start {
			regions = append(regions, r)
		}
	}
	for _, m := range g.markers {
		if m.Position >= start && m.Position < end {
			markers = append(markers, m)
		}
	}
	return regions, markers
}
