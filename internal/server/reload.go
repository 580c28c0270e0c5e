package server

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/luanette/luanette/internal/base/filewatch"
	"github.com/luanette/luanette/internal/config"
)

// Reload reads the configuration file and the files it imports again. Live settings take
// effect at once: changed upstreams reconnect, and upstreams that users removed come
// back. It returns the settings that changed and need a restart. After an error, which is
// logged too, the old configuration stays in effect.
func (srv *Server) Reload(ctx context.Context) (waiting []string, err error) {
	return srv.reloadLogged(ctx, true)
}

// reloadLogged is Reload after a change of a file: of the removed upstreams only those
// with changed settings come back.
func (srv *Server) reloadLogged(ctx context.Context, restore bool) (waiting []string, err error) {
	srv.reloads.Lock()
	defer srv.reloads.Unlock()
	if err := srv.reload(ctx, restore); err != nil {
		srv.log.ErrorContext(ctx, "configuration not reloaded", "error", err)
		return nil, err
	}
	srv.log.InfoContext(ctx, "configuration reloaded", "upstreams", len(srv.upstreams.Namespaces()))
	if waiting = srv.restartNeeded(); len(waiting) > 0 {
		srv.log.WarnContext(ctx, "restart needed for settings that changed", "settings", waiting)
	}
	return waiting, nil
}

func (srv *Server) reload(ctx context.Context, restore bool) error {
	fresh, err := srv.config.Reread(srv.options.Env)
	if err != nil {
		return err
	}
	if srv.watching != nil {
		srv.watching.AddFiles(ctx, fresh.WatchedFiles())
	}
	srv.audit.RecordAction(ctx, "config.reload", fresh.File, nil)
	specs, _, err := fresh.UpstreamSpecs(srv.options.Env)
	if err != nil {
		return err
	}
	anew := srv.upstreams.Edited(specs)
	if err := srv.apply(ctx, fresh); err != nil {
		return err
	}
	if restore {
		anew = slices.Sorted(maps.Keys(srv.upstreams.Removed()))
	}
	return srv.upstreams.Unremove(ctx, anew)
}

// apply applies the live settings of a configuration.
func (srv *Server) apply(ctx context.Context, config *config.Loaded) error {
	specs, warnings, err := config.UpstreamSpecs(srv.options.Env)
	if err != nil {
		return err
	}
	srv.upstreams.SetProblems(warnings)
	for _, warning := range slices.Concat(config.Warnings, warnings) {
		srv.log.WarnContext(ctx, "configuration", "warning", warning)
	}
	settings := config.PolicySettings()
	if !reflect.DeepEqual(*srv.policy.Settings(), settings) {
		text, _ := json.Marshal(settings) // texts and lists always encode
		srv.audit.RecordAction(ctx, "policy.change", config.File, text)
	}
	before := srv.current()
	srv.latest.Store(srv.config.WithLive(config))
	srv.policy.Set(settings) // before tools exist that it applies to
	srv.approvals.SetPolicy(srv.approvalPolicy(&config.Config))
	srv.pins.Set(config.PinSettings())
	if err := srv.upstreams.Configure(specs, config.UpstreamPlaces(), config.OverlayRules()); err != nil {
		return err
	}
	srv.upstreams.SetUntrusted(config.WithheldUpstreams())
	if err := srv.orgs.Set(ctx, config.OrgQuotas()); err != nil {
		return err
	}
	srv.setWebhooks(ctx, config)
	srv.applyLive(before)
	srv.catalog.Refresh(ctx)
	srv.publishChanges(config)
	return nil
}

// publishChanges publishes an event for each setting that differs from those
// announced before. The first configuration is no change.
func (srv *Server) publishChanges(now *config.Loaded) {
	before := srv.announced
	srv.announced = now
	if before == nil {
		return
	}
	for _, change := range config.Changes(srv.config, before, now) {
		srv.bus.Publish(change)
	}
}

// watchConfig reloads when the configuration file or what it imports changes.
func (srv *Server) watchConfig(ctx context.Context) {
	files := srv.config.WatchedFiles()
	if own := config.UserFile(srv.options.Env); srv.config.File == "" && filepath.IsAbs(own) {
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err == nil {
			files[own] = true // it may be created later
		}
	}
	if len(files) == 0 {
		return
	}
	if srv.watching = filewatch.New(ctx, srv.log); srv.watching == nil {
		return
	}
	srv.watching.AddFiles(ctx, files)
	srv.runBackground(func(ctx context.Context) {
		srv.watching.Run(ctx, srv.watching.HasFile, func(ctx context.Context) { _, _ = srv.reloadLogged(ctx, false) }) // it is logged
	})
}
