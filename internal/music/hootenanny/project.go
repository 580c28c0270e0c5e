package hootenanny

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// DefaultProject is the project of callers that named none. It always exists.
const DefaultProject = "default"

// Limits of projects.
const (
	maxProjects = 1000
	maxSessions = 10_000 // how many sessions' choices are stored
)

// projectForm takes milliseconds to compile, so that it waits for its first use.
var projectForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\pL\pN]([\pL\pN ._-]{0,62}[\pL\pN._-])?$`)
})

func checkProject(name string) error {
	if !projectForm().MatchString(name) {
		return invalid("%.100q cannot be the name of a project", name).
			WithHint("use 1 to 64 letters, digits, spaces and . _ -, beginning with a letter or digit")
	}
	return nil
}

// project is a timeline and the state of its transport, as they are stored.
type project struct {
	name    string
	version int64 // counts the changes; 0 if it is not stored
	status  string
	tempo   float64
	from    float64 // the position in beats at time since
	since   time.Time
	node    string   // which plays it, if it is playing
	regions []Region // by position
	markers []Marker // by position
}

// at is the position in beats at a time.
func (p *project) at(now time.Time) float64 {
	if p.status != playing {
		return p.from
	}
	return p.from + max(0, now.Sub(p.since).Seconds())*p.tempo/60
}

// settle makes the current position the one to count from.
func (p *project) settle(now time.Time) { p.from, p.since = p.at(now), now }

// loadTransport reads the state of a project. One that is not stored is stopped.
func loadTransport(ctx context.Context, tx *db.Tx, name string) (*project, error) {
	p := &project{name: name, status: stopped, tempo: defaultTempo}
	var since int64
	err := tx.QueryRow(ctx, "SELECT version, status, tempo, position, since, node FROM hoot_projects WHERE name = $1", name).
		Scan(&p.version, &p.status, &p.tempo, &p.from, &since, &p.node)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	p.since = time.Unix(0, since)
	return p, err
}

// save writes the state of a project that was changed.
func (p *project) save(ctx context.Context, tx *db.Tx) error {
	if p.version == 0 {
		if err := checkCount(ctx, tx); err != nil {
			return err
		}
		p.version = p.since.UnixNano() // later than those of a deleted project of this name
	}
	p.version++
	_, err := tx.Exec(ctx, `INSERT INTO hoot_projects (name, version, status, tempo, position, since, node, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, status = excluded.status, tempo = excluded.tempo, position = excluded.position,
			since = excluded.since, node = excluded.node, updated_at = excluded.updated_at`,
		p.name, p.version, p.status, p.tempo, p.from, p.since.UnixNano(), p.node, p.since.UnixNano())
	return err
}

func checkCount(ctx context.Context, tx *db.Tx) error {
	var count int
	if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM hoot_projects").Scan(&count); err != nil {
		return err
	}
	if count >= maxProjects {
		return fault.New(fault.Limit, "there are %d projects", count).WithHint("delete some with garden_delete_project")
	}
	return nil
}

// projectNames returns the names of all stored projects.
func projectNames(ctx context.Context, tx *db.Tx) ([]string, error) {
	return db.All(ctx, tx, scan[string], "SELECT name FROM hoot_projects ORDER BY name")
}

// known returns an error if a project is not stored. The default project need not be.
func (p *project) known(ctx context.Context, tx *db.Tx) error {
	if p.version > 0 || p.name == DefaultProject {
		return nil
	}
	names, err := projectNames(ctx, tx)
	if err != nil {
		return err
	}
	missing := fault.New(fault.NotFound, "there is no project %q", p.name)
	if near := suggest.Names(p.name, names, 3); len(near) > 0 {
		return missing.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return missing.WithHint("garden_projects lists them; garden_open creates one")
}

// projectOf returns the project that a call is about: the one it names, the one that its
// session opened, or the default.
func (h *Backend) projectOf(ctx context.Context, call tool.Call, named string) (string, error) {
	if named != "" {
		return named, checkProject(named)
	}
	session := sessionOf(call)
	if session == "" {
		return DefaultProject, nil
	}
	name := DefaultProject
	err := h.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT project FROM hoot_project_sessions WHERE session = $1", session).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return name, err
}

// sessionOf is the caller for whom a project can be opened: a session, or else the ID of a
// principal. It is "" if calls cannot be told apart.
func sessionOf(call tool.Call) string {
	if call.Caller == nil {
		return ""
	}
	return strings.TrimPrefix(call.Caller.ID, "user:")
}

// remember makes a project that of a session.
func remember(ctx context.Context, tx *db.Tx, session, name string, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO hoot_project_sessions (session, project, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (session) DO UPDATE SET project = excluded.project, updated_at = excluded.updated_at`, session, name, now.UnixNano())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM hoot_project_sessions WHERE updated_at < COALESCE(
		(SELECT updated_at FROM hoot_project_sessions ORDER BY updated_at DESC LIMIT 1 OFFSET $1), 0)`, maxSessions-1)
	return err
}
