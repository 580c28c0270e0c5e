package publish

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// History lists all versions of the caller's name of a script, newest first: those of their
// organisation if there are any, else the server's.
func (p *Published) History(ctx context.Context, name string) (versions []Version, err error) {
	who := principal.Of(ctx)
	full := principal.InOrg(name, who.ActingOrg())
	if strings.Contains(name, "@") { // an administrator names the organisation
		full = name
	}
	if !who.IsForeign(full) {
		versions, err = p.versions(ctx, full)
	}
	if err == nil && len(versions) == 0 && full != name {
		full = name
		versions, err = p.versions(ctx, full)
	}
	if err == nil && len(versions) == 0 {
		err = fault.New(fault.NotFound, "no script was ever published as %q", name).WithHint("script_search finds stored scripts")
	}
	if now := p.list.Load().byName[full]; now != nil && len(versions) > 0 {
		versions[0].Current = true
	}
	return versions, err
}

func (p *Published) versions(ctx context.Context, name string) (versions []Version, err error) {
	return db.Find(ctx, p.db, scanVersion,
		"SELECT v.name, v.version, v.hash, v.publisher, v.published_at FROM publication_versions v WHERE v.name = $1 ORDER BY v.version DESC", name)
}

func scanVersion(row db.Scanner) (v Version, err error) {
	var hash string
	var at int64
	if err := row.Scan(&v.Name, &v.Version, &hash, &v.Publisher, &at); err != nil {
		return v, err
	}
	v.PublishedAt = time.UnixMicro(at)
	return v, v.Hash.UnmarshalText([]byte(hash))
}

// record stores ready as the next version of its name.
func (p *Published) record(ctx context.Context, ready *publication) error {
	now := p.options.Clock.Now()
	err := p.db.Write(ctx, func(tx *db.Tx) error {
		if err := p.options.Use(ctx, tx, ready.Hash); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO publications (name, origin) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET origin = excluded.origin",
			ready.Name, ready.origin)
		if err != nil {
			return err
		}
		if err := tx.Notify(Topic, ready.Name); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `INSERT INTO publication_versions (name, version, hash, publisher, published_at)
			VALUES ($1, (SELECT COALESCE(MAX(version), 0) + 1 FROM publication_versions WHERE name = $1), $2, $3, $4) RETURNING version`,
			ready.Name, ready.Hash.String(), ready.Publisher, now.UnixMicro()).Scan(&ready.Version.Version)
	})
	ready.PublishedAt = time.UnixMicro(now.UnixMicro())
	return err
}

// forget removes a name from the published ones; its versions stay.
func (p *Published) forget(ctx context.Context, name string) (had bool, err error) {
	err = p.db.Write(ctx, func(tx *db.Tx) error {
		count, err := tx.Exec(ctx, "DELETE FROM publications WHERE name = $1", name)
		if had = count > 0; err != nil || !had {
			return err
		}
		return tx.Notify(Topic, name)
	})
	return had, err
}

// Topic is where processes notify each other that they published or withdrew a script.
const Topic = "scripts"

// Reload loads what other processes have published and withdrawn.
func (p *Published) Reload(ctx context.Context) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	before := p.list.Load().byName
	byName, err := p.load(ctx, before)
	if err != nil || maps.Equal(byName, before) {
		return err
	}
	p.list.Store(newToolList(byName))
	if p.options.Changed != nil {
		p.options.Changed(ctx)
	}
	if !p.options.Shared { // else the process that changed it has published the events to all
		p.publishChanges(before, byName)
	}
	return nil
}

// publishChanges publishes the events of what another process did.
func (p *Published) publishChanges(before, now map[string]*publication) {
	for name, one := range now {
		if one != before[name] {
			p.options.Events.PublishAbout(name, Changed{Name: name, Hash: one.Hash, Version: one.Version.Version})
		}
	}
	for name, old := range before {
		if now[name] == nil {
			p.options.Events.PublishAbout(name, Changed{Name: name})
		}
		if now[name] != old {
			p.publishInvalidated(old)
		}
	}
}

// load returns what is published according to the database. Those in known that are the same
// are not prepared again, nor are versions that could not be described.
func (p *Published) load(ctx context.Context, known map[string]*publication) (map[string]*publication, error) {
	current, err := p.loadCurrent(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*publication{}
	for _, one := range current {
		version := one.Version.Version
		if now := known[one.Name]; now != nil && now.Hash == one.Hash && now.Version.Version == version {
			byName[one.Name] = now
			continue
		}
		if p.unusable[one.Name] == version {
			continue
		}
		ready, err := p.prepare(ctx, one.Version, one.origin)
		if err != nil {
			p.options.Log.WarnContext(ctx, "published script cannot be used", "name", one.Name, "hash", one.Hash.String(), "error", err)
			if code := fault.CodeOf(err); code == fault.Script || code == fault.NotFound { // it stays so
				p.unusable[one.Name] = version
			}
			continue
		}
		byName[one.Name] = ready
	}
	return byName, nil
}

// loadCurrent reads the newest version of every published name.
func (p *Published) loadCurrent(ctx context.Context) (current []publication, err error) {
	return db.Find(ctx, p.db, func(row db.Scanner) (one publication, err error) {
		one.Version, err = scanVersion(withOrigin{row, &one.origin})
		one.Current = true
		return one, err
	}, `SELECT p.origin, v.name, v.version, v.hash, v.publisher, v.published_at
			FROM publications p JOIN publication_versions v ON v.name = p.name
			WHERE v.version = (SELECT MAX(version) FROM publication_versions WHERE name = p.name) ORDER BY p.name`)
}

// withOrigin scans the origin before the other columns.
type withOrigin struct {
	row    db.Scanner
	origin *string
}

func (w withOrigin) Scan(dest ...any) error { return w.row.Scan(append([]any{w.origin}, dest...)...) }

// origins returns the publications that come from files, by file.
func (p *Published) origins() map[string]*publication {
	byFile := map[string]*publication{}
	for _, one := range p.list.Load().byName {
		if one.origin != "" {
			byFile[one.origin] = one
		}
	}
	return byFile
}

// Current returns the versions that are tools of the caller now, by the hash of their
// script, with the caller's names of them.
func (p *Published) Current(ctx context.Context) map[cas.Ref]Version {
	who, current := principal.Of(ctx), map[cas.Ref]Version{}
	for name, one := range p.list.Load().byName {
		if !who.CanSee("", name) || p.fullName(ctx, who.NameOf(name)) != name {
			continue
		}
		version := one.Version
		version.Name = who.NameOf(name)
		if other, twice := current[one.Hash]; !twice || version.Name < other.Name {
			current[one.Hash] = version
		}
	}
	return current
}

// Newest returns the newest version of the caller's tools that has the script, and the version
// that its name has now; 0 if it has none.
func (p *Published) Newest(ctx context.Context, hash string) (v Version, now int, err error) {
	versions, err := db.Find(ctx, p.db, scanVersion,
		"SELECT v.name, v.version, v.hash, v.publisher, v.published_at FROM publication_versions v WHERE v.hash = $1 ORDER BY v.published_at DESC", hash)
	who := principal.Of(ctx)
	for _, v := range versions {
		if !who.CanSee("", v.Name) {
			continue
		}
		if one := p.list.Load().byName[v.Name]; one != nil {
			now = one.Version.Version
		}
		v.Name = who.NameOf(v.Name)
		return v, now, err
	}
	return Version{}, 0, err
}

// Personal lists the tables with publications. What somebody published stays a tool of others.
func Personal() []personal.Table {
	return []personal.Table{{Name: "publication_versions", Where: "OWNER(publisher)", Set: "publisher = PSEUDONYM"}}
}

// Contents lists the columns with hashes of contents. Every version of a published script
// stays: it can become the tool again.
func Contents() []cas.Column {
	return []cas.Column{{Table: "publication_versions", Name: "hash", Where: cas.All}}
}
