package clientfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// File is a file of a client. It need not exist.
type File struct {
	Client  Client
	Path    string
	Project string // the folder of the project it belongs to; "" means the user's own
}

// Source returns how to read it.
func (f File) Source(system System) Source {
	keys := f.Client.Keys
	if f.Client.Own && f.owned() {
		keys = nil // a file of its own may be in any client's shape
	}
	return Source{Path: f.Path, Syntax: SyntaxOf(f.Path), Keys: keys, Variables: f.Client.Variables, Home: system.Home, Project: f.Project}
}

// owned reports whether the file is one of Continue's files with one list each.
func (f File) owned() bool { return filepath.Base(filepath.Dir(f.Path)) == "mcpServers" }

// Files returns the files of a client, the user's own first.
func (c Client) Files(system System) []File {
	var files []File
	add := func(project string, paths ...string) {
		for _, path := range paths {
			files = append(files, File{c, path, project})
		}
	}
	add("", c.User(system)...)
	if c.Keys[0] == "servers" { // VS Code has a file per profile, too
		more, _ := filepath.Glob(filepath.Join(filepath.Dir(c.User(system)[0]), "profiles", "*", "mcp.json"))
		add("", more...)
	}
	for _, path := range c.Project {
		add(system.Dir, filepath.Join(system.Dir, filepath.FromSlash(path)))
	}
	if c.Own {
		for _, folder := range []string{system.Home, system.Dir} {
			own, _ := filepath.Glob(filepath.Join(folder, ".continue", "mcpServers", "*.*"))
			add("", own...)
		}
	}
	seen := map[string]bool{} // the current folder may be the home folder
	return slices.DeleteFunc(files, func(f File) bool {
		twice := seen[f.Path]
		seen[f.Path] = true
		return twice
	})
}

// Target returns the file that our entry is written to: the first that exists, or the
// first.
func (c Client) Target(system System, project bool) (File, error) {
	if project && len(c.Project) == 0 {
		return File{}, fault.New(fault.InvalidParams, "%s has no files of projects", c.Title).WithHint("omit --project")
	}
	if c.Own {
		return File{Client: c, Path: filepath.Join(system.Home, ".continue", "mcpServers", "luanette.json")}, nil
	}
	files := slices.DeleteFunc(c.Files(system), func(f File) bool { return (f.Project != "") != project })
	for _, f := range files {
		if _, err := os.Stat(f.Path); err == nil {
			return f, nil
		}
	}
	return files[0], nil
}

// Found is a file with its servers, or the reason why they cannot be read.
type Found struct {
	File
	Servers []Server
	Err     error
}

// Discover reads all files of clients that exist.
func Discover(system System, clients []Client) []Found {
	var found []Found
	for _, c := range clients {
		for _, f := range c.Files(system) {
			servers, err := f.Read(system)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			found = append(found, Found{f, servers, err})
		}
	}
	return found
}

// Read reads the servers of a file.
func (f File) Read(system System) ([]Server, error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	source := f.Source(system)
	if source.Keys == nil && len(text) == 0 {
		return nil, nil
	}
	return Parse(text, source)
}

// Key is the name of our entry in the files of clients.
const Key = "luanette"

// Ours reports whether a server is Luanette itself: its name is ours, or its command.
func (s Server) Ours() bool {
	program := filepath.Base(s.Spec.Command)
	return s.Key == Key || (program == "luanette" || program == "luanette.exe") && slices.Contains(s.Spec.Args, "stdio")
}
