package setup

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/config/upgrade"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// packageTimeout is how long another version of a package may take to start and answer.
const packageTimeout = 2 * time.Minute

// packaged is a server of the configuration whose package is installed.
type packaged struct {
	spec    upstream.Spec
	request packages.Request
	record  packages.Record
}

// installed opens the installed packages, for one request, with the servers that use them.
func (s *Service) installed() (upstream.Options, []packaged, error) {
	loaded := s.Current()
	specs, _, err := loaded.UpstreamSpecs(s.Sources.Env)
	o := s.Connect()
	o.Packages = loaded.Packages(o.Sandbox, o.Log)
	if err != nil {
		return o, nil, err
	}
	var list []packaged
	for _, spec := range specs {
		launch, err := o.Launch(spec)
		if err != nil || !launch.Installs() {
			continue // its page says what is wrong with it
		}
		if record, has := o.Packages.Find(launch.Request); has {
			list = append(list, packaged{spec, launch.Request, record})
		}
	}
	return o, list, nil
}

// installedFor is the package of one server, for those who may change what this machine runs.
func (s *Service) installedFor(r *http.Request) (upstream.Options, packaged, error) {
	name := r.PathValue("name")
	o, list, err := s.installed()
	for _, p := range list {
		if p.spec.Name == name {
			return o, p, s.mayAddPrograms(r)
		}
	}
	if err == nil {
		err = fault.New(fault.NotFound, "server %q has no installed package", name).WithHint("`luanette upstream explain %s` says what runs", name)
	}
	return o, packaged{}, err
}

// packages lists the installed packages with the versions that the registry has.
func (s *Service) packages(r *http.Request) (any, error) {
	o, list, err := s.installed()
	if err != nil {
		return nil, err
	}
	found := []upgrade.Installed{}
	for _, p := range list {
		found = append(found, upgrade.Look(r.Context(), o.Packages, p.spec.Name, p.request, p.record))
	}
	return map[string]any{"packages": found, "programs": s.offersPrograms(r)}, nil
}

// Upgrade is what another version of a package changes.
type Upgrade struct {
	Package  string               `json:"package"`
	From     string               `json:"from"`
	To       string               `json:"to"`
	Added    []string             `json:"added,omitempty"` // packages
	Removed  []string             `json:"removed,omitempty"`
	Changed  []string             `json:"changed,omitempty"`
	Scripts  []string             `json:"scripts,omitempty"` // new install scripts, which run in a sandbox
	Skipped  []string             `json:"skipped,omitempty"` // and those that do not run
	Engines  string               `json:"engines,omitempty"` // the versions of node that it wants, if it is not this one
	Tools    []upgrade.ToolChange `json:"tools,omitempty"`
	Same     int                  `json:"same"`             // tools that are as they were
	Broken   string               `json:"broken,omitempty"` // why the version in effect does not start
	InEffect bool                 `json:"in_effect"`
}

// upgradePackage installs another version beside the one in effect, and tries it. Without dry_run
// it takes effect if it works; the server is started anew then.
func (s *Service) upgradePackage(r *http.Request) (any, error) {
	var body struct {
		To     string `json:"to,omitempty"` // the version; without it, the newest that the configuration allows
		DryRun bool   `json:"dry_run,omitempty"`
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	o, p, err := s.installedFor(r)
	if err != nil {
		return nil, err
	}
	trial := upgrade.Trial{
		Store: o.Packages, Request: p.request, Now: p.record, To: body.To, Report: func(string) {},
		Tools: func(ctx context.Context) ([]tool.Info, error) { return upgrade.Tools(ctx, o, p.spec, packageTimeout) },
	}
	out, err := trial.Run(r.Context())
	if err != nil || out.InEffect() || body.DryRun {
		return upgradeOf(&out), err
	}
	if err := o.Packages.Use(r.Context(), p.request, out.Next); err != nil {
		return nil, err
	}
	s.recordVersion(r.Context(), "package.upgrade", p, out.Next)
	shown := upgradeOf(&out)
	shown.InEffect = true
	return shown, nil
}

func upgradeOf(o *upgrade.Outcome) Upgrade {
	u := Upgrade{
		Package: o.Next.Name, From: o.Now.Version, To: o.Next.Version, Added: o.Difference.Added, Removed: o.Difference.Removed, Changed: o.Difference.Changed,
		Scripts: o.Scripts(), Skipped: o.Skipped(), Engines: o.Next.Engines, Tools: o.Tools, Same: o.Same, InEffect: o.InEffect(),
	}
	if o.Broken != nil {
		u.Broken = o.Broken.Error()
	}
	return u
}

// rollbackPackage makes the previous version the one in effect.
func (s *Service) rollbackPackage(r *http.Request) (any, error) {
	o, p, err := s.installedFor(r)
	if err != nil {
		return nil, err
	}
	back, err := o.Packages.Rollback(r.Context(), p.request)
	if err != nil {
		return nil, err
	}
	s.recordVersion(r.Context(), "package.rollback", p, back)
	return Upgrade{Package: back.Name, From: p.record.Version, To: back.Version, InEffect: true}, nil
}

// recordVersion records who has changed the version of a package.
func (s *Service) recordVersion(ctx context.Context, action string, p packaged, now packages.Record) {
	detail, _ := json.Marshal(map[string]string{"package": now.Name, "from": p.record.Version, "to": now.Version}) // texts always encode
	s.Audit(ctx, action, p.spec.Name, detail)
}

// oneByOne serves what takes minutes, without holding up changes of the file.
func (s *Service) oneByOne(handle func(r *http.Request) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if !s.upgrading.TryLock() {
			return nil, fault.New(fault.Conflict, "another package is being upgraded").WithHint("try again when it is done")
		}
		defer s.upgrading.Unlock()
		return handle(r)
	}
}
