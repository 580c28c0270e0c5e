package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/config/toml"
)

// AbsoluteFolders returns the folders as absolute paths. One that has none is left out.
func AbsoluteFolders(folders []string) (absolute []string) {
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil {
			absolute = append(absolute, abs)
		}
	}
	return absolute
}

// localFile is the configuration file of the working folder.
const localFile = "luanette.toml"

// configFile returns the file to read: the one that a flag or variable names, which must
// exist, or the first that exists in the usual places.
func configFile(sources Sources) (string, error) {
	if sources.File != "" {
		return sources.File, nil
	}
	if named := sources.Env[configVariable]; named != "" {
		return named, nil
	}
	for _, path := range usualFiles(sources.Env, os.Geteuid() == 0) {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.Config, err, "look for configuration")
		}
	}
	return "", nil
}

// usualFiles are where the configuration is, unless it is named. That of the service is for root,
// who operates it.
func usualFiles(env Environment, root bool) []string {
	list := []string{localFile, UserFile(env)}
	if root {
		list = append(list, serviceFile)
	}
	return list
}

// The packages' service has its settings in serviceFile and, unless they say otherwise, its data in
// serviceData.
const (
	serviceFile = "/etc/luanette/luanette.toml"
	serviceData = "/var/lib/luanette"
)

// UserFile returns the path of the user's own configuration file.
func UserFile(env Environment) string { return filepath.Join(UserFolder(env), "luanette.toml") }

func UserFolder(env Environment) string {
	if dir := env["XDG_CONFIG_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	return filepath.Join(env["HOME"], ".config", "luanette")
}

func dataFolder(env Environment) string {
	if dir := env["XDG_DATA_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	if home := env["HOME"]; home != "" {
		return filepath.Join(home, ".local", "share", "luanette")
	}
	return "luanette-data"
}

// UpstreamPlaces returns where each upstream is configured, as file:line, or as the file
// alone if the line is unknown.
func (l *Loaded) UpstreamPlaces() map[string]string {
	found := map[string]string{}
	for _, path := range l.MCP.Import {
		path = l.beside(path)
		text, _ := os.ReadFile(path) // the parser reports an unreadable file
		for name, line := range serverLines(string(text)) {
			if found[name] == "" {
				found[name] = fmt.Sprintf("%s:%d", path, line)
			}
		}
	}
	if l.File == "" {
		return found
	}
	text, _ := os.ReadFile(l.File)
	lines := toml.Lines(text, "upstreams")
	for name := range l.Upstreams {
		found[name] = l.File
		if line := lines[name]; line > 0 {
			found[name] = fmt.Sprintf("%s:%d", l.File, line)
		}
	}
	return found
}

var memberName = lazyregexp.New(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*\{`)

// serverLines returns the line on which an mcpServers file first names each object. Its
// servers are objects.
func serverLines(text string) map[string]int {
	lines := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, m := range memberName().FindAllStringSubmatch(line, -1) {
			if lines[m[1]] == 0 {
				lines[m[1]] = number
			}
		}
	}
	return lines
}

// MakeDataFolder creates the data folder if it does not exist. Root is refused in that of another
// user, who could not read what root stores there.
func MakeDataFolder(path string) error {
	if fileowner.Foreign(path) {
		return fault.New(fault.Config, "the data folder %s belongs to %s, and no server runs on it through which root can act", path, fileowner.Name(path)).
			WithHint("start the service, such as by `systemctl start luanette`, or run the command as that user")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "create data folder").
			WithHint("choose a folder you may write to with --data or LUANETTE_DATA")
	}
	return nil
}

// DatabaseFile is the name of the database file in the data folder.
const DatabaseFile = "luanette.db"

// Folder is the absolute path of a folder in the data folder.
func (c *Config) Folder(name string) string {
	path, err := filepath.Abs(filepath.Join(c.Data, name))
	if err != nil {
		return filepath.Join(c.Data, name)
	}
	return path
}

// TempFolder holds the temporary folders of scripts, whose files they may upload.
func (c *Config) TempFolder() string { return c.Folder("temp") }

// Isolate removes what reaches out of the process, for tests: upstreams that are not
// recordings, files of other programs, and the rights of scripts outside of the sandbox.
func (c *Config) Isolate() {
	maps.DeleteFunc(c.Upstreams, func(_ string, u Upstream) bool { return u.Mock == "" })
	c.MCP.Import = nil
	c.Telemetry.OTLPEndpoint = ""
	s := &c.Scripts
	s.Startup, s.Read, s.Write, s.Env, s.Commands, s.HTTPHosts = "", nil, nil, nil, nil, nil
}
