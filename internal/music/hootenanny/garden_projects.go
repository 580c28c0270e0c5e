package hootenanny

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

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
	err = h.db.Read(ctx, func(tx *db.Tx) error {
		list.Projects, err = db.All(ctx, tx, func(row db.Scanner) (info ProjectInfo, err error) {
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
		return err
	})
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
	store    Store
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
	if c, err := s.store.Find(ctx, name); err == nil {
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
	page, err := s.store.Search(ctx, Search{Parent: ref, Limit: 20})
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
