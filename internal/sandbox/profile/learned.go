package profile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Use is something that a traced program did, or tried.
type Use struct {
	Action, Object string // as in Refusal

	Refused bool // it was not possible in the trace
	Base    bool // every strict sandbox allows it
	Own     bool // it is about a folder that every sandbox has for itself
	Sought  bool // it was looked for in the private home, and only the user's home has it
}

// Trace collects what programs do. The zero value is ready to use.
type Trace struct {
	mu   sync.Mutex
	uses map[Use]bool
}

// Add adds a use.
func (t *Trace) Add(u Use) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses == nil {
		t.uses = map[Use]bool{}
	}
	t.uses[u] = true
}

// Uses are all different uses, in order.
func (t *Trace) Uses() []Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Use, 0, len(t.uses))
	for u := range t.uses {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Use) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Action, b.Action)) })
	return list
}

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

// TOML is the table of the upstream with the smallest profile. Comments say what each
// line is for, and what is left for a person to decide. It has no contents of files and
// no values of variables.
func (l Learned) TOML() string {
	p := l.Smallest()
	var out strings.Builder
	fmt.Fprintf(&out, "[upstreams.%s]\nsandbox = %q\n", tomlKey(l.Name), string(Strict))
	l.writeList(&out, "read", p.Read, l.readReason)
	l.writeList(&out, "write", p.Write, l.writeReason)
	l.writeList(&out, "network", p.Network, l.hostReason)
	if p.Exec {
		fmt.Fprintf(&out, "exec = true  # it executed %s\n", l.first(func(u Use) bool { return u.Action == Executing && u.Own && !u.Base }, "code in memory"))
	}
	if p.Sockets {
		fmt.Fprintf(&out, "sockets = true  # it connected to %s\n", l.first(isSocket, "a Unix socket"))
	}
	l.writeRemarks(&out, p)
	return out.String()
}

func (l Learned) writeList(out *strings.Builder, key string, values []string, reason func(string) string) {
	if len(values) == 0 {
		return
	}
	out.WriteString(key + " = [\n")
	for _, value := range values {
		fmt.Fprintf(out, "    %s,  # %s\n", quote(l.short(value)), comment(reason(value)))
	}
	out.WriteString("]\n")
}

// short writes the home folder as ~, as the configuration reads it.
func (l Learned) short(path string) string {
	if rest, below := strings.CutPrefix(path, l.Home+"/"); below && l.Home != "" {
		return "~/" + rest
	}
	return path
}

// readReason says why a path is to be read.
func (l Learned) readReason(path string) string {
	if slices.Contains(l.Arguments, path) {
		return "an argument or a variable names it"
	}
	return l.count(path, "read", func(u Use) bool { return u.Action == Reading || u.Action == Executing })
}

// writeReason says why a folder is to be written to.
func (l Learned) writeReason(path string) string {
	text := l.count(path, "written", func(u Use) bool { return u.Action == Writing })
	if text == "" {
		return "an argument or a variable names it; nothing was written"
	}
	if l.refusedIn(path) {
		text += "; refused in this trace"
	}
	return text
}

func (l Learned) hostReason(host string) string {
	if slices.Contains(l.Hosts, host) {
		return "it connected to this host"
	}
	return "it tried to connect; refused in this trace"
}

// count says how many files of a folder were used.
func (l Learned) count(path, done string, is func(Use) bool) string {
	files := map[string]bool{}
	for _, u := range l.Uses {
		if is(u) && !u.Base && !u.Sought && within(u.Object, []string{path}) {
			files[u.Object] = true
		}
	}
	switch {
	case len(files) == 0:
		return ""
	case len(files) == 1 && files[path]:
		return done
	case len(files) == 1:
		return "1 file " + done
	}
	return fmt.Sprintf("%d files %s", len(files), done)
}

func (l Learned) refusedIn(folder string) bool {
	return slices.ContainsFunc(l.Uses, func(u Use) bool { return u.Refused && u.Action == Writing && within(u.Object, []string{folder}) })
}

// first is the object of the first use of a kind.
func (l Learned) first(is func(Use) bool, otherwise string) string {
	if at := slices.IndexFunc(l.Uses, is); at >= 0 {
		return comment(l.Uses[at].Object)
	}
	return otherwise
}

// writeRemarks writes what the profile does not have, and why.
func (l Learned) writeRemarks(out *strings.Builder, p Profile) {
	if programs := l.objects(func(u Use) bool { return u.Action == Executing && !u.Refused }); len(programs) > 0 {
		fmt.Fprintf(out, "# Programs that were started: %s\n", comment(strings.Join(programs, ", ")))
	}
	for _, u := range l.Uses {
		if !u.Base && l.withheld(u) {
			out.WriteString("# " + comment(l.decision(u)) + "\n")
		}
	}
	if direct := l.objects(func(u Use) bool { return u.Action == Connecting && !isSocket(u) && !u.Refused }); len(direct) > 0 {
		fmt.Fprintf(out, "# Without the proxy it connected to %s: strict allows hosts by name only, docs/network.md\n", comment(strings.Join(direct, ", ")))
	}
	if unused := l.unused(p); len(unused) > 0 {
		fmt.Fprintf(out, "# Configured, and not used in this trace: %s\n", comment(strings.Join(unused, ", ")))
	}
	if slices.ContainsFunc(l.Uses, func(u Use) bool { return u.Refused && !u.Sought && !l.withheld(u) }) {
		out.WriteString("# Something was refused in this trace, and what follows it was not seen: use these lines and trace again\n")
	}
}

// decision says what a person has to decide.
func (l Learned) decision(u Use) string {
	allow := NewRefusal(time.Time{}, Profile{Name: l.Name}, u.Action, l.short(u.Object)).Allow
	switch {
	case u.Sought:
		return "It looked in its home for a file that only yours has. To give it: " + allow
	case l.hidden(u.Object):
		return "It tried to " + u.Action + " credentials. To allow it: " + allow
	}
	return "It tried to " + u.Action + " a folder that holds too much. To allow it: " + allow
}

// unused are paths and hosts of the configuration that the profile does not have.
func (l Learned) unused(p Profile) (list []string) {
	for _, path := range slices.Concat(l.Given.Read, l.Given.Write) {
		if !slices.ContainsFunc(slices.Concat(p.Read, p.Write), func(kept string) bool {
			return within(kept, []string{path}) || within(path, []string{kept})
		}) {
			list = append(list, path)
		}
	}
	for _, host := range l.Given.Network {
		if !slices.Contains(p.Network, host) {
			list = append(list, host)
		}
	}
	return unique(list)
}

func (l Learned) objects(is func(Use) bool) (list []string) {
	for _, u := range l.Uses {
		if is(u) {
			list = append(list, u.Object)
		}
	}
	return unique(list)
}

// comment is a text without what would end a comment: names of files may contain anything.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}

// tomlKey is a name as part of a table's name.
func tomlKey(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return name
	}
	return quote(name)
}
