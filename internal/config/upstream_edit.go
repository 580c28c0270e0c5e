package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// AddUpstream adds an upstream to the configuration file and returns the file's path. It
// creates the file if there is none. The rest of the file does not change, including
// comments.
func AddUpstream(sources Sources, name string, entry Upstream) (file string, err error) {
	if _, _, err := entry.spec(name, sources.Env); err != nil {
		return "", err
	}
	if file, err = configFile(sources); err != nil {
		return "", err
	}
	if file == "" {
		file = UserFile(sources.Env)
	}
	if taken, err := hasUpstream(file, name); err != nil {
		return "", err
	} else if taken {
		return "", fault.New(fault.Conflict, "there is an upstream %q already in %s", name, file).
			WithHint("remove it first: luanette upstream remove %s", name)
	}
	table, err := toml.Marshal(map[string]any{"upstreams": map[string]any{name: entry}})
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "write upstream")
	}
	return file, edit(file, func(text string) (string, error) {
		if text != "" && !strings.HasSuffix(text, "\n\n") {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		// The header of the parent table is not needed, and the file may contain it.
		return text + strings.TrimPrefix(string(table), "[upstreams]\n"), nil
	})
}

// hasUpstream reports whether a configuration file, which need not exist, contains an
// upstream.
func hasUpstream(file, name string) (bool, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	loaded, err := Load(Sources{File: file})
	if err != nil {
		return false, err
	}
	_, taken := loaded.Upstreams[name]
	return taken, nil
}

// RemoveUpstream removes an upstream's table from the configuration file and returns the
// file's path.
func RemoveUpstream(sources Sources, name string) (file string, err error) {
	loaded, err := Load(sources)
	if err != nil {
		return "", err
	}
	if _, exists := loaded.Upstreams[name]; !exists {
		where := "there is no configuration file"
		if loaded.File != "" {
			where = "it is not in " + loaded.File
		}
		return "", fault.New(fault.NotFound, "no upstream %q: %s", name, where).
			WithHint("`luanette upstream list` shows them all; imported ones are removed from their own file, those added to a running server with --server")
	}
	return loaded.File, edit(loaded.File, func(text string) (string, error) {
		return cutTable(text, "upstreams."+name)
	})
}

var tableHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[+\s*([^\]]+?)\s*\]+\s*(#.*)?$`) })

// cutTable removes a table and the tables below it from TOML text. It returns an error
// for a table without its own header.
func cutTable(text, table string) (string, error) {
	var kept []string
	found, inside := false, false
	for line := range strings.Lines(text) {
		if m := tableHeader().FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			name := strings.ReplaceAll(m[1], `"`, "")
			inside = name == table || strings.HasPrefix(name, table+".")
			found = found || inside
		}
		if !inside {
			kept = append(kept, line)
		}
	}
	if !found {
		return "", fault.New(fault.Config, "the table [%s] has no header of its own", table).
			WithHint("remove it from the file by hand")
	}
	return strings.TrimRight(strings.Join(kept, ""), "\n") + "\n", nil
}

// edit replaces a file's text in one step, and only with text that still loads.
func edit(path string, change func(text string) (string, error)) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Config, err, "read configuration")
	}
	changed, err := change(string(text))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(changed), 0o600); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	if _, err := Load(Sources{File: fresh}); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	return nil
}
