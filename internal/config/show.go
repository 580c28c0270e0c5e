package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// markFileKeys records for Show which keys the file sets.
func (l *Loaded) markFileKeys(text []byte) {
	var given map[string]any
	if toml.Unmarshal(text, &given) != nil {
		return // it was decoded before, so this does not fail
	}
	for _, s := range settingsOf(&l.Config) {
		if _, ok := lookUp(given, s.key); ok {
			l.Origins[s.key] = originFile
		}
	}
}

// lookUp returns the value at a dotted key of nested tables.
func lookUp(table map[string]any, key string) (any, bool) {
	first, rest, nested := strings.Cut(key, ".")
	value, ok := table[first]
	if !ok || !nested {
		return value, ok
	}
	inner, _ := value.(map[string]any)
	return lookUp(inner, rest)
}

// Show writes the effective configuration as a luanette.toml with every key,
// where its value came from, and which variable sets it. Secrets are hidden, so
// the output can be pasted into a bug report.
func (l *Loaded) Show(w io.Writer) error {
	var out strings.Builder
	if l.File != "" {
		fmt.Fprintf(&out, "# file: %s\n", l.File)
	} else {
		out.WriteString("# file: none\n")
	}
	if names := l.RestartNeeded(); len(names) > 0 {
		fmt.Fprintf(&out, "# restart needed for: %s\n", strings.Join(names, ", "))
	}
	for _, warning := range l.Warnings {
		fmt.Fprintf(&out, "# warning: %s\n", warning)
	}
	if err := l.showSettings(&out); err != nil {
		return err
	}
	if len(l.Approvals) > 0 {
		text, err := toml.Marshal(l.Approvals)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "\n[approvals]\n%s", text)
	}
	if err := l.showPolicy(&out); err != nil {
		return err
	}
	err := errors.Join(
		showTable(&out, "upstreams", l.Upstreams),
		showTable(&out, "tools", l.Tools),
		showTable(&out, "hooks", l.Hooks),
		showTable(&out, "secrets", l.Secrets),
		showTable(&out, "keys", l.Keys),
		showTable(&out, "issuers", l.Issuers),
		showTable(&out, "identity", l.Identity),
		showTable(&out, "roles", l.Roles),
		showTable(&out, "orgs", l.Orgs), // their upstreams are among the others
	)
	if err == nil {
		_, err = io.WriteString(w, out.String())
	}
	return err
}

// showSettings writes the keys that have one value each.
func (l *Loaded) showSettings(out *strings.Builder) error {
	section := ""
	for _, s := range settingsOf(&l.Config) {
		name := s.key
		if at := strings.LastIndex(s.key, "."); at >= 0 {
			if s.key[:at] != section {
				section = s.key[:at]
				fmt.Fprintf(out, "\n[%s]\n", section)
			}
			name = s.key[at+1:]
		}
		line, err := s.show(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-40s # %s; %s; %s%s\n", line, l.origin(s.key), s.variable(), s.help, l.awaits(s.key))
	}
	return nil
}

// showTable writes the entries of a table without their secrets.
func showTable[T any](out *strings.Builder, table string, entries map[string]T) error {
	if len(entries) == 0 {
		return nil
	}
	shown := make(map[string]T, len(entries))
	for name, entry := range entries {
		shown[name] = hidden(entry)
	}
	text, err := toml.Marshal(map[string]map[string]T{table: shown})
	fmt.Fprintf(out, "\n%s", strings.TrimPrefix(string(text), "["+table+"]\n")) // a header of its own would be the second
	return err
}

func (l *Loaded) origin(key string) string {
	if o := l.Origins[key]; o != "" {
		return o
	}
	return "default"
}

// show writes "name = value" as TOML.
func (s setting) show(name string) (string, error) {
	text, err := toml.Marshal(map[string]any{name: s.shown()})
	return strings.TrimSpace(string(text)), err
}

// shown returns the value without secrets.
func (s setting) shown() any {
	if text, ok := s.field.Interface().(string); ok && s.secret != "" {
		return tagged.Hide(s.secret, text)
	}
	return s.field.Interface()
}

// hidden returns an entry of a table as it is shown.
func hidden[T any](entry T) T {
	if own, ok := any(entry).(interface{ Hidden() T }); ok {
		return own.Hidden()
	}
	return tagged.Hidden(entry)
}

// VisibleTo returns the configuration as somebody may see it. Only those who see everything
// see how others get in, and what other organisations have.
func (l *Loaded) VisibleTo(who principal.Principal) *Loaded {
	if who.SeesAll() {
		return l
	}
	shown, own := *l, who.ActingOrg()
	foreign := func(tool string) bool { // the name of an upstream, or of a tool of one
		space, _, _ := strings.Cut(tool, ".")
		return who.IsForeign(space)
	}
	shown.Warnings, shown.Keys, shown.Issuers, shown.Identity = nil, nil, nil, nil
	shown.Orgs = without(l.Orgs, func(name string) bool { return name != own })
	shown.Upstreams, shown.Tools = without(l.Upstreams, foreign), without(l.Tools, foreign)
	shown.Approvals, shown.Accepts = without(l.Approvals, foreign), without(l.Accepts, foreign)
	shown.Hooks = without(l.Hooks, func(name string) bool { org := l.Hooks[name].Org; return org != "" && org != own })
	shown.Policy = slices.DeleteFunc(slices.Clone(l.Policy), func(r PolicyRule) bool { return foreign(r.Tool) })
	shown.Readers = slices.DeleteFunc(slices.Clone(l.Readers), foreign)
	return &shown
}

// without returns a copy of a table without some of its entries.
func without[T any](entries map[string]T, drop func(name string) bool) map[string]T {
	rest := maps.Clone(entries)
	maps.DeleteFunc(rest, func(name string, _ T) bool { return drop(name) })
	return rest
}

// Values of blobs other than the path of a folder.
const (
	BlobsInFolder   = "folder"
	BlobsInDatabase = "database"
)

// checkBlobs accepts the known values and absolute paths.
func checkBlobs(where string) error {
	if where == "" || where == BlobsInFolder || where == BlobsInDatabase || filepath.IsAbs(where) {
		return nil
	}
	return fault.New(fault.Config, "blobs: %q is neither %s nor %s nor the absolute path of a folder", where, BlobsInFolder, BlobsInDatabase).
		WithHint("omit it: contents are stored in the data folder, or in the database with Postgres")
}

// ContentsFolder is the name of the contents' folder in a data folder and in a backup.
const ContentsFolder = "cas"

// ContentLocation reports whether contents are stored in the database, and returns their
// folder otherwise. It is a subfolder of data unless the configuration names another.
func (c *Config) ContentLocation(kind db.Kind, data string) (inDatabase bool, folder string) {
	inDatabase = c.Blobs == BlobsInDatabase || c.Blobs == "" && kind == db.Postgres
	if filepath.IsAbs(c.Blobs) {
		return inDatabase, c.Blobs
	}
	return inDatabase, filepath.Join(data, ContentsFolder)
}
