// Package profile says what a program that we start may reach.
package profile

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// Level is how much is closed before the lists of a Profile open something again.
type Level string

// The levels. The empty level is Off.
const (
	// Off starts the program as it is.
	Off Level = "off"
	// Open lets it read everything but the folders of Secrets, write to its own and the
	// given folders, and use the network.
	Open Level = "open"
	// Strict shows it its own folders, its program and the given folders only; network
	// only to the given hosts.
	Strict Level = "strict"
)

// Profile is what one program may reach.
type Profile struct {
	Name  string // of the server, the tool or the script's programs; names its private folders
	Level Level

	// Read and Write are folders or files that it may read, or read and write, besides
	// what its level gives. They are absolute.
	Read, Write []string

	// Network are the hosts that it may connect to, as host:port; *.example.org:443 is
	// all names below example.org. Only Strict heeds it.
	Network []string

	// Exec allows programs from folders that it may write to, and from memory: package
	// runners and compilers at run time need it. Open always allows it.
	Exec bool

	// Sockets allows Unix sockets. Open always allows them.
	Sockets bool

	// Require refuses the start where the kernel cannot do all of the level.
	Require bool

	Limits Limits

	// Credentials are secrets that it uses without having them, at every level.
	Credentials []Credential
}

// Limits are what a program with its children may use. Zero is the default of the level.
type Limits struct {
	Memory    int64         // bytes of all processes
	CPU       float64       // processors, 0.5 is half of one; needs a cgroup
	Processes int           // processes, and threads of each
	Files     int           // open files of each process
	Time      time.Duration // processor time of each process
	Disk      int64         // bytes of the private folders
}

// Active reports whether the profile restricts anything.
func (p Profile) Active() bool { return p.Level != "" && p.Level != Off }

// Equal reports whether nothing differs.
func (p Profile) Equal(other Profile) bool {
	return p.Name == other.Name && p.Level == other.Level && p.Exec == other.Exec && p.Sockets == other.Sockets &&
		p.Require == other.Require && p.Limits == other.Limits &&
		slices.Equal(p.Read, other.Read) && slices.Equal(p.Write, other.Write) && slices.Equal(p.Network, other.Network) &&
		slices.EqualFunc(p.Credentials, other.Credentials, Credential.Equal)
}

// Engines that run containers, for Level "docker:IMAGE" and "podman:IMAGE".
const (
	Docker = "docker"
	Podman = "podman"
)

// Container is the engine and the image of a level that is a container.
func (l Level) Container() (engine, image string, is bool) {
	engine, image, found := strings.Cut(string(l), ":")
	return engine, image, found && (engine == Docker || engine == Podman) && image != ""
}

// Check refuses a level that does not exist.
func (l Level) Check() error {
	if _, _, is := l.Container(); is || l == "" || l == Off || l == Open || l == Strict {
		return nil
	}
	return fault.New(fault.Config, "there is no sandbox level %q", string(l)).
		WithHint("use off, open, strict, docker:IMAGE or podman:IMAGE; docs/sandbox.md")
}

// Credential is a secret that a program uses without having it: its variable has a
// placeholder, which the gateway replaces in requests to the hosts.
type Credential struct {
	Name     string
	Variable string      // of the program's environment
	Value    secret.Text // a reference to the secret, or the secret itself
	Hosts    []string
}

// Equal reports whether nothing differs.
func (c Credential) Equal(other Credential) bool {
	return c.Name == other.Name && c.Variable == other.Variable && c.Value.Reveal() == other.Value.Reveal() && slices.Equal(c.Hosts, other.Hosts)
}

// Secrets are the folders and files with credentials that no program may read unless its
// profile names them: below a home folder, and of the system. Those of the current user's
// session are included by the user's id.
func Secrets(home string, uid int) []string {
	paths := []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/wireguard",
		"/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key",
		"/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/rancher", "/var/spool/cron", "/run/secrets", "/run/credentials",
		// sockets by which a program gets more than its user's rights
		"/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/dbus", "/run/snapd.socket", "/run/snapd-snap.socket", "/run/systemd/private",
		"/run/libvirt", "/run/lxd.socket", "/var/snap/lxd", "/run/user/" + strconv.Itoa(uid),
	}
	if home == "" || home == "/" {
		return paths
	}
	for _, name := range homeSecrets() {
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}

// homeSecrets are the secret paths of a home folder.
func homeSecrets() []string {
	return []string{
		// keys and logins of programs
		".ssh", ".gnupg", ".pki", ".aws", ".azure", ".config/gcloud", ".config/doctl", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op",
		".config/rclone", ".config/sops", ".config/age", ".config/git/credentials", ".config/containers/auth.json", ".config/github-copilot",
		".oci", ".bluemix", ".terraform.d", ".kube", ".minikube", ".docker/config.json", ".docker/run", ".netrc", ".git-credentials", ".npmrc", ".yarnrc.yml",
		".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".composer/auth.json", ".m2/settings.xml",
		".gradle/gradle.properties", ".pgpass", ".my.cnf", ".vault-token", ".boto", ".s3cfg", ".password-store", ".local/share/keyrings",
		".local/share/kwalletd", ".config/keepassxc", ".config/Bitwarden", ".config/1Password", ".vscode-server/data/User/globalStorage",
		// agents and their conversations
		".claude", ".claude.json", ".codex", ".gemini", ".config/Claude", ".cursor",
		// browsers and mail
		".mozilla", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
		".config/vivaldi", ".config/opera", ".librewolf", ".var/app", "snap/firefox", "snap/chromium", ".cache/mozilla", ".cache/google-chrome", ".cache/chromium",
		".config/Signal", ".config/Slack", ".config/discord",
		// what was typed
		".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".lesshst",
	}
}
