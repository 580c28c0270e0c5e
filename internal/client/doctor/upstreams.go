package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// upstreams reports every upstream: as the running server sees it, or after one attempt to
// connect to each, some at a time.
func (d *doctor) upstreams(ctx context.Context) {
	if d.server != nil {
		d.serverUpstreams(ctx)
		return
	}
	specs, _, err := d.Config.UpstreamSpecs(d.Env)
	if err != nil {
		return // the check of the configuration reported it
	}
	if len(specs) == 0 && len(d.Config.WithheldUpstreams()) == 0 {
		d.report(Finding{"upstreams", Note, "none; add one with `luanette upstream add NAME URL`", ""})
	}
	findings := make([][]Finding, len(specs))
	slots := make(chan struct{}, 2*runtime.NumCPU())
	var all sync.WaitGroup
	for i := range specs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			findings[i] = d.probe(ctx, specs[i])
		})
	}
	all.Wait()
	for _, found := range findings {
		for _, finding := range found {
			d.report(finding)
		}
	}
}

// probe connects to one upstream.
func (d *doctor) probe(ctx context.Context, spec upstream.Spec) []Finding {
	prober := client.Prober{Config: d.Config, Env: d.Env, Version: d.Version, Logins: true, Log: slog.New(slog.DiscardHandler)}
	probe, err := prober.Probe(ctx, spec, d.Timeout)
	if err != nil {
		return []Finding{{"upstream " + spec.Name, Problem, err.Error(), fault.HintOf(err)}}
	}
	return upstreamFindings(probe)
}

// upstreamFindings says how an upstream does.
func upstreamFindings(probe client.Probe) (list []Finding) {
	check := "upstream " + probe.Namespace
	switch {
	case probe.NeedsLogin():
		list = append(list, Finding{check, Problem, "asks for a login", "luanette upstream login " + probe.Namespace})
	case probe.Works():
		list = append(list, Finding{check, OK, fmt.Sprintf("connected, %d tools", probe.Tools), ""})
	case probe.State == string(upstream.StateAsleep):
		list = append(list, Finding{check, OK, "asleep, started by the first call", ""})
	default:
		list = append(list, Finding{check, Problem, strings.TrimPrefix(probe.State+": "+probe.Error, ": "), probe.Hint})
	}
	for _, warning := range probe.Warnings {
		list = append(list, Finding{check, Warning, warning, ""})
	}
	return list
}

// serverUpstreams asks the running server.
func (d *doctor) serverUpstreams(ctx context.Context) {
	raw, err := d.server.Request(ctx, http.MethodGet, "/api/v1/upstreams")
	var listed adminapi.UpstreamList
	if err == nil {
		err = json.Unmarshal(raw, &listed)
	}
	if err != nil {
		d.failed("upstreams", fault.Wrap(fault.Upstream, err, "ask the running server"))
		return
	}
	if len(listed.Upstreams) == 0 {
		d.report(Finding{"upstreams", Note, "none; add one with `luanette upstream add NAME URL`", ""})
	}
	for _, u := range listed.Upstreams {
		for _, finding := range upstreamFindings(client.Probe{
			Namespace: u.Namespace, State: u.State, Tools: u.ToolCount, Error: u.Error, Hint: u.Hint, Warnings: u.Warnings,
		}) {
			d.report(finding)
		}
	}
}
