package hootenanny

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) gardenTools() []toolset.Tool {
	g := h.gardens
	transport := func(name string, do func(context.Context, string) (*project, error)) toolset.Tool {
		return define(name, changes(), onProject(h, func(ctx context.Context, project string, _ projectIn) (GardenState, error) {
			return g.stateAfter(do(ctx, project))
		}))
	}
	return []toolset.Tool{
		define("garden_projects", reads(), h.gardenProjects),
		define("garden_open", puts(), h.gardenOpen),
		define("garden_delete_project", changes(), h.gardenDeleteProject),
		define("garden_status", reads(), onProject(h, h.gardenStatus)),
		transport("garden_play", g.play),
		transport("garden_pause", g.pause),
		transport("garden_stop", g.halt),
		transport("garden_emergency_pause", g.pause),
		define("garden_seek", changes(), onProject(h, h.gardenSeek)),
		define("garden_set_tempo", changes(), onProject(h, h.gardenSetTempo)),
		define("garden_create_region", adds(), onProject(h, h.gardenCreateRegion)),
		define("garden_delete_region", changes(), onProject(h, h.gardenDeleteRegion)),
		define("garden_move_region", changes(), onProject(h, h.gardenMoveRegion)),
		define("garden_get_regions", reads(), onProject(h, h.gardenGetRegions)),
		define("garden_clear_regions", changes(), onProject(h, h.gardenClearRegions)),
		define("garden_add_marker", adds(), onProject(h, h.gardenAddMarker)),
		define("garden_delete_marker", changes(), onProject(h, h.gardenDeleteMarker)),
		define("garden_query", reads(), onProject(h, h.gardenQuery)),
	}
}

// onProject finds the project of a call for a tool that is about one.
func onProject[In interface{ named() string }, Out any](h *Backend, do func(ctx context.Context, project string, in In) (Out, error)) func(context.Context, tool.Call, In) (Out, error) {
	return func(ctx context.Context, call tool.Call, in In) (out Out, err error) {
		project, err := h.projectOf(ctx, call, in.named())
		if err != nil {
			return out, err
		}
		return do(ctx, project, in)
	}
}

// projectIn names the project that a tool is about.
type projectIn struct {
	Project string `json:"project,omitempty" jsonschema:"name of the project; default: the one that this session opened, or default" max:"64"`
}

func (p projectIn) named() string { return p.Project }

func (h *Backend) gardenStatus(ctx context.Context, project string, _ projectIn) (GardenState, error) {
	return h.gardens.state(ctx, project)
}

// Text is one line.
func (s GardenState) Text() string {
	text := fmt.Sprintf("%s at beat %.3f, %g bpm, %d regions", s.State, s.Position, s.Tempo, s.RegionCount)
	if s.Project != DefaultProject {
		text = s.Project + ": " + text
	}
	return text
}

type seekIn struct {
	projectIn
	Beat float64 `json:"beat" jsonschema:"the new position, in beats" min:"0" max:"1000000000"`
}

func (h *Backend) gardenSeek(ctx context.Context, project string, in seekIn) (GardenState, error) {
	if !(in.Beat >= 0 && in.Beat <= lastBeat) {
		return GardenState{}, invalid("invalid beat %g", in.Beat)
	}
	return h.gardens.stateAfter(h.gardens.seek(ctx, project, in.Beat))
}

type tempoIn struct {
	projectIn
	BPM float64 `json:"bpm" jsonschema:"beats per minute" min:"1" max:"999"`
}

func (h *Backend) gardenSetTempo(ctx context.Context, project string, in tempoIn) (GardenState, error) {
	if !(in.BPM >= 1 && in.BPM <= 999) {
		return GardenState{}, invalid("invalid tempo %g", in.BPM).WithHint("use 1 to 999 beats per minute")
	}
	return h.gardens.stateAfter(h.gardens.setTempo(ctx, project, in.BPM))
}

type regionIn struct {
	projectIn
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

func (h *Backend) gardenCreateRegion(ctx context.Context, project string, in regionIn) (Region, error) {
	if !(in.Position >= 0 && in.Duration > 0) {
		return Region{}, invalid("a region must begin at beat 0 or later and have a positive length")
	}
	if in.Behavior == "play_content" {
		if in.ContentID == "" {
			return Region{}, invalid("a region that plays content needs content_id").WithHint("give an artifact's id or a content's hash")
		}
		if _, err := h.files.FindFile(ctx, in.ContentID); err != nil {
			return Region{}, err
		}
	}
	r := Region{ID: newID("region"), Position: in.Position, Duration: in.Duration, Behavior: in.Behavior, ContentID: in.ContentID, Name: in.Name}
	return r, h.gardens.addRegion(ctx, project, r)
}

type regionIDIn struct {
	projectIn
	ID string `json:"region_id" jsonschema:"id of a region" min:"1" max:"64"`
}

// Deleted is the number of deleted items.
type Deleted struct {
	Count int      `json:"deleted_count"`
	IDs   []string `json:"deleted,omitempty"`
}

// Text is one line.
func (d Deleted) Text() string { return fmt.Sprintf("Deleted %d", d.Count) }

func (h *Backend) gardenDeleteRegion(ctx context.Context, project string, in regionIDIn) (Deleted, error) {
	if err := h.gardens.deleteRegion(ctx, project, in.ID); err != nil {
		return Deleted{}, err
	}
	return Deleted{1, []string{in.ID}}, nil
}

type moveRegionIn struct {
	projectIn
	ID       string  `json:"region_id" jsonschema:"id of a region" min:"1" max:"64"`
	Position float64 `json:"new_position" jsonschema:"its new start, in beats" min:"0" max:"1000000000"`
}

func (h *Backend) gardenMoveRegion(ctx context.Context, project string, in moveRegionIn) (Region, error) {
	return h.gardens.moveRegion(ctx, project, in.ID, in.Position)
}

type stretchIn struct {
	projectIn
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

func (h *Backend) gardenGetRegions(ctx context.Context, project string, in stretchIn) (Regions, error) {
	p, err := h.gardens.load(ctx, project)
	if err != nil {
		return Regions{}, err
	}
	regions, _ := p.between(in.Start, in.end())
	return Regions{regions, len(regions)}, nil
}

func (h *Backend) gardenClearRegions(ctx context.Context, project string, _ projectIn) (Deleted, error) {
	count, err := h.gardens.clearRegions(ctx, project)
	return Deleted{Count: count}, err
}

type markerIn struct {
	projectIn
	Position float64        `json:"position" jsonschema:"where, in beats" min:"0" max:"1000000000"`
	Type     string         `json:"marker_type,omitempty" jsonschema:"what it marks, such as section_change or cue_point; default cue_point" max:"128"`
	Metadata toolset.Object `json:"metadata,omitempty" jsonschema:"data to publish with it"`
}

// Text is one line.
func (m Marker) Text() string { return fmt.Sprintf("%s: %s at beat %g", m.ID, m.Type, m.Position) }

func (h *Backend) gardenAddMarker(ctx context.Context, project string, in markerIn) (Marker, error) {
	if in.Type == "" {
		in.Type = "cue_point"
	}
	if len(in.Metadata) > maxMetadata {
		return Marker{}, invalid("the metadata has %d bytes", len(in.Metadata)).WithHint("at most %d are allowed", maxMetadata)
	}
	m := Marker{newID("marker"), in.Position, in.Type, in.Metadata}
	return m, h.gardens.addMarker(ctx, project, m)
}

type markerIDIn struct {
	projectIn
	ID string `json:"marker_id" jsonschema:"id of a marker" min:"1" max:"64"`
}

func (h *Backend) gardenDeleteMarker(ctx context.Context, project string, in markerIDIn) (Deleted, error) {
	if err := h.gardens.deleteMarker(ctx, project, in.ID); err != nil {
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

func (h *Backend) gardenQuery(ctx context.Context, project string, in gardenQueryIn) (GardenView, error) {
	return h.look(ctx, project, in)
}

// look returns a part of the timeline of a project.
func (h *Backend) look(ctx context.Context, name string, in gardenQueryIn) (GardenView, error) {
	p, err := h.gardens.load(ctx, name)
	if err != nil {
		return GardenView{}, err
	}
	v := GardenView{GardenState: h.gardens.stateOf(p), Regions: []Region{}, Playing: []string{}}
	var regions []Region
	regions, v.Markers = p.between(in.Start, in.end())
	sounds := sounds{files: h.files, found: map[string]string{}}
	for _, r := range regions {
		if in.Behavior != "" && r.Behavior != in.Behavior || in.Content != "" && r.ContentID != in.Content {
			continue
		}
		r.Audio = sounds.of(ctx, r.ContentID)
		v.Regions = append(v.Regions, r)
		if r.Position <= v.Position && v.Position < r.Position+r.Duration {
			v.Playing = append(v.Playing, r.ID)
		}
	}
	return v, nil
}

// Projects is a list of projects.
type Projects struct {
	Projects []ProjectInfo `json:"projects"`
	Count    int           `json:"count"`
	Current  string        `json:"current" jsonschema:"the project of calls of this session that name none"`
}

// ProjectInfo is a project in a list.
type ProjectInfo struct {
	GardenState
	Updated int64 `json:"updated_at" jsonschema:"seconds since 1970"`
}

// Text has one line per item.
func (p Projects) Text() string {
	noun := "projects"
	if p.Count == 1 {
		noun = "project"
	}
	lines := []string{fmt.Sprintf("%d %s; this session's is %s", p.Count, noun, p.Current)}
	for _, one := range p.Projects {
		lines = append(lines, fmt.Sprintf("%s: %s at beat %.3f, %g bpm, %d regions", one.Project, one.State, one.Position, one.Tempo, one.RegionCount))
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) gardenProjects(ctx context.Context, call tool.Call, _ noArguments) (Projects, error) {
	list := Projects{}
	var err error
	if list.Current, err = h.projectOf(ctx, call, ""); err != nil {
		return list, err
	}
	now := h.clock.Now()
	list.Projects, err = db.Find(ctx, h.db, func(row db.Scanner) (info ProjectInfo, err error) {
		var p project
		var since, updated int64
		err = row.Scan(&p.name, &p.status, &p.tempo, &p.from, &since, &updated, &info.RegionCount, &info.MarkerCount)
		p.since = time.Unix(0, since)
		info.Project, info.State, info.Tempo, info.Position = p.name, p.status, p.tempo, p.at(now)
		info.Updated = updated / int64(time.Second)
		return info, err
	}, `SELECT name, status, tempo, position, since, updated_at,
			(SELECT COUNT(*) FROM hoot_regions WHERE project = hoot_projects.name), (SELECT COUNT(*) FROM hoot_markers WHERE project = hoot_projects.name)
			FROM hoot_projects ORDER BY name`)
	list.Count = len(list.Projects)
	return list, err
}

type gardenOpenIn struct {
	Project string `json:"project" jsonschema:"name of the project; it is created if there is none" min:"1" max:"64"`
}

// gardenOpen makes a project the one of the caller's session.
func (h *Backend) gardenOpen(ctx context.Context, call tool.Call, in gardenOpenIn) (GardenState, error) {
	if err := checkProject(in.Project); err != nil {
		return GardenState{}, err
	}
	session := sessionOf(call)
	if session == "" {
		return GardenState{}, invalid("this client has no session to open a project for").WithHint("give project with each call instead")
	}
	err := h.db.Write(ctx, func(tx *db.Tx) error {
		p, err := loadTransport(ctx, tx, in.Project)
		if err != nil {
			return err
		}
		if p.version == 0 {
			p.since = h.clock.Now()
			if err := p.save(ctx, tx); err != nil {
				return err
			}
		}
		return remember(ctx, tx, session, in.Project, h.clock.Now())
	})
	if err != nil {
		return GardenState{}, err
	}
	return h.gardens.state(ctx, in.Project)
}

type deleteProjectIn struct {
	Project string `json:"project" jsonschema:"name of the project" min:"1" max:"64"`
}

func (h *Backend) gardenDeleteProject(ctx context.Context, _ tool.Call, in deleteProjectIn) (Deleted, error) {
	if err := checkProject(in.Project); err != nil {
		return Deleted{}, err
	}
	if in.Project == DefaultProject {
		return Deleted{}, fault.New(fault.InvalidParams, "the default project cannot be deleted").WithHint("garden_clear_regions deletes its regions")
	}
	if err := h.gardens.deleteProject(ctx, in.Project); err != nil {
		return Deleted{}, err
	}
	return Deleted{1, []string{in.Project}}, nil
}

// sounds finds the sounds of contents: what can be heard of a region.
type sounds struct {
	files    *artifact.Files
	found    map[string]string // by the name of the content
	searches int
}

// Limits of a search for the sound of a content.
const (
	maxSearches = 200 // of one timeline
	maxDepth    = 3   // such as a tune, its MIDI file, and the sound of that
)

// of returns the hash of a content's sound: of itself, or of the newest sound that was
// made from it. It is "" if there is none.
func (s *sounds) of(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	if hash, known := s.found[name]; known {
		return hash
	}
	hash := ""
	if c, err := s.files.FindFile(ctx, name); err == nil {
		hash = s.search(ctx, c.Hash, c.MIME, maxDepth)
	}
	s.found[name] = hash
	return hash
}

func (s *sounds) search(ctx context.Context, ref cas.Ref, mime string, depth int) string {
	if isSound(mime) {
		return ref.String()
	}
	if s.searches++; depth == 0 || s.searches > maxSearches {
		return ""
	}
	page, err := s.files.Search(ctx, artifact.Query{Parent: ref, Limit: 20})
	if err != nil {
		return "" // the timeline is shown without this sound
	}
	for _, a := range page.Artifacts {
		if isSound(a.MIME) {
			return a.Hash.String()
		}
	}
	for _, a := range page.Artifacts {
		if hash := s.search(ctx, a.Hash, a.MIME, depth-1); hash != "" {
			return hash
		}
	}
	return ""
}

// isSound tells whether browsers can play a content.
func isSound(mime string) bool {
	return strings.HasPrefix(mime, "audio/") && kindOf(mime) == "audio"
}
