// Package doctor examines an installation: configuration, stored data, addresses,
// upstreams, clients and the programs that they need. Each finding is fine, or says what
// to do.
package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// States of findings.
const (
	OK      = "ok"
	Note    = "note"    // nothing is wrong, but one may want to know
	Warning = "warning" // it works, and something should be done
	Problem = "problem" // something does not work
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // what was examined
	State string `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do
}

// Options are what is examined.
type Options struct {
	Config  *config.Loaded
	Env     config.Environment
	Version string
	Place   attach.Place  // where a running server can be found
	Timeout time.Duration // of each upstream
	// Server is the address of a server to ask, wherever it runs; "": what is here is examined.
	Server string
	Access client.Access // to Server
}

// doctor examines one installation.
type doctor struct {
	Options
	server  *attach.Server // the running server of the data folder; nil if there is none
	api     serverapi.API  // of the running server; without a base if there is none
	foreign bool           // we are root, and the data folder is another user's
	report  func(Finding)
}

// Examine runs all checks and reports their findings in order, as they are found.
func Examine(ctx context.Context, o Options, report func(Finding)) {
	d := &doctor{Options: o, report: report}
	checks := []func(context.Context){
		d.configuration, d.dataFolder, d.database, d.backups, d.keys, d.address, d.health, d.publicURL, d.certificate, d.authorities, d.sealing, d.providers, d.telemetry, d.clock,
		d.sandbox, d.upstreams, d.clients, d.programs,
	}
	if o.Server != "" {
		checks = []func(context.Context){d.health, d.keys, d.upstreams}
	}
	if err := d.find(ctx); err != nil {
		d.failed("server", err)
		return
	}
	for _, check := range checks {
		if ctx.Err() != nil {
			return
		}
		check(ctx)
	}
}

// find finds the running server: the one that is named, or that of the data folder.
func (d *doctor) find(ctx context.Context) (err error) {
	if d.Server != "" {
		d.api, err = serverapi.Connect(d.Server, d.Access)
		return err
	}
	d.foreign = fileowner.Foreign(d.Config.Data)
	if found, err := attach.Find(ctx, d.Place, d.Config.File == ""); err == nil {
		d.server = &found
		d.api, err = serverapi.Connect(found.Address(), client.Access{})
		return err
	}
	return nil
}

// serves reports whether there is a running server to ask.
func (d *doctor) serves() bool { return d.api.Base != "" }

// get asks the running server. The answer may also be that of an error.
func (d *doctor) get(ctx context.Context, path string) (json.RawMessage, error) {
	request, err := serverapi.NewRequest(ctx, http.MethodGet, d.api.Base+path, nil)
	if err != nil {
		return nil, err
	}
	return d.api.Answer(request)
}

// Unreadable is the finding about a configuration that cannot be read.
func Unreadable(err error) Finding {
	return Finding{"configuration", Problem, err.Error(), fault.HintOf(err)}
}

func (d *doctor) ok(check, format string, args ...any) {
	d.report(Finding{check, OK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) failed(check string, err error) {
	d.report(Finding{check, Problem, err.Error(), cmp.Or(fileowner.Denied(err), fault.HintOf(err))})
}

// configuration reports the file, its warnings and what in it is not trusted.
func (d *doctor) configuration(context.Context) {
	file := d.Config.File
	if file == "" {
		file = "none, all defaults; " + config.UserFile(d.Env) + " is read when it exists"
	}
	d.ok("configuration", "%s", file)
	for _, warning := range d.Config.Warnings {
		d.report(Finding{"configuration", Warning, warning, "change it in " + d.Config.File})
	}
	for _, item := range d.Config.Withheld() {
		d.report(Finding{"configuration", Warning, item.Key + " is ignored, since the file came with the folder: " + item.Does, "if you want that, run `luanette trust`"})
	}
	if _, warnings, err := d.Config.UpstreamSpecs(d.Env); err != nil {
		d.failed("configuration", err)
	} else if !d.foreign { // the service has variables of its own

		for _, warning := range warnings {
			d.report(Finding{"configuration", Warning, warning, "set the variable, or change it in the file"})
		}
	}
}

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

// clients reports the MCP clients in which luanette is installed, and whether they find it.
func (d *doctor) clients(context.Context) {
	folder, err := os.Getwd()
	if err != nil {
		d.failed("clients", err)
		return
	}
	system := clientfile.System{
		OS: runtime.GOOS, Home: cmp.Or(d.Env["HOME"], d.Env["USERPROFILE"]), Dir: folder,
		Getenv: func(name string) string { return d.Env[name] },
	}
	installed := false
	for _, found := range clientfile.Discover(system, clientfile.Clients) {
		if found.Err != nil {
			d.report(Finding{"client " + found.Client.Name, Warning, fmt.Sprintf("%s cannot be read: %v", found.Path, found.Err), "repair the file; the client may not read it either"})
			continue
		}
		for _, server := range found.Servers {
			if server.Ours() {
				installed = true
				d.client(found.File, server)
			}
		}
	}
	if !installed {
		d.report(Finding{"clients", Note, "installed in no client; `luanette install` lists those on this machine", ""})
	}
}

// client checks one entry of a client.
func (d *doctor) client(file clientfile.File, server clientfile.Server) {
	check, command := "client "+file.Client.Name, server.Spec.Command
	fix := "write the whole path of luanette into the file, or remove the entry and type: luanette install " + file.Client.Name
	switch {
	case command == "":
		d.ok(check, "%s: %s", file.Path, server.Spec.Target())
	case filepath.IsAbs(command) && !isProgram(command):
		d.report(Finding{check, Problem, fmt.Sprintf("%s starts %s, which is no program", file.Path, command), fix})
	case !filepath.IsAbs(command) && d.lookPath(command) == "":
		d.report(Finding{check, Problem, fmt.Sprintf("%s starts %s, which is not in PATH", file.Path, command), fix})
	case !filepath.IsAbs(command) && file.Client.Desktop:
		d.report(Finding{check, Warning, fmt.Sprintf("%s starts %s without its path, and %s may have another PATH than your shell", file.Path, command, file.Client.Title), fix})
	default:
		d.ok(check, "%s: %s", file.Path, server.Spec.Target())
	}
}

// isProgram reports whether a path is that of a program.
func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// sandbox reports what the sandbox can do here. What is missing is a problem only if an
// upstream needs it.
func (d *doctor) sandbox(context.Context) {
	support := d.Config.Launcher(d.Env).Support()
	missing := support.Missing()
	if len(missing) == 0 {
		d.ok("sandbox", "namespaces, Landlock and filters of system calls work; %s", support.LimitedBy())
		return
	}
	state, needed := Note, ""
	if specs, _, err := d.Config.UpstreamSpecs(d.Env); err == nil {
		for _, spec := range specs {
			if spec.Profile.Require || spec.Profile.Level == profile.Strict {
				state, needed = Problem, fmt.Sprintf("; %s needs it", spec.Name)
			}
		}
	}
	for _, line := range missing {
		d.report(Finding{"sandbox", state, line + needed, "docs/sandbox.md says what each system needs"})
	}
}
