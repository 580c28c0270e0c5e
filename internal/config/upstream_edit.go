package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/toml"
)

// NewUpstream is an upstream to add to the configuration file.
type NewUpstream struct {
	Name    string
	Entry   Upstream
	Replace bool // an upstream of that name may exist, and is replaced
	Propose bool // it gets the sandbox of new servers, unless it has one
}

// Check returns what is wrong with the upstream, and the configuration as it will be.
func (n NewUpstream) Check(sources Sources) (*Loaded, error) {
	if _, _, err := n.Entry.spec(n.Name, sources.Env); err != nil {
		return nil, err
	}
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return nil, err
	}
	if place, taken := loaded.UpstreamPlaces()[n.Name]; taken && !n.Replace {
		return nil, fault.New(fault.Conflict, "there is an upstream %q already: %s", n.Name, place).
			WithHint("choose another name, or replace it with --replace")
	}
	if loaded.Upstreams == nil {
		loaded.Upstreams = map[string]Upstream{}
	}
	if n.Propose {
		n.Entry = loaded.Proposed(n.Name, n.Entry, sources.Env)
	}
	loaded.Upstreams[n.Name] = n.Entry
	return loaded, loaded.check()
}

// LoadOrNew is Load for a file that is created if there is none.
func LoadOrNew(sources Sources) (*Loaded, error) {
	file, err := EditedFile(sources)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return loadFrom(file, sources)
	}
	loaded, err := loadFrom("", sources)
	if err == nil {
		loaded.File = file
	}
	return loaded, err
}

// AddUpstream adds an upstream to the configuration file and returns the file's path. It
// creates the file if there is none. The rest of the file does not change, including
// comments.
func AddUpstream(ctx context.Context, sources Sources, added NewUpstream) (file string, err error) {
	loaded, err := added.Check(sources)
	if err != nil {
		return "", err
	}
	file = loaded.File
	err = edit(file, func(text string) (string, error) {
		if toml.Lines([]byte(text), "upstreams")[added.Name] > 0 { // Check allows that only to replace it
			if text, err = cutTable(text, added.Name); err != nil {
				return "", err
			}
		}
		changed, err := toml.Append([]byte(text), []string{"upstreams", added.Name}, map[string]any{"upstreams": map[string]any{added.Name: loaded.Upstreams[added.Name]}})
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "write upstream")
		}
		return string(changed), nil
	})
	if err != nil {
		return "", err
	}
	return file, TrustUpstreams(ctx, sources, added.Name)
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
		return cutTable(text, name)
	})
}

// cutTable removes an upstream's table from TOML text.
func cutTable(text, name string) (string, error) {
	cut, err := toml.CutTable([]byte(text), "upstreams", name)
	if errors.Is(err, toml.ErrNoHeader) {
		return "", fault.New(fault.Config, "the table [upstreams.%s] has no header of its own", name).
			WithHint("remove it from the file by hand")
	}
	return string(cut), err
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
