package profile

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
