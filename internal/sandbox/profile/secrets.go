package profile

import (
	"path/filepath"
	"strconv"
)

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
