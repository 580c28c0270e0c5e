package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// node is what a node says about itself.
type node struct {
	Version string `json:"version"`
	ABI     string `json:"abi"`
}

// askNode asks the node that a program finds for its version.
func askNode(start Start) (n node, err error) {
	path, err := findIn(start.Path, "node")
	if err != nil {
		return n, missing("node")
	}
	cmd := exec.Command(path, "-p", `JSON.stringify({version: process.version, abi: process.versions.modules})`) //nolint:noctx // it takes milliseconds
	cmd.Env = start.Install
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, fault.Wrap(fault.Unavailable, err, "ask %s for its version", path)
	}
	return n, nil
}

// missing says how to get node and npm on this system.
func missing(program string) error {
	return fault.Wrap(fault.Unavailable, exec.ErrNotFound, "%s is not installed", program).WithHint("%s", InstallHint(program))
}

// InstallHint says how a package runner is installed on this system.
func InstallHint(program string) string {
	name := map[string]string{"node": "nodejs", "npx": "npm", "uvx": "uv"}[program]
	if name == "" {
		name = program
	}
	if runtime.GOOS == "darwin" {
		return "install it with: brew install " + strings.Replace(strings.Replace(name, "nodejs", "node", 1), "npm", "node", 1)
	}
	if runtime.GOOS == "windows" {
		return "install it with: winget install " + map[bool]string{true: "astral-sh.uv", false: "OpenJS.NodeJS"}[name == "uv"]
	}
	for _, manager := range []struct{ file, line string }{
		{"/sbin/apk", "apk add "}, {"/usr/bin/apt-get", "apt-get install "}, {"/usr/bin/dnf", "dnf install "},
		{"/usr/bin/pacman", "pacman -S "}, {"/usr/bin/zypper", "zypper install "},
	} {
		if exists(manager.file) && (name != "uv" || manager.file == "/sbin/apk" || manager.file == "/usr/bin/pacman") {
			return "install it with: " + manager.line + name
		}
	}
	from := "install node with npm, from https://nodejs.org or your system's packages"
	if name == "uv" {
		from = "install uv as https://docs.astral.sh/uv says"
	}
	return from + "; of our container images, those whose tag ends with -servers have it"
}

// findIn finds a program in a PATH.
func findIn(path, name string) (string, error) {
	for _, folder := range strings.Split(path, string(os.PathListSeparator)) {
		if folder == "" {
			continue
		}
		if found, err := exec.LookPath(folder + string(os.PathSeparator) + name); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}
