package upstream

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/mcp/packages"
)

// Launch says what runs for the command of a spec, and why.
type Launch struct {
	Request packages.Request // what npx would run; without Specs the command is no such
	Reason  string           // why the command is started as it is written; empty: it is no package runner
}

// Installs reports whether the package is installed rather than run by npx.
func (l Launch) Installs() bool { return len(l.Request.Specs) > 0 && l.Reason == "" }

// Launch returns what runs for a spec.
func (o *Options) Launch(spec Spec) (Launch, error) {
	if _, _, container := spec.Profile.Level.Container(); container || o.Packages == nil || spec.Command == "" {
		return Launch{}, nil
	}
	env, err := o.childEnv(spec)
	if err != nil {
		return Launch{}, err
	}
	request, reason := packages.Parse(packages.Start{
		Command: spec.Command, Args: spec.Args, Env: env, Install: o.installEnv(spec, env), Dir: spec.Cwd,
		Path: o.searchPath(env), Scripts: spec.InstallScripts,
	})
	if reason == "" && len(request.Specs) > 0 && spec.Install == packages.Off {
		reason = `install = "off"`
	}
	return Launch{request, reason}, nil
}

// installEnv is the environment in which npm installs a package: what programs inherit, and
// npm's own settings of the upstream. The other variables of the upstream are not for npm.
func (o *Options) installEnv(spec Spec, env []string) []string {
	vars := o.inheritedBy(Spec{})
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			vars[name] = value
		}
	}
	for _, name := range o.namedInNPMRC(vars) {
		if value, set := o.Getenv(name); set {
			vars[name] = value
		}
	}
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

var variableForm = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\??\}`)

// namedInNPMRC are the variables that the user's settings of npm refer to, such as the token of a
// registry.
func (o *Options) namedInNPMRC(vars map[string]string) (names []string) {
	file := vars["HOME"] + "/.npmrc"
	for name, value := range vars {
		if strings.EqualFold(name, "npm_config_userconfig") {
			file = value
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for _, found := range variableForm().FindAllStringSubmatch(string(text), -1) {
		names = append(names, found[1])
	}
	return names
}

// findPackage installs the package that the command of the spec runs, unless it is installed, and
// has the attempt start its program. Nothing else counts as long: there is no time limit but that
// of npm, and no turn among the programs that start.
func (a *connectAttempt) findPackage(ctx context.Context) error {
	launch, err := a.opts.Launch(a.spec)
	if err != nil {
		return err
	}
	if !launch.Installs() {
		return nil
	}
	began := time.Now()
	before, _ := a.opts.Packages.Find(launch.Request)
	record, err := a.opts.Packages.Ensure(ctx, launch.Request, a.phase.installing)
	if packages.MayWorkByNPX(err) {
		a.log.WarnContext(ctx, "npx runs a package that cannot be installed", "error", err)
		a.phase.setLastLine("npx runs it: " + err.Error())
		return nil
	}
	if err != nil {
		return notSent(err)
	}
	if before.Folder != record.Folder {
		a.publish(Installed{Upstream: a.name, Package: record.Name, Version: record.Version, Seconds: int(time.Since(began).Seconds())})
	}
	a.use(launch.Request, record)
	return nil
}

// use has the attempt start an installed program.
func (a *connectAttempt) use(r packages.Request, record packages.Record) {
	program := a.opts.Packages.Program(r, record)
	a.phase.runs(record.Name + " " + record.Version)
	a.spec.installed = &installed{program, r, record, filepath.Join(a.opts.Packages.Folder(), record.Folder)}
}

// SwitchPackages starts the servers anew whose package has another version in effect now than
// before, and returns what has changed.
func (m *Manager) SwitchPackages(before, now map[string]packages.Record) (changes []Upgraded) {
	for _, c := range m.connections() {
		launch, err := m.opts.Launch(*c.spec.Load())
		if err != nil || !launch.Installs() {
			continue
		}
		was, installed := before[launch.Request.Key()]
		is := now[launch.Request.Key()]
		if !installed || is.Folder == "" || is.Folder == was.Folder {
			continue
		}
		change := Upgraded{c.name, is.Name, was.Version, is.Version}
		if m.Restart(c.name) == nil { // otherwise it was removed meanwhile
			m.opts.Events.PublishAbout(c.name, change)
			changes = append(changes, change)
		}
	}
	return changes
}

// installed is the program of a package that is started in place of the command of a spec.
type installed struct {
	packages.Program
	request packages.Request
	record  packages.Record
	folder  string
}

// isBelow reports whether the package is somewhere in a folder.
func (i *installed) isBelow(folder string) bool {
	return i != nil && strings.HasPrefix(i.folder, folder+string(filepath.Separator))
}

// looksBroken matches what a program of node writes when its installation is not complete.
var looksBroken = lazyregexp.New(`MODULE_NOT_FOUND|Cannot find (module|package)|EJSONPARSE|Unexpected end of JSON input|ERR_INVALID_PACKAGE_CONFIG`)

// repair installs the package anew if the error of a start says that its installation is broken.
// It does so once for each installation.
func (a *connectAttempt) repair(ctx context.Context, failed error) (repaired bool) {
	now := a.spec.installed
	if now == nil || ctx.Err() != nil || !matchesError(looksBroken(), failed) {
		return false
	}
	record, done, err := a.opts.Packages.Repair(ctx, now.request, now.record, a.phase.installing)
	if err != nil {
		a.log.WarnContext(ctx, "broken package cannot be installed again", "package", now.record.Name, "error", err)
	}
	if !done {
		return false
	}
	a.log.WarnContext(ctx, "package was broken and is installed again", "package", record.Name, "version", record.Version, "error", failed)
	a.publish(Installed{Upstream: a.name, Package: record.Name, Version: record.Version, Repaired: true})
	a.use(now.request, record)
	return true
}

// What the standard error of a server says about why it does not start.
var (
	looksCompiled = lazyregexp.New(`bindings file|was compiled against|\.node\b|node-gyp`)
	looksOffline  = lazyregexp.New(`ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|fetch failed`)
	looksLikeKey  = lazyregexp.New(`[A-Z][A-Z0-9]*_(KEY|TOKEN|SECRET|URL|ID)\b`)
)

func matchesError(form *regexp.Regexp, err error) bool {
	return err != nil && form.MatchString(err.Error())
}

// startError adds to the error of a start what is likely.
func (a *connectAttempt) startError(err error) error {
	var known *fault.Error
	now := a.spec.installed
	if now == nil || errors.As(err, &known) {
		return err
	}
	failed := fault.Wrap(fault.Unavailable, err, "start %s", now.record.Name)
	switch text := err.Error(); {
	case matchesError(looksCompiled(), err) && len(now.record.Skipped) > 0:
		return failed.WithHint("a package has an install script that did not run; if you trust it: install_scripts = [%q]", packages.NameOf(now.record.Skipped[0]))
	case matchesError(looksOffline(), err):
		return failed.WithHint("it cannot reach the network: check the connection and the proxy, and network of a strict sandbox")
	case strings.Contains(strings.ToLower(text), "api key") || matchesError(looksLikeKey(), err):
		return failed.WithHint("it wants a key or another setting: the message names it; set it in env of the upstream")
	case now.record.Engines != "":
		return failed.WithHint("it wants node %s, and this is %s: another node in PATH may be what it needs", now.record.Engines, now.record.Node)
	}
	return err
}
