package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// program is one that tool servers are often started with.
type program struct {
	name    string
	with    []string // other commands that come with it
	args    []string // that print its version
	install string
}

var programs = []program{
	{"node", []string{"npx", "npm"}, []string{"--version"}, "install Node.js: https://nodejs.org"},
	{"uv", []string{"uvx"}, []string{"--version"}, "install uv: https://docs.astral.sh/uv"},
	{"python3", []string{"python", "pip", "pipx"}, []string{"--version"}, "install Python 3: https://www.python.org"},
	{"docker", nil, []string{"--version"}, "install Docker: https://docs.docker.com/get-docker"},
}

// versionTimeout limits how long a program may take to print its version.
const versionTimeout = 10 * time.Second

// programs reports the programs that tool servers are started with. One that is missing is
// a problem only if an upstream needs it.
func (d *doctor) programs(ctx context.Context) {
	users := d.users()
	for _, p := range programs {
		d.program(ctx, p, users)
	}
}

// users returns the upstreams that start each command, by its name.
func (d *doctor) users() map[string][]string {
	users := map[string][]string{}
	specs, _, err := d.Config.UpstreamSpecs(d.Env)
	if err != nil {
		return users // the check of the configuration reported it
	}
	for _, spec := range specs {
		if command := strings.TrimSuffix(filepath.Base(spec.Command), ".exe"); spec.Command != "" {
			users[command] = append(users[command], spec.Name)
		}
	}
	return users
}

func (d *doctor) program(ctx context.Context, p program, users map[string][]string) {
	needed := users[p.name]
	for _, other := range p.with {
		needed = append(needed, users[other]...)
	}
	version, err := d.version(ctx, p.name, p.args...)
	switch {
	case err == nil:
		d.ok(p.name, "%s", version)
		if p.name == "docker" && len(needed) > 0 {
			d.dockerDaemon(ctx, needed)
		}
	case len(needed) > 0:
		d.report(Finding{p.name, Problem, fmt.Sprintf("%v, and needed by %s", err, strings.Join(needed, ", ")), p.install})
	default:
		d.report(Finding{p.name, Note, "not found; no upstream needs it", ""})
	}
}

// dockerDaemon checks that Docker can start containers.
func (d *doctor) dockerDaemon(ctx context.Context, needed []string) {
	if _, err := d.version(ctx, "docker", "version", "--format", "{{.Server.Version}}"); err != nil {
		d.report(Finding{"docker", Problem, fmt.Sprintf("its daemon does not answer, and is needed by %s", strings.Join(needed, ", ")), "start Docker"})
	}
}

// version runs a program, found as upstreams find it, and returns the first line it prints.
func (d *doctor) version(ctx context.Context, name string, args ...string) (string, error) {
	path := d.lookPath(name)
	if path == "" {
		return "", fmt.Errorf("not found in PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	for key, value := range d.Env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s does not work: %w", path, err)
	}
	first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(first), nil
}

// lookPath finds a program in the PATH of the environment.
func (d *doctor) lookPath(name string) string {
	for _, folder := range filepath.SplitList(d.Env["PATH"]) {
		path := filepath.Join(folder, name)
		if runtime.GOOS == "windows" {
			path += ".exe"
		}
		if found, err := exec.LookPath(path); err == nil && filepath.IsAbs(path) {
			return found
		}
	}
	return ""
}
