package config

import (
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
)

// Sources are the sources of a configuration. In ascending precedence they are the
// defaults, the file, the environment and the flags.
type Sources struct {
	File  string            // explicit path; with "" the usual places are searched, and no file is required
	Env   Environment       // LUANETTE_* and the variables that the defaults need (HOME, XDG_*)
	Flags map[string]string // by key, such as "listen" or "log.level"; only those given
	// Change changes what was read, each time; may be nil. What it sets needs no trust.
	Change func(*Config)
}

// Loaded is a configuration together with where each value came from.
type Loaded struct {
	Config
	File    string            // the file read, or ""
	Origins map[string]string // by key: "file", "environment", "environment NAME" or "flag"; absent means default

	Warnings []string // settings that are given by their former names
	former   []string // those names

	sources  Sources   // to read the configuration again
	waiting  []pending // settings of the file that take effect at the next start
	trusting trusting
}

// Load reads the configuration. Every mistake is an invalid_config fault that
// names the place and the key and suggests the nearest known one.
func Load(sources Sources) (*Loaded, error) {
	path, err := configFile(sources)
	if err != nil {
		return nil, err
	}
	return loadFrom(path, sources)
}

// Reread reads the configuration again from the file that was read before, or from
// the user's own file if it was created since.
func (l *Loaded) Reread(env Environment) (*Loaded, error) {
	path := l.File
	if own := UserFile(env); path == "" {
		if _, err := os.Stat(own); err == nil {
			path = own
		}
	}
	return loadFrom(path, l.sources)
}

// loadFrom is Load with the file at path; "" is none.
func loadFrom(path string, sources Sources) (*Loaded, error) {
	loaded := &Loaded{Config: defaults(sources.Env), Origins: map[string]string{}, sources: sources}
	if path != "" {
		if err := loaded.readFile(path); err != nil {
			return nil, err
		}
		if err := loaded.spreadOrgs(); err != nil {
			return nil, err
		}
	}
	if err := loaded.readEnvironment(loaded.currentVariables(sources.Env)); err != nil {
		return nil, err
	}
	if err := loaded.readFlags(sources.Flags); err != nil {
		return nil, err
	}
	if path != "" {
		loaded.trusting.found = foundHere(path, sources)
		if err := loaded.withhold(sources.Env); err != nil {
			return nil, err
		}
	}
	if sources.Change != nil {
		sources.Change(&loaded.Config)
	}
	loaded.readModelVariables(sources.Env)
	loaded.keepFormerMusic()
	if loaded.Database == "" {
		loaded.Database = "sqlite:" + filepath.Join(loaded.Data, "luanette.db")
	}
	return loaded, loaded.check()
}

func (l *Loaded) readFlags(flags map[string]string) error {
	for _, s := range settingsOf(&l.Config) {
		value, given := flags[s.key]
		if !given {
			continue
		}
		if err := s.set(value); err != nil {
			return fault.Wrap(fault.Config, err, "flag for %s", s.key)
		}
		l.Origins[s.key] = "flag"
	}
	return nil
}
