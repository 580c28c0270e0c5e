package profile

import (
	"slices"
	"testing"
)

func TestSmallestProfile(t *testing.T) {
	t.Parallel()
	l := Learned{
		Name: "x", Home: "/home/ada", UserID: 1000,
		Given:     Profile{Read: []string{"/opt/data"}, Write: []string{"/home/ada/notes", "/srv/unused"}, Network: []string{"old.example:443"}},
		Arguments: []string{"/data"},
		Hosts:     []string{"api.example:443", "api.example:443"},
		Uses: []Use{
			{Action: Reading, Object: "/usr/lib/libc.so", Base: true},
			{Action: Executing, Object: "/usr/bin/git", Base: true},
			{Action: Reading, Object: "/home/ada/.ssh/id_ed25519", Refused: true},
			{Action: Reading, Object: "/home/ada/.gitconfig", Refused: true, Sought: true},
			{Action: Reading, Object: "/home/ada"},
			{Action: Reading, Object: "/home/ada/project/a.txt"},
			{Action: Reading, Object: "/opt/data/x/y"},
			{Action: Reading, Object: "/srv/d/1"}, {Action: Reading, Object: "/srv/d/2"}, {Action: Reading, Object: "/srv/d/3"}, {Action: Reading, Object: "/srv/d/4"},
			{Action: Writing, Object: "/home/ada/notes/deep/a.md"}, {Action: Writing, Object: "/home/ada/notes"},
			{Action: Writing, Object: "/var/lib/x/state.json", Refused: true}, {Action: Reading, Object: "/var/lib/x/state.json"},
			{Action: Writing, Object: "/new.txt", Refused: true},
			{Action: Executing, Object: "/private/cache/npx/server", Own: true},
			{Action: Connecting, Object: "unix:/run/x.sock"}, {Action: Connecting, Object: "192.0.2.1:443"},
			{Action: Connecting, Object: "db.example:5432", Refused: true},
		},
	}
	const want = `[upstreams.x]
sandbox = "strict"
read = [
    "/data",  # an argument or a variable names it
    "~/project/a.txt",  # read
    "/opt/data",  # 1 file read
    "/srv/d",  # 4 files read
]
write = [
    "~/notes",  # 2 files written
    "/var/lib/x",  # 1 file written; refused in this trace
]
network = [
    "api.example:443",  # it connected to this host
    "db.example:5432",  # it tried to connect; refused in this trace
]
exec = true  # it executed /private/cache/npx/server
sockets = true  # it connected to unix:/run/x.sock
# Programs that were started: /private/cache/npx/server, /usr/bin/git
# It tried to read credentials. To allow it: read = ["~/.ssh/id_ed25519"]
# It looked in its home for a file that only yours has. To give it: read = ["~/.gitconfig"]
# It tried to read a folder that holds too much. To allow it: read = ["/home/ada"]
# It tried to write a folder that holds too much. To allow it: write = ["/"]
# Without the proxy it connected to 192.0.2.1:443: strict allows hosts by name only, docs/network.md
# Configured, and not used in this trace: /srv/unused, old.example:443
# Something was refused in this trace, and what follows it was not seen: use these lines and trace again
`
	if got := l.TOML(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestSmallestProfileIsTOMLWhateverFilesAreCalled tries names that would end a text or a comment.
func TestSmallestProfileIsTOMLWhateverFilesAreCalled(t *testing.T) {
	t.Parallel()
	l := Learned{Name: "a b", Home: "/home/ada", Uses: []Use{
		{Action: Reading, Object: "/srv/d/a\"]\nsandbox = \"off\"\x07"},
		{Action: Executing, Object: "/srv/d/run\nexec = true", Base: true},
	}}
	const want = `[upstreams."a b"]
sandbox = "strict"
read = [
    "/srv/d/a\"]\nsandbox = \"off\"\u0007",  # read
]
# Programs that were started: /srv/d/run?exec = true
`
	if got := l.TOML(); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestManyFilesBecomeTheirFolder(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, folder := range []string{"a", "b", "c", "d"} {
		for _, file := range []string{"1", "2", "3", "4"} {
			paths = append(paths, "/srv/tree/"+folder+"/"+file)
		}
	}
	paths = append(paths, "/srv/other/1", "/srv/other/2")
	if got := (Learned{Home: "/home/ada"}).gathered(paths); !slices.Equal(got, []string{"/srv/other/1", "/srv/other/2", "/srv/tree"}) {
		t.Errorf("got %v", got)
	}
}
