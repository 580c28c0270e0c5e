package profile

import (
	"path/filepath"
	"slices"
	"strings"
)

// Learned is what the trace of a program has shown.
type Learned struct {
	Name      string
	Given     Profile  // of the configuration: its lists are kept where something of them was used
	Arguments []string // folders that its arguments and variables name
	Home      string   // the user's
	UserID    int
	Uses      []Use
	Hosts     []string // host:port that it reached through the proxy
}

// Smallest is the smallest strict profile that allows what the program did.
func (l Learned) Smallest() Profile {
	p := Profile{Name: l.Name, Level: Strict, Network: slices.Clone(l.Hosts)}
	for _, u := range l.Uses {
		if u.Base || l.withheld(u) {
			continue
		}
		switch {
		case u.Action == Writing:
			p.Write = append(p.Write, l.written(u.Object))
		case u.Action == Reading, u.Action == Executing && !u.Own:
			p.Read = append(p.Read, around(u.Object, slices.Concat(l.Given.Read, l.Given.Write, l.Arguments)))
		case u.Action == Executing, u.Object == "memfd_create":
			p.Exec = true
		case isSocket(u):
			p.Sockets = true
		case u.Action == Connecting && u.Refused:
			p.Network = append(p.Network, u.Object)
		}
	}
	p.Network = unique(p.Network)
	for _, folder := range l.Arguments {
		if within(folder, l.Given.Write) {
			p.Write = append(p.Write, folder)
		} else {
			p.Read = append(p.Read, folder)
		}
	}
	p.Write = l.gathered(p.Write)
	p.Read = slices.DeleteFunc(l.gathered(p.Read), func(path string) bool { return within(path, p.Write) })
	return p
}

// written is what must be writable for a file: what was given for it, or its folder, since
// programs replace files by renaming others.
func (l Learned) written(file string) string {
	if given := slices.Concat(l.Given.Write, l.Arguments); within(file, given) {
		return around(file, given)
	}
	return filepath.Dir(file)
}

// around is the one of the folders that contains a path, or the path itself.
func around(path string, folders []string) string {
	for _, folder := range folders {
		if within(path, []string{folder}) {
			return folder
		}
	}
	return path
}

// withheld reports whether a use is left out of the profile, for a person to decide: what
// holds credentials, and folders that hold everything.
func (l Learned) withheld(u Use) bool {
	switch {
	case u.Sought:
		return true
	case u.Action == Writing:
		return l.hidden(u.Object) || tooWide(filepath.Dir(u.Object), l.Home) && !l.given(u.Object)
	case u.Action == Reading, u.Action == Executing:
		return l.hidden(u.Object) || tooWide(u.Object, l.Home) && !l.given(u.Object)
	}
	return false
}

// hidden reports whether a path holds credentials that the configuration does not give.
func (l Learned) hidden(path string) bool {
	for _, secret := range Secrets(l.Home, l.UserID) {
		if within(path, []string{secret}) && !slices.ContainsFunc(slices.Concat(l.Given.Read, l.Given.Write), func(given string) bool {
			return within(path, []string{given}) && within(given, []string{secret})
		}) {
			return true
		}
	}
	return false
}

// given reports whether the configuration or an argument names a folder around the path.
func (l Learned) given(path string) bool {
	return within(path, slices.Concat(l.Given.Read, l.Given.Write, l.Arguments))
}

// most is how many files of a folder are listed one by one.
const most = 3

// gathered replaces many paths in one folder by the folder, and leaves out those that are
// inside of another.
func (l Learned) gathered(paths []string) []string {
	paths = unique(paths)
	for {
		count := map[string]int{}
		for _, path := range paths {
			count[filepath.Dir(path)]++
		}
		changed := false
		for i, path := range paths {
			if folder := filepath.Dir(path); count[folder] > most && !tooWide(folder, l.Home) {
				paths[i], changed = folder, true
			}
		}
		paths = unique(paths)
		if !changed {
			break
		}
	}
	all := slices.Clone(paths)
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(all, func(folder string) bool { return folder != path && within(path, []string{folder}) })
	})
}

// tooWide reports whether a folder holds more than what one program is for.
func tooWide(folder, home string) bool {
	switch folder {
	case home, filepath.Dir(home), "/var/tmp", "/usr/local", "/etc/ssl":
		return true
	}
	return strings.Count(folder, "/") < 2
}

func isSocket(u Use) bool { return u.Action == Connecting && strings.HasPrefix(u.Object, unixPrefix) }

func unique(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}
