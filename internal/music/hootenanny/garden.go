package hootenanny

import (
	"context"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) gardenTools() []toolset.Tool {
	g := h.garden
	transport := func(name string, do func() GardenState) toolset.Tool {
		return define(name, changes(), func(context.Context, tool.Call, noArguments) (GardenState, error) { return do(), nil })
	}
	return []toolset.Tool{
		define("garden_status", reads(), func(context.Context, tool.Call, noArguments) (GardenState, error) { return g.state(), nil }),
		transport("garden_play", g.play),
		transport("garden_pause", g.pause),
		transport("garden_stop", g.halt),
		transport("garden_emergency_pause", g.pause),
		define("garden_seek", changes(), h.gardenSeek),
		define("garden_set_tempo", changes(), h.gardenSetTempo),
		define("garden_create_region", adds(), h.gardenCreateRegion),
		define("garden_delete_region", changes(), h.gardenDeleteRegion),
		define("garden_move_region", changes(), h.gardenMoveRegion),
		define("garden_get_regions", reads(), h.gardenGetRegions),
		define("garden_clear_regions", changes(), h.gardenClearRegions),
		define("garden_add_marker", adds(), h.gardenAddMarker),
		define("garden_delete_marker", changes(), h.gardenDeleteMarker),
		define("garden_query", reads(), h.gardenQuery),
	}
}

// Text is one line.
func (s GardenState) Text() string {
	return fmt.Sprintf("%s at beat %.3f, %g bpm, %d regions", s.State, s.Position, s.Tempo, s.RegionCount)
}

type seekIn struct {
	Beat float64 `json:"beat" jsonschema:"the new position, in beats" min:"0" max:"1000000000"`
}

func (h *Backend) gardenSeek(_ context.Context, _ tool.Call, in seekIn) (GardenState, error) {
	if !(in.Beat >= 0 && in.Beat <= lastBeat) {
		return GardenState{}, invalid("invalid beat %g", in.Beat)
	}
	return h.garden.seek(in.Beat), nil
}

type tempoIn struct {
	BPM float64 `json:"bpm" jsonschema:"beats per minute" min:"1" max:"999"`
}

func (h *Backend) gardenSetTempo(_ context.Context, _ tool.Call, in tempoIn) (GardenState, error) {
	if !(in.BPM >= 1 && in.BPM <= 999) {
		return GardenState{}, invalid("invalid tempo %g", in.BPM).WithHint("use 1 to 999 beats per minute")
	}
	return h.garden.setTempo(in.BPM), nil
}

type regionIn struct {
	Position  float64 `json:"position" jsonschema:"where it begins, in beats" min:"0" max:"1000000000"`
	Duration  float64 `json:"duration" jsonschema:"how long it is, in beats" min:"0.001" max:"1000000000"`
	Behavior  string  `json:"behavior_type" jsonschema:"what happens there" enum:"play_content,latent,apply_processing,emit_trigger"`
	ContentID string  `json:"content_id,omitempty" jsonschema:"the artifact or content to play, if any" max:"128"`
	Name      string  `json:"name,omitempty" jsonschema:"a name for people" max:"256"`
}

// Text is one line.
func (r Region) Text() string {
	return fmt.Sprintf("%s: %s from beat %g for %g beats %s", r.ID, r.Behavior, r.Position, r.Duration, strings.TrimSpace(r.ContentID+" "+r.Name))
}

func (h *Backend) gardenCreateRegion(ctx context.Context, _ tool.Call, in regionIn) (Region, error) {
	if !(in.Position >= 0 && in.Duration > 0) {
		return Region{}, invalid("a region must begin at beat 0 or later and have a positive length")
	}
	if in.Behavior == "play_content" {
		if in.ContentID == "" {
			return Region{}, invalid("a region that plays content needs content_id").WithHint("give an artifact's id or a content's hash")
		}
		if _, err := h.store.Find(ctx, in.ContentID); err != nil {
			return Region{}, err
		}
	}
	r := Region{newID("region"), in.Position, in.Duration, in.Behavior, in.ContentID, in.Name}
	return r, h.garden.addRegion(ctx, r)
}

type regionIDIn struct {
	ID string `json:"region_id" jsonschema:"id of a region" min:"1" max:"64"`
}

// Deleted is the number of deleted items.
type Deleted struct {
	Count int      `json:"deleted_count"`
	IDs   []string `json:"deleted,omitempty"`
}

// Text is one line.
func (d Deleted) Text() string { return fmt.Sprintf("Deleted %d", d.Count) }

func (h *Backend) gardenDeleteRegion(ctx context.Context, _ tool.Call, in regionIDIn) (Deleted, error) {
	if err := h.garden.deleteRegion(ctx, in.ID); err != nil {
		return Deleted{}, err
	}
	return Deleted{1, []string{in.ID}}, nil
}

type moveRegionIn struct {
	ID       string  `json:"region_id" jsonschema:"id of a region" min:"1" max:"64"`
	Position float64 `json:"new_position" jsonschema:"its new start, in beats" min:"0" max:"1000000000"`
}

func (h *Backend) gardenMoveRegion(ctx context.Context, _ tool.Call, in moveRegionIn) (Region, error) {
	return h.garden.moveRegion(ctx, in.ID, in.Position)
}

type stretchIn struct {
	Start float64  `json:"start,omitempty" jsonschema:"from this beat on; default 0" min:"0"`
	End   *float64 `json:"end,omitempty" jsonschema:"to this beat; default to the end" min:"0"`
}

func (s stretchIn) end() float64 {
	if s.End != nil {
		return *s.End
	}
	return 2 * lastBeat
}

// Regions is a list of regions.
type Regions struct {
	Regions []Region `json:"regions"`
	Count   int      `json:"count"`
}

// Text has one line per item.
func (r Regions) Text() string {
	lines := []string{fmt.Sprintf("%d regions", r.Count)}
	for _, one := range r.Regions {
		lines = append(lines, one.Text())
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) gardenGetRegions(_ context.Context, _ tool.Call, in stretchIn) (Regions, error) {
	regions, _ := h.garden.between(in.Start, in.end())
	return Regions{regions, len(regions)}, nil
}

func (h *Backend) gardenClearRegions(ctx context.Context, _ tool.Call, _ noArguments) (Deleted, error) {
	count, err := h.garden.clearRegions(ctx)
	return Deleted{Count: count}, err
}

type markerIn struct {
	Position float64        `json:"position" jsonschema:"where, in beats" min:"0" max:"1000000000"`
	Type     string         `json:"marker_type,omitempty" jsonschema:"what it marks, such as section_change or cue_point; default cue_point" max:"128"`
	Metadata toolset.Object `json:"metadata,omitempty" jsonschema:"data to publish with it"`
}

// Text is one line.
func (m Marker) Text() string { return fmt.Sprintf("%s: %s at beat %g", m.ID, m.Type, m.Position) }

func (h *Backend) gardenAddMarker(ctx context.Context, _ tool.Call, in markerIn) (Marker, error) {
	if in.Type == "" {
		in.Type = "cue_point"
	}
	if len(in.Metadata) > maxMetadata {
		return Marker{}, invalid("the metadata has %d bytes", len(in.Metadata)).WithHint("at most %d are allowed", maxMetadata)
	}
	m := Marker{newID("marker"), in.Position, in.Type, in.Metadata}
	return m, h.garden.addMarker(ctx, m)
}

type markerIDIn struct {
	ID string `json:"marker_id" jsonschema:"id of a marker" min:"1" max:"64"`
}

func (h *Backend) gardenDeleteMarker(ctx context.Context, _ tool.Call, in markerIDIn) (Deleted, error) {
	if err := h.garden.deleteMarker(ctx, in.ID); err != nil {
		return Deleted{}, err
	}
	return Deleted{1, []string{in.ID}}, nil
}

type gardenQueryIn struct {
	stretchIn
	Behavior string `json:"behavior_type,omitempty" jsonschema:"only regions of this kind" enum:"play_content,latent,apply_processing,emit_trigger"`
	Content  string `json:"content_id,omitempty" jsonschema:"only regions with this content" max:"128"`
}

// GardenView is the transport and a part of the timeline.
type GardenView struct {
	GardenState
	Regions []Region `json:"regions"`
	Markers []Marker `json:"markers"`
	Playing []string `json:"active_regions" jsonschema:"ids of the regions at the current position"`
}

// Text has one line per item.
func (v GardenView) Text() string {
	lines := []string{v.GardenState.Text()}
	for _, r := range v.Regions {
		lines = append(lines, r.Text())
	}
	for _, m := range v.Markers {
		lines = append(lines, m.Text())
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) gardenQuery(_ context.Context, _ tool.Call, in gardenQueryIn) (GardenView, error) {
	return h.look(in), nil
}

// look returns a part of the timeline.
func (h *Backend) look(in gardenQueryIn) GardenView {
	v := GardenView{GardenState: h.garden.state(), Regions: []Region{}, Playing: []string{}}
	var regions []Region
	regions, v.Markers = h.garden.between(in.Start, in.end())
	for _, r := range regions {
		if in.Behavior != "" && r.Behavior != in.Behavior || in.Content != "" && r.ContentID != in.Content {
			continue
		}
		v.Regions = append(v.Regions, r)
		if r.Position <= v.Position && v.Position < r.Position+r.Duration {
			v.Playing = append(v.Playing, r.ID)
		}
	}
	return v
}
