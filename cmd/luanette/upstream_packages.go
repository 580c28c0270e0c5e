package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
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

// packagedUpstreams are those of the configuration with these names, or all.
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
		record, installed := store.Find(launch.Request)
		switch {
		case launch.Installs() && installed:
			list = append(list, packaged{spec, launch.Request, record})
		case len(names) > 0:
			return nil, fault.New(fault.NotFound, "upstream %s has no installed package", spec.Name).
				WithHint("`luanette upstream explain %s` says what runs; a package is installed with the first start", spec.Name)
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

// outdatedRow is one package.
type outdatedRow struct {
	Upstream  string    `json:"upstream"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Installed time.Time `json:"installed_at"`
	packages.Offer
	Error string `json:"error,omitempty"`
}

// Run lists the packages with their versions.
func (c *upstreamOutdatedCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	list, err := packagedUpstreams(loaded, proc, nil)
	if err != nil {
		return err
	}
	store := loaded.Packages(nil, nil)
	rows := []outdatedRow{}
	for _, p := range list {
		row := outdatedRow{Upstream: p.spec.Name, Package: p.record.Name, Version: p.record.Version, Installed: p.record.Installed}
		if row.Offer, err = store.Offered(ctx, p.request); err != nil {
			row.Error = err.Error()
		}
		rows = append(rows, row)
	}
	if c.JSON {
		return printValue(proc, rows)
	}
	return printList(proc, rows, noPackages, "NAME PACKAGE INSTALLED WANTED LATEST SINCE PROBLEM", func(r outdatedRow) []string {
		return []string{r.Upstream, r.Package, r.Version, r.Wanted, r.Latest, r.Installed.Format(time.DateOnly), firstLine(r.Error)}
	})
}

// upstreamUpgradeCommand is `luanette upstream upgrade`.
type upstreamUpgradeCommand struct {
	settingFlags
	Names   []string      `arg:"" optional:"" name:"name" complete:"upstream" help:"The upstreams' namespaces; without any, all with an installed package."`
	To      string        `placeholder:"VERSION" help:"The version to install; without it, the newest that the configuration allows."`
	DryRun  bool          `help:"Show what would change."`
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
	list, err := packagedUpstreams(loaded, proc, c.Names)
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
	stop := reportWaiting(proc, waiting)
	defer func() { stop() }()
	report := func(text string) {
		doing(upstream.Status{State: upstream.StateInstalling, Since: time.Now(), LastLine: text})
	}
	next, err := store.Upgrade(ctx, p.request, c.To, report)
	if err != nil {
		return err
	}
	if next.Folder == p.record.Folder {
		fmt.Fprintf(proc.Stdout, "%s: %s %s is in effect already\n", p.spec.Name, next.Name, next.Version)
		return nil
	}
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Log: slog.New(slog.DiscardHandler), Packages: store, Doing: doing}
	before, beforeErr := prober.Tools(ctx, p.spec, c.Timeout) // the old one may be broken, which is why it is upgraded
	store.Propose(p.request.Key(), next)
	after, err := prober.Tools(ctx, p.spec, c.Timeout)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s %s does not work, and %s stays", next.Name, next.Version, p.record.Version).WithHint("%s", fault.HintOf(err))
	}
	fmt.Fprintf(proc.Stdout, "%s: %s %s -> %s, %d -> %d packages\n", p.spec.Name, next.Name, p.record.Version, next.Version, p.record.Packages, next.Packages)
	for _, script := range next.Skipped {
		if !slices.Contains(p.record.Skipped, script) {
			fmt.Fprintf(proc.Stdout, "  new install script, not run: %s\n", script)
		}
	}
	if next.Engines != "" {
		fmt.Fprintf(proc.Stdout, "  it wants node %s, and this is %s\n", next.Engines, next.Node)
	}
	if beforeErr != nil {
		fmt.Fprintf(proc.Stdout, "  %d tools; the old version does not start: %s\n", len(after), plainText(beforeErr.Error()))
	} else {
		fmt.Fprintf(proc.Stdout, "  %s\n", toolChanges(before, after))
	}
	if c.DryRun {
		return nil
	}
	return store.Use(ctx, p.request, next)
}

// toolChanges says which tools are new, gone or defined otherwise.
func toolChanges(before, after []tool.Info) string {
	var parts []string
	old := map[string]tool.Info{}
	for _, info := range before {
		old[info.Name] = info
	}
	for _, info := range after {
		was, had := old[info.Name]
		switch {
		case !had:
			parts = append(parts, "new tool "+info.Name)
		case !bytes.Equal(was.Raw, info.Raw):
			parts = append(parts, "changed tool "+info.Name)
		}
		delete(old, info.Name)
	}
	for _, info := range before {
		if _, gone := old[info.Name]; gone {
			parts = append(parts, "without tool "+info.Name)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("the same %s", amount(len(after), "tool"))
	}
	return strings.Join(parts, ", ")
}

// upstreamRollbackCommand is `luanette upstream rollback`.
type upstreamRollbackCommand struct {
	settingFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Run makes the previous version the one in effect.
func (c *upstreamRollbackCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	list, err := packagedUpstreams(loaded, proc, []string{c.Name})
	if err != nil {
		return err
	}
	back, err := loaded.Packages(nil, nil).Rollback(ctx, list[0].request)
	if err == nil {
		fmt.Fprintf(proc.Stdout, "%s: %s %s -> %s\n", c.Name, back.Name, list[0].record.Version, back.Version)
	}
	return err
}

// upstreamPruneCommand is `luanette upstream prune`.
type upstreamPruneCommand struct{ settingFlags }

// Run removes packages that no upstream of the configuration uses.
func (c *upstreamPruneCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	list, err := packagedUpstreams(loaded, proc, nil)
	if err != nil {
		return err
	}
	removed, err := loaded.Packages(nil, nil).Prune(ctx, func(key string) bool {
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
