package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/upgrade"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// packaged is an upstream whose package is installed.
type packaged struct {
	spec    upstream.Spec
	request packages.Request
	record  packages.Record
}

// packagedUpstreams are those of the configuration with these names, or all. It does not matter
// whether their packages are installed yet.
func packagedUpstreams(loaded *config.Loaded, proc *process, names []string) (list []packaged, err error) {
	specs, _, err := loaded.UpstreamSpecs(proc.Env)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := configuredSpec(loaded, proc.Env, name); err != nil {
			return nil, err
		}
	}
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Log: slog.New(slog.DiscardHandler)}
	store := loaded.Packages(nil, nil)
	for _, spec := range specs {
		if len(names) > 0 && !slices.Contains(names, spec.Name) {
			continue
		}
		launch, err := prober.Launch(spec)
		if err != nil {
			return nil, err
		}
		if launch.Installs() {
			record, _ := store.Find(launch.Request)
			list = append(list, packaged{spec, launch.Request, record})
		}
	}
	return list, nil
}

// installed opens the installed packages, with the upstreams that use them.
func (f *settingFlags) installed(proc *process, names []string) (*packages.Store, []packaged, error) {
	loaded, err := f.loadQuietly(proc, nil)
	if err != nil {
		return nil, nil, err
	}
	list, err := installedUpstreams(loaded, proc, names)
	return loaded.Packages(nil, nil), list, err
}

// installedUpstreams are those whose package is installed; each of the names must be one.
func installedUpstreams(loaded *config.Loaded, proc *process, names []string) ([]packaged, error) {
	list, err := packagedUpstreams(loaded, proc, names)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p packaged) bool { return p.record.Folder == "" })
	for _, name := range names {
		if !slices.ContainsFunc(list, func(p packaged) bool { return p.spec.Name == name }) {
			return nil, fault.New(fault.NotFound, "upstream %s has no installed package", name).
				WithHint("`luanette upstream explain %s` says what runs; a package is installed with the first start", name)
		}
	}
	return list, nil
}

// noPackages is said where nothing is installed.
const noPackages = "no packages are installed for tool servers"

// upstreamOutdatedCommand is `luanette upstream outdated`.
type upstreamOutdatedCommand struct {
	settingFlags
	JSON bool `help:"Print JSON."`
}

// Help is shown by `luanette upstream outdated --help`.
func (upstreamOutdatedCommand) Help() string {
	return `Asks the registry for newer versions of the npm packages that are installed for tool
servers. WANTED is the newest that the configuration allows.`
}

// Run lists the packages with their versions.
func (c *upstreamOutdatedCommand) Run(ctx context.Context, proc *process) error {
	store, list, err := c.installed(proc, nil)
	if err != nil {
		return err
	}
	rows := []upgrade.Installed{}
	for _, p := range list {
		rows = append(rows, upgrade.Look(ctx, store, p.spec.Name, p.request, p.record))
	}
	if c.JSON {
		return printValue(proc, rows)
	}
	return printList(proc, rows, noPackages, "NAME PACKAGE INSTALLED WANTED LATEST SINCE PROBLEM", func(r upgrade.Installed) []string {
		return []string{r.Upstream, r.Package, r.Version, r.Wanted, r.Latest, r.At.Format(time.DateOnly), firstLine(r.Error)}
	})
}

// upstreamUpgradeCommand is `luanette upstream upgrade`.
type upstreamUpgradeCommand struct {
	settingFlags
	Names   []string      `arg:"" optional:"" name:"name" complete:"upstream" help:"The upstreams' namespaces; without any, all with an installed package."`
	To      string        `placeholder:"VERSION" help:"The version to install; without it, the newest that the configuration allows."`
	DryRun  bool          `help:"Show what would change."`
	Verify  bool          `help:"Check the signatures of the new version first, as luanette upstream verify does."`
	Timeout time.Duration `default:"2m" help:"How long the new version may take to start and answer."`
}

// Help is shown by `luanette upstream upgrade --help`.
func (upstreamUpgradeCommand) Help() string {
	return `Installs a newer version of the npm package of a tool server beside the one in
effect, starts it, lists its tools, and shows what changes: the version, install
scripts, and every tool that is new, gone or defined otherwise. It takes effect only if
the new version answers. The old one is kept: luanette upstream rollback NAME. A running
server uses the new version with the next start of the upstream.`
}

// Run upgrades the packages, one after another.
func (c *upstreamUpgradeCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	if c.To != "" && len(c.Names) != 1 {
		return fault.New(fault.InvalidParams, "--to needs the name of one upstream").WithHint("luanette upstream upgrade NAME --to %s", c.To)
	}
	list, err := installedUpstreams(loaded, proc, c.Names)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(proc.Stdout, noPackages)
	}
	for _, p := range list {
		if err := c.upgrade(ctx, proc, loaded, p); err != nil {
			return err
		}
	}
	return nil
}

// upgrade upgrades the package of one upstream.
func (c *upstreamUpgradeCommand) upgrade(ctx context.Context, proc *process, loaded *config.Loaded, p packaged) error {
	store := loaded.Packages(loaded.Launcher(proc.Env), nil)
	doing, waiting := followConnection(p.spec.Name)
	defer reportWaiting(proc, waiting)()
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Log: slog.New(slog.DiscardHandler), Packages: store, Doing: doing}
	trial := upgrade.Trial{
		Store: store, Request: p.request, Now: p.record, To: c.To, Report: installing(doing),
		Tools: func(ctx context.Context) ([]tool.Info, error) { return prober.Tools(ctx, p.spec, c.Timeout) },
	}
	if c.Verify {
		trial.Check = func(ctx context.Context, next packages.Record) error { return verify(ctx, proc, store, p, next) }
	}
	o, err := trial.Run(ctx)
	if err != nil {
		return err
	}
	if o.InEffect() {
		fmt.Fprintf(proc.Stdout, "%s: %s %s is in effect already\n", p.spec.Name, o.Next.Name, o.Next.Version)
		return nil
	}
	fmt.Fprintf(proc.Stdout, "%s: %s %s -> %s, %d -> %s\n", p.spec.Name, o.Next.Name, o.Now.Version, o.Next.Version, o.Now.Packages, plural.Count(o.Next.Packages, "package"))
	printPackageChanges(proc, &o)
	printToolChanges(proc, &o)
	if c.DryRun {
		return nil
	}
	return store.Use(ctx, p.request, o.Next)
}

// installing passes on what is done to install a package.
func installing(doing func(upstream.Status)) (report func(string)) {
	began := time.Now()
	return func(text string) {
		doing(upstream.Status{State: upstream.StateInstalling, Since: began, LastLine: text})
	}
}

// printPackageChanges says what another version of a package brings besides itself.
func printPackageChanges(proc *process, o *upgrade.Outcome) {
	for _, part := range []struct {
		what string
		list []string
	}{{"added", o.Difference.Added}, {"removed", o.Difference.Removed}, {"changed", o.Difference.Changed}} {
		if len(part.list) > 0 {
			fmt.Fprintf(proc.Stdout, "  %s: %s\n", part.what, strings.Join(part.list, ", "))
		}
	}
	for _, script := range o.Skipped() {
		fmt.Fprintf(proc.Stdout, "  new install script, not run: %s\n", script)
	}
	for _, script := range o.Scripts() {
		fmt.Fprintf(proc.Stdout, "  new install script, run in a sandbox: %s\n", script)
	}
	if o.Next.Engines != "" {
		fmt.Fprintf(proc.Stdout, "  it wants node %s, and this is %s\n", o.Next.Engines, o.Next.Node)
	}
}

// printToolChanges says which tools are new, gone or defined otherwise, and how.
func printToolChanges(proc *process, o *upgrade.Outcome) {
	if o.Broken != nil {
		fmt.Fprintf(proc.Stdout, "  %s; the old version does not start: %s\n", amount(o.Total, "tool"), plainText(o.Broken.Error()))
		return
	}
	for _, change := range o.Tools {
		text := change.Kind + " tool " + change.Name
		switch change.Kind {
		case upgrade.Changed:
			text = strings.ReplaceAll(text+"\n"+change.Difference, "\n", "\n    ")
		case upgrade.Gone:
			text = "without tool " + change.Name
		}
		fmt.Fprintf(proc.Stdout, "  %s\n", plainText(text))
	}
	if len(o.Tools) == 0 {
		fmt.Fprintf(proc.Stdout, "  the same %s\n", amount(o.Same, "tool"))
	}
}

// upstreamRollbackCommand is `luanette upstream rollback`.
type upstreamRollbackCommand struct {
	settingFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Run makes the previous version the one in effect.
func (c *upstreamRollbackCommand) Run(ctx context.Context, proc *process) error {
	store, list, err := c.installed(proc, []string{c.Name})
	if err != nil {
		return err
	}
	back, err := store.Rollback(ctx, list[0].request)
	if err == nil {
		fmt.Fprintf(proc.Stdout, "%s: %s %s -> %s\n", c.Name, back.Name, list[0].record.Version, back.Version)
	}
	return err
}

// upstreamPruneCommand is `luanette upstream prune`.
type upstreamPruneCommand struct{ settingFlags }

// Run removes packages that no upstream of the configuration uses.
func (c *upstreamPruneCommand) Run(ctx context.Context, proc *process) error {
	store, list, err := c.installed(proc, nil)
	if err != nil {
		return err
	}
	removed, err := store.Prune(ctx, func(key string) bool {
		return slices.ContainsFunc(list, func(p packaged) bool { return p.request.Key() == key })
	})
	for _, folder := range removed {
		fmt.Fprintf(proc.Stdout, "removed %s\n", folder)
	}
	if len(removed) == 0 && err == nil {
		fmt.Fprintln(proc.Stdout, "every installed package is used")
	}
	return err
}

// upstreamFreezeCommand is `luanette upstream freeze`.
type upstreamFreezeCommand struct {
	settingFlags
	Names []string `arg:"" optional:"" name:"name" complete:"upstream" help:"The upstreams' namespaces; without any, all with an installed package."`
}

// Help is shown by `luanette upstream freeze --help`.
func (upstreamFreezeCommand) Help() string {
	return `Prints the versions and checksums of the npm packages that are installed for tool
servers, with everything that they depend on. luanette upstream thaw installs exactly
these on another machine whose configuration has the same servers.

  luanette upstream freeze > packages.json`
}

// Run prints what is installed.
func (c *upstreamFreezeCommand) Run(_ context.Context, proc *process) error {
	store, list, err := c.installed(proc, c.Names)
	if err != nil {
		return err
	}
	file := packages.FrozenFile{Version: 1, Packages: map[string]packages.Frozen{}}
	for _, p := range list {
		if file.Packages[p.request.Key()], err = store.Freeze(p.record); err != nil {
			return err
		}
	}
	return file.Write(proc.Stdout)
}

// upstreamThawCommand is `luanette upstream thaw`.
type upstreamThawCommand struct {
	settingFlags
	File string `arg:"" type:"path" help:"The file that luanette upstream freeze has printed."`
}

// Help is shown by `luanette upstream thaw --help`.
func (upstreamThawCommand) Help() string {
	return `Installs exactly the npm packages of a file of luanette upstream freeze, for the tool
servers of this configuration that are the same, and makes them the ones in effect. A
package that the registry has otherwise is refused. The version before stays:
luanette upstream rollback NAME.`
}

// Run installs what the file names.
func (c *upstreamThawCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	text, err := os.Open(c.File)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read what to install").WithHint("write it with luanette upstream freeze")
	}
	defer text.Close()
	file, err := packages.ReadFrozen(text)
	if err != nil {
		return err
	}
	list, err := packagedUpstreams(loaded, proc, nil)
	if err != nil {
		return err
	}
	store := loaded.Packages(loaded.Launcher(proc.Env), nil)
	for _, p := range list {
		frozen, has := file.Packages[p.request.Key()]
		if !has {
			fmt.Fprintf(proc.Stdout, "%s: %s is not in the file, and stays\n", p.spec.Name, p.request.Key())
			continue
		}
		if err := thaw(ctx, proc, store, p, frozen); err != nil {
			return err
		}
	}
	return nil
}

// thaw installs one frozen package.
func thaw(ctx context.Context, proc *process, store *packages.Store, p packaged, frozen packages.Frozen) error {
	doing, waiting := followConnection(p.spec.Name)
	defer reportWaiting(proc, waiting)()
	record, err := store.Thaw(ctx, p.request, frozen, installing(doing))
	if err != nil {
		return err
	}
	before := ""
	if p.record.Folder != "" && p.record.Folder != record.Folder {
		before = p.record.Version + " -> "
	}
	_, err = fmt.Fprintf(proc.Stdout, "%s: %s %s%s\n", p.spec.Name, record.Name, before, record.Version)
	return err
}

// upstreamVerifyCommand is `luanette upstream verify`.
type upstreamVerifyCommand struct {
	settingFlags
	Names []string `arg:"" optional:"" name:"name" complete:"upstream" help:"The upstreams' namespaces; without any, all with an installed package."`
}

// Help is shown by `luanette upstream verify --help`.
func (upstreamVerifyCommand) Help() string {
	return `Has npm check the signatures of the registry for all packages that are installed for
tool servers, and the provenance of those that have one. Not every registry has
signatures. The exit status is 1 if one is not valid.`
}

// Run checks one installation after another.
func (c *upstreamVerifyCommand) Run(ctx context.Context, proc *process) error {
	store, list, err := c.installed(proc, c.Names)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(proc.Stdout, noPackages)
	}
	for _, p := range list {
		if failed := verify(ctx, proc, store, p, p.record); failed != nil {
			printError(proc, failed)
			err = exitStatus(exitFailure)
		}
	}
	return err
}

// verify prints what the registry vouches for of an installation. It returns an error if something
// is signed by somebody else.
func verify(ctx context.Context, proc *process, store *packages.Store, p packaged, record packages.Record) error {
	found, err := store.Verify(ctx, p.request, record)
	if err != nil {
		_, err := fmt.Fprintf(proc.Stdout, "%s: signatures cannot be checked: %s\n", p.spec.Name, plainText(err.Error()))
		return err
	}
	if len(found.Invalid) > 0 {
		return fault.New(fault.Denied, "%s: not what its publisher signed: %s", p.spec.Name, strings.Join(found.Invalid, ", ")).
			WithHint("somebody may have changed it on the way or in the registry: do not use it")
	}
	signed := "every package has"
	if len(found.Missing) > 0 {
		signed = "all packages but " + strings.Join(found.Missing, ", ") + " have"
	}
	_, err = fmt.Fprintf(proc.Stdout, "%s: %s a valid signature of the registry, and %d of them provenance\n", p.spec.Name, signed, len(found.Attested))
	return err
}
