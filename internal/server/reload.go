package server

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/filewatch"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/packages"
)

// reloading follows changes of the configuration's files.
type reloading struct {
	*process
	*guards
	*tooling
	watching  *filewatch.Watcher // nil: not watched
	useModel  func()             // opens the model of the chat again; nil: there is no chat
	reloads   sync.Mutex         // held during a reload; guards announced
	announced *config.Loaded     // the configuration that was last announced
}

// Reload reads the configuration file and the files it imports again. Live settings take
// effect at once: changed upstreams reconnect, and upstreams that users removed come
// back. It returns the settings that changed and need a restart. After an error, which is
// logged too, the old configuration stays in effect.
func (r *reloading) Reload(ctx context.Context) (waiting []string, err error) {
	return r.reloadLogged(ctx, true)
}

// reloadLogged is Reload after a change of a file: of the removed upstreams only those
// with changed settings come back.
func (r *reloading) reloadLogged(ctx context.Context, restore bool) (waiting []string, err error) {
	r.reloads.Lock()
	defer r.reloads.Unlock()
	if err := r.reload(ctx, restore); err != nil {
		r.log.ErrorContext(ctx, "configuration not reloaded", "error", err)
		return nil, err
	}
	r.log.InfoContext(ctx, "configuration reloaded", "upstreams", len(r.upstreams.Namespaces()))
	if waiting = r.restartNeeded(); len(waiting) > 0 {
		r.log.WarnContext(ctx, "restart needed for settings that changed", "settings", waiting)
	}
	return waiting, nil
}

func (r *reloading) reload(ctx context.Context, restore bool) error {
	fresh, err := r.config.Reread(r.options.Env)
	if err != nil {
		return err
	}
	if r.watching != nil {
		r.watching.AddFiles(ctx, fresh.WatchedFiles())
	}
	r.audit.RecordAction(ctx, "config.reload", fresh.File, nil)
	specs, _, err := fresh.UpstreamSpecs(r.options.Env)
	if err != nil {
		return err
	}
	anew := r.upstreams.Edited(specs)
	if err := r.apply(ctx, fresh); err != nil {
		return err
	}
	if restore {
		anew = slices.Sorted(maps.Keys(r.upstreams.Removed()))
	}
	return r.upstreams.Unremove(ctx, anew)
}

// apply applies the live settings of a configuration.
func (r *reloading) apply(ctx context.Context, config *config.Loaded) error {
	specs, warnings, err := config.UpstreamSpecs(r.options.Env)
	if err != nil {
		return err
	}
	r.upstreams.SetProblems(warnings)
	for _, warning := range slices.Concat(config.Warnings, warnings) {
		r.log.WarnContext(ctx, "configuration", "warning", warning)
	}
	settings := config.PolicySettings()
	if !reflect.DeepEqual(*r.policy.Settings(), settings) {
		text, _ := json.Marshal(settings) // texts and lists always encode
		r.audit.RecordAction(ctx, "policy.change", config.File, text)
	}
	before := r.current()
	r.latest.Store(r.config.WithLive(config))
	r.policy.Set(settings) // before tools exist that it applies to
	r.approvals.SetPolicy(r.approver.policyOf(&config.Config))
	r.pins.Set(config.PinSettings())
	if err := r.upstreams.Configure(specs, config.UpstreamPlaces(), config.OverlayRules()); err != nil {
		return err
	}
	r.upstreams.SetUntrusted(config.WithheldUpstreams())
	if err := r.orgs.Set(ctx, config.OrgQuotas()); err != nil {
		return err
	}
	r.setWebhooks(ctx, config)
	r.applyLive(before)
	r.catalog.Refresh(ctx)
	r.publishChanges(config)
	return nil
}

// applyLive applies settings that can change while the server runs to the parts that do
// not read the configuration themselves.
func (r *reloading) applyLive(before *config.Loaded) {
	now := &r.current().Config
	r.telemetry.SetLevel(logLevel(now.Log.Level))
	if now.GCPercent != before.GCPercent {
		now.TuneCollector(r.options.Env)
	}
	if r.useModel != nil && !now.Chat.SameModel(&before.Chat) {
		r.useModel()
	}
	r.exposeMusic(now.Music.Expose)
	r.catalog.Pin(now.MCP.Pinned)
	r.catalog.ReloadLimits()
	if now.MCP.Menu != before.MCP.Menu || now.MCP.ListScripts != before.MCP.ListScripts || now.MCP.ListApps != before.MCP.ListApps {
		r.menu.Set(now.MCP.Menu, now.MCP.ListScripts, now.MCP.ListApps)
	}
}

// setWebhooks applies the hooks of a configuration.
func (r *reloading) setWebhooks(ctx context.Context, config *config.Loaded) {
	hooks, problems := config.Webhooks(r.secrets)
	for _, problem := range problems {
		r.log.ErrorContext(ctx, "webhook cannot be used", "error", problem)
	}
	r.webhooks.Set(hooks)
}

// publishChanges publishes an event for each setting that differs from those
// announced before. The first configuration is no change.
func (r *reloading) publishChanges(now *config.Loaded) {
	before := r.announced
	r.announced = now
	if before == nil {
		return
	}
	for _, change := range config.Changes(r.config, before, now) {
		r.bus.Publish(change)
	}
}

// watchPackages has servers use another version of their package as soon as a command has made it
// the one in effect.
func (r *reloading) watchPackages(ctx context.Context) {
	store := r.config.Packages(nil, nil)
	before, err := store.All()
	if r.options.OnDemand || err != nil || os.MkdirAll(store.Folder(), 0o700) != nil {
		return // whoever starts a package reports the error
	}
	watching := filewatch.New(ctx, r.log)
	if watching == nil {
		return
	}
	watching.AddFiles(ctx, map[string]bool{filepath.Join(store.Folder(), packages.LockFile): true})
	r.runBackground(func(ctx context.Context) {
		watching.Run(ctx, watching.HasFile, func(ctx context.Context) {
			now, err := store.All()
			if err != nil {
				r.log.ErrorContext(ctx, "installed packages cannot be read", "error", err)
				return
			}
			for _, change := range r.upstreams.Manager.SwitchPackages(before, now) {
				text, _ := json.Marshal(change) // texts always encode
				r.audit.RecordAction(ctx, "upstream.upgrade", change.Upstream, text)
			}
			before = now
		})
	})
}

// watchConfig reloads when the configuration file or what it imports changes.
func (r *reloading) watchConfig(ctx context.Context) {
	files := r.config.WatchedFiles()
	if own := config.UserFile(r.options.Env); r.config.File == "" && filepath.IsAbs(own) {
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err == nil {
			files[own] = true // it may be created later
		}
	}
	if len(files) == 0 {
		return
	}
	if r.watching = filewatch.New(ctx, r.log); r.watching == nil {
		return
	}
	r.watching.AddFiles(ctx, files)
	r.runBackground(func(ctx context.Context) {
		r.watching.Run(ctx, r.watching.HasFile, func(ctx context.Context) { _, _ = r.reloadLogged(ctx, false) }) // it is logged
	})
}
