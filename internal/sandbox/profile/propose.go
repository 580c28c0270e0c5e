package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Start is how a program is started, as far as a profile can be guessed from it.
type Start struct {
	Command string
	Args    []string
	Env     map[string]string // that it is given besides the usual variables
	Dir     string            // working folder, absolute
	Home    string            // the user's
	UserID  int
}

// Propose is the profile for a program that nothing is known of but its start: open, with
// the folders and files that its arguments and variables name. Programs that exist to use
// what open hides are not limited.
func (s Start) Propose() Profile {
	if slices.Contains([]string{Docker, Podman, "nerdctl", "ssh"}, filepath.Base(s.Command)) {
		return Profile{Level: Off}
	}
	p := Profile{Level: Open}
	for _, path := range s.paths() {
		switch {
		case s.secret(path):
			p.Read = append(p.Read, path)
		case isFolder(path):
			p.Write = append(p.Write, path)
		case isData(path) && tooWide(filepath.Dir(path), s.Home):
			p.Write = append(p.Write, path)
		case isData(path):
			p.Write = append(p.Write, filepath.Dir(path))
		}
	}
	p.Read, p.Write = unique(p.Read), unique(p.Write)
	return p
}

// paths are the existing paths, and new files of existing folders, among the arguments and
// the variables.
func (s Start) paths() (paths []string) {
	for _, arg := range s.Args {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if path := s.path(arg); path != "" {
			paths = append(paths, path)
		}
	}
	for _, value := range s.Env {
		if !filepath.IsAbs(value) { // a word such as "data" is rarely a folder
			continue
		}
		if path := s.path(value); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// path is a text as an absolute path, if it is one.
func (s Start) path(text string) string {
	if text == "" || strings.Contains(text, "://") || strings.ContainsAny(text, "\n\x00") {
		return ""
	}
	path := filepath.Clean(text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	if path == "/" || !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Stat(path); err != nil && !isNewFile(text) {
		return ""
	}
	return path
}

// isNewFile reports whether a text is the path of a file that the program will make.
func isNewFile(text string) bool {
	return filepath.IsAbs(text) && filepath.Ext(text) != "" && isFolder(filepath.Dir(text))
}

// secret reports whether a path is hidden unless it is named.
func (s Start) secret(path string) bool { return within(path, Secrets(s.Home, s.UserID)) }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isData reports whether a file is there to be changed: neither a program nor settings.
func isData(path string) bool {
	if strings.Contains(path, "/node_modules/") {
		return false
	}
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 != 0) {
		return false
	}
	name := strings.ToLower(filepath.Base(path))
	if strings.Contains(name, "config") || strings.Contains(name, "setting") || strings.Contains(name, "credential") {
		return false
	}
	switch filepath.Ext(name) {
	case ".db", ".sqlite", ".sqlite3", ".duckdb", ".json", ".jsonl", ".ndjson", ".csv", ".log", ".txt", ".md":
		return true
	}
	return false
}
