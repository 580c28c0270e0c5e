package packages

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Offer is which versions the registry has of an installed package.
type Offer struct {
	Wanted string `json:"wanted"` // the newest that the configured spec allows
	Latest string `json:"latest"`
}

// Offered asks the registry for the versions of the package of a request.
func (s *Store) Offered(ctx context.Context, r Request) (o Offer, err error) {
	name := NameOf(r.Specs[0])
	if o.Latest, err = view(ctx, r, name+"@latest"); err != nil {
		return o, err
	}
	if o.Wanted = o.Latest; r.Specs[0] != name {
		o.Wanted, err = view(ctx, r, r.Specs[0])
	}
	return o, err
}

// view asks npm for the newest version of a spec.
func view(ctx context.Context, r Request, spec string) (string, error) {
	npm, err := findIn(r.Start.Path, "npm")
	if err != nil {
		return "", missing("npm")
	}
	cmd := exec.CommandContext(ctx, npm, "view", spec, "version", "--json", "--no-update-notifier", "--prefer-online")
	cmd.Env = r.environment()
	cmd.Dir = os.TempDir()
	said := &output{}
	cmd.Stderr = said
	text, err := cmd.Output()
	if err != nil {
		return "", (&attempt{request: r}).explain(err, said)
	}
	var one string
	var all []string // of a range, the newest last
	if json.Unmarshal(text, &one) == nil {
		return one, nil
	}
	if json.Unmarshal(text, &all) == nil && len(all) > 0 {
		return all[len(all)-1], nil
	}
	return "", fault.New(fault.Unavailable, "the registry has no version of %s", spec)
}

// Upgrade installs another version beside the one in effect: the newest that the spec allows, or
// to. It takes effect with Use.
func (s *Store) Upgrade(ctx context.Context, r Request, to string, report func(string)) (Record, error) {
	return s.locked(ctx, r, report, func() (Record, error) {
		specs := append([]string{}, r.Specs...)
		if to != "" {
			specs[0] = NameOf(r.Specs[0]) + "@" + to
		}
		record, err := s.install(ctx, r, specs, "", report)
		if now, has := s.Find(r); has && err == nil {
			now.Previous = nil
			record.Previous = &now
		}
		return record, err
	})
}

// Difference is what another version of a package installs besides itself, as NAME@VERSION.
type Difference struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"` // as NAME OLD -> NEW
}

// Compare says in which packages two installations differ.
func (s *Store) Compare(before, after Record) (d Difference, err error) {
	old, err := s.installed(before)
	if err != nil {
		return d, err
	}
	now, err := s.installed(after)
	if err != nil {
		return d, err
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch versions, was := now[name], old[name]; {
		case was == "":
			d.Added = append(d.Added, name+"@"+versions)
		case was != versions:
			d.Changed = append(d.Changed, name+" "+was+" -> "+versions)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if now[name] == "" {
			d.Removed = append(d.Removed, name+"@"+old[name])
		}
	}
	return d, nil
}

// installed are the versions of the packages of a record by name; of one that is there several
// times all of them.
func (s *Store) installed(record Record) (map[string]string, error) {
	text, err := os.ReadFile(s.path(record.Folder, "package-lock.json"))
	var lock lockFile
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read what is installed for %s", record.Spec)
	}
	all := map[string][]string{}
	for path, p := range lock.Packages {
		if at := strings.LastIndex(path, modules); at >= 0 {
			all[path[at+len(modules):]] = append(all[path[at+len(modules):]], p.Version)
		}
	}
	versions := map[string]string{}
	for name, list := range all {
		versions[name] = strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), "+")
	}
	return versions, nil
}

// modules begins the path of a package in a lock file.
const modules = "node_modules/"

// Use makes an installed record the one in effect.
func (s *Store) Use(ctx context.Context, r Request, record Record) error {
	return s.keep(ctx, r.Key(), record)
}

// Rollback makes the previous version of a package the one in effect, and that one the previous.
func (s *Store) Rollback(ctx context.Context, r Request) (Record, error) {
	now, has := s.Find(r)
	if !has || now.Previous == nil {
		return Record{}, fault.New(fault.NotFound, "there is no earlier version of %s", r.Specs[0]).
			WithHint("a version is kept when it is upgraded; luanette upstream upgrade NAME --to VERSION installs any")
	}
	back := *now.Previous
	now.Previous = nil
	back.Previous = &now
	if !exists(s.path(back.Folder, back.Bin)) {
		return Record{}, fault.New(fault.NotFound, "the files of %s %s are gone", back.Name, back.Version).
			WithHint("luanette upstream upgrade NAME --to %s installs it", back.Version)
	}
	return back, s.Use(ctx, r, back)
}

// Prune removes the records whose keys are not used, and the folders that no record names. It
// returns the folders.
func (s *Store) Prune(ctx context.Context, used func(key string) bool) (removed []string, err error) {
	s.CleanUp()
	keep := map[string]bool{}
	err = s.change(ctx, func(all map[string]Record) {
		for key, record := range all {
			if !used(key) {
				delete(all, key)
				continue
			}
			keep[s.path(record.Folder)] = true
			if record.Previous != nil {
				keep[s.path(record.Previous.Folder)] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	folders, _ := filepath.Glob(s.path("npm", "*", "*")) // the pattern is valid
	for _, folder := range folders {
		if keep[folder] {
			continue
		}
		removed = append(removed, strings.TrimPrefix(folder, s.path("npm")+string(filepath.Separator)))
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return removed, err
}
