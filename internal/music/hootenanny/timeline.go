package hootenanny

import (
	"context"

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
	Audio     string  `json:"audio_hash,omitempty" jsonschema:"the sound of its content, if there is one; only of garden_query"`
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

// loadTimeline reads the regions and markers of a project.
func (p *project) loadTimeline(ctx context.Context, tx *db.Tx) (err error) {
	p.regions, err = db.All(ctx, tx, func(row db.Scanner) (r Region, err error) {
		err = row.Scan(&r.ID, &r.Position, &r.Duration, &r.Behavior, &r.ContentID, &r.Name)
		return r, err
	}, "SELECT id, position, duration, behavior, content_id, name FROM hoot_regions WHERE project = $1 ORDER BY position, id", p.name)
	if err != nil {
		return err
	}
	p.markers, err = db.All(ctx, tx, func(row db.Scanner) (m Marker, err error) {
		var metadata string
		err = row.Scan(&m.ID, &m.Position, &m.Type, &metadata)
		if metadata != "" {
			m.Metadata = object(metadata)
		}
		return m, err
	}, "SELECT id, position, kind, metadata FROM hoot_markers WHERE project = $1 ORDER BY position, id", p.name)
	return err
}

// load reads a project with its timeline.
func (g *gardens) load(ctx context.Context, name string) (p *project, err error) {
	err = g.db.Read(ctx, func(tx *db.Tx) error {
		if p, err = loadTransport(ctx, tx, name); err != nil {
			return err
		}
		if err := p.known(ctx, tx); err != nil {
			return err
		}
		return p.loadTimeline(ctx, tx)
	})
	return p, err
}

func (g *gardens) addRegion(ctx context.Context, name string, r Region) error {
	_, err := g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		if err := checkRoom(ctx, tx, "SELECT COUNT(*) FROM hoot_regions WHERE project = $1", name, maxRegions, "regions"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO hoot_regions (id, project, position, duration, behavior, content_id, name) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			r.ID, name, r.Position, r.Duration, r.Behavior, r.ContentID, r.Name)
		return err
	})
	return err
}

func (g *gardens) deleteRegion(ctx context.Context, name, id string) error {
	_, err := g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		done, err := tx.Exec(ctx, "DELETE FROM hoot_regions WHERE id = $1 AND project = $2", id, name)
		return changedOne(done, err, "region "+id, name)
	})
	return err
}

func (g *gardens) moveRegion(ctx context.Context, name, id string, position float64) (moved Region, err error) {
	p, err := g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		done, err := tx.Exec(ctx, "UPDATE hoot_regions SET position = $3 WHERE id = $1 AND project = $2", id, name, position)
		return changedOne(done, err, "region "+id, name)
	})
	if err != nil {
		return Region{}, err
	}
	for _, r := range p.regions {
		if r.ID == id {
			moved = r
		}
	}
	return moved, nil
}

func (g *gardens) clearRegions(ctx context.Context, name string) (count int, err error) {
	_, err = g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		n, err := tx.Exec(ctx, "DELETE FROM hoot_regions WHERE project = $1", name)
		count = int(n)
		return err
	})
	return count, err
}

func (g *gardens) addMarker(ctx context.Context, name string, m Marker) error {
	_, err := g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		if err := checkRoom(ctx, tx, "SELECT COUNT(*) FROM hoot_markers WHERE project = $1", name, maxMarkers, "markers"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO hoot_markers (id, project, position, kind, metadata) VALUES ($1, $2, $3, $4, $5)", m.ID, name, m.Position, m.Type, string(m.Metadata))
		return err
	})
	return err
}

func (g *gardens) deleteMarker(ctx context.Context, name, id string) error {
	_, err := g.change(ctx, name, timelineChange, func(tx *db.Tx, _ *project) error {
		done, err := tx.Exec(ctx, "DELETE FROM hoot_markers WHERE id = $1 AND project = $2", id, name)
		return changedOne(done, err, "marker "+id, name)
	})
	return err
}

// deleteProject deletes a project with its timeline.
func (g *gardens) deleteProject(ctx context.Context, name string) error {
	err := g.db.Write(ctx, func(tx *db.Tx) error {
		p, err := loadTransport(ctx, tx, name)
		if err != nil {
			return err
		}
		if err := p.known(ctx, tx); err != nil {
			return err
		}
		for _, statement := range []string{
			"DELETE FROM hoot_regions WHERE project = $1", "DELETE FROM hoot_markers WHERE project = $1",
			"DELETE FROM hoot_project_sessions WHERE project = $1", "DELETE FROM hoot_projects WHERE name = $1",
		} {
			if _, err := tx.Exec(ctx, statement, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		g.forget(name)
	}
	return err
}

// checkRoom returns an error if a query counts as many rows as a timeline may have.
func checkRoom(ctx context.Context, tx *db.Tx, query, name string, most int, what string) error {
	var count int
	if err := tx.QueryRow(ctx, query, name).Scan(&count); err != nil {
		return err
	}
	if count >= most {
		return fault.New(fault.Limit, "the timeline has %d %s", count, what).WithHint("delete some; garden_clear_regions deletes all regions")
	}
	return nil
}

// changedOne returns an error if no row was changed.
func changedOne(n int64, err error, what, project string) error {
	if err != nil || n > 0 {
		return err
	}
	return fault.New(fault.NotFound, "there is no %s in the project %s", what, project).WithHint("garden_query lists what there is")
}

// between returns the regions and markers that overlap a part of the timeline.
func (p *project) between(start, end float64) (regions []Region, markers []Marker) {
	regions, markers = []Region{}, []Marker{}
	for _, r := range p.regions {
		if r.Position < end && r.Position+r.Duration > start {
			regions = append(regions, r)
		}
	}
	for _, m := range p.markers {
		if m.Position >= start && m.Position < end {
			markers = append(markers, m)
		}
	}
	return regions, markers
}
