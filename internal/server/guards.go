package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/ui/login"
)

// guards decide who may do what, and record what was done.
type guards struct {
	*access
	audit    *audit.Log // nil if the log is switched off
	sandbox  *launch.Launcher
	egress   *egress.Service
	shares   *share.Store
	personal *personal.Store
	logins   *login.Upstreams
	policy   *policy.Policy
	orgs     *quota.Orgs
	quota    *quota.Quota
}

func openGuards(ctx context.Context, p *process) (*guards, error) {
	log, err := openAudit(ctx, p)
	if err != nil {
		return nil, err
	}
	launcher, gateway := newLauncher(p, log)
	a, err := openAccess(ctx, p, log, launcher)
	if err != nil {
		return nil, err
	}
	shares, err := openShares(ctx, p, a)
	if err != nil {
		return nil, err
	}
	values, err := personal.Open(ctx, p.store, personal.Options{Owners: a.owners(), Key: p.storedKey(), Log: p.log})
	if err != nil {
		return nil, err
	}
	logins, err := openLogins(ctx, p, a)
	if err != nil {
		return nil, err
	}
	rules, err := policy.Open(ctx, p.store, p.config.PolicySettings(), p.runsScript)
	if err != nil {
		return nil, err
	}
	orgs, err := quota.OpenOrgs(ctx, p.store, p.config.OrgQuotas(), time.Now)
	if err != nil {
		return nil, err
	}
	return &guards{a, log, launcher, gateway, shares, values, logins, rules, orgs, quota.New(a.keys.Spend, orgs)}, nil
}

// openAudit opens the audit log, if it is switched on.
func openAudit(ctx context.Context, p *process) (*audit.Log, error) {
	if !p.config.Audit.Enabled {
		return nil, nil
	}
	node := p.config.NodeName()
	if p.node != nil { // a node whose name is taken gets another
		node = p.node.Name()
	}
	var export slog.Handler
	if p.config.Audit.OTLP {
		export = p.telemetry.Exported("audit")
	}
	log, err := audit.Open(ctx, p.store, audit.Options{
		Node: node, Keep: time.Duration(p.config.Audit.Keep), KeepOrgs: p.config.Audit.KeepOrgs(), Export: export, Spool: filepath.Join(p.config.Data, "audit"),
		Activity: time.Duration(p.config.Activity.Keep),
		Continue: p.config.Audit.Failure == config.AuditContinue, Log: p.log,
	})
	if err == nil {
		p.closeLast.within("the audit log", storeTimeout, log.Close)
	}
	return log, err
}

// newLauncher starts sandboxed programs, of upstreams and of scripts. What they are refused
// is an event.
func newLauncher(p *process, log *audit.Log) (*launch.Launcher, *egress.Service) {
	l := p.config.Launcher(p.options.Env)
	l.Log = p.log
	l.Refused = func(r profile.Refusal) { p.bus.Publish(r) }
	return l, p.config.UseGateway(l, egress.Options{Events: p.bus, Record: log.RecordConnection, Log: p.log, Secret: p.secrets.Find})
}

func openShares(ctx context.Context, p *process, a *access) (*share.Store, error) {
	return share.Open(ctx, p.store, share.Options{People: a.people.People(), Events: p.bus, Log: p.log})
}

// openLogins opens the stored logins to upstreams, which may use the sign-ins of people.
func openLogins(ctx context.Context, p *process, a *access) (*login.Upstreams, error) {
	o := p.config.OAuthOptions(p.secrets, p.log)
	o.Proxy = p.proxy()
	o.Connect = func(upstream string) string { return p.publicURL() + login.ConnectPath + upstream }
	logins, err := login.OpenUpstreams(ctx, p.store, o)
	if err == nil && a.people != nil {
		logins.WithExchange(exchange.Options{Providers: a.people.Providers(), Check: a.keys.CheckID, SignIn: p.config.PublicURL + signin.Path})
	}
	return logins, err
}

// storedKey returns the key that encrypts stored secrets.
func (p *process) storedKey() func() (secret.Text, error) {
	return sync.OnceValues(func() (secret.Text, error) { return p.config.OAuthKey(p.secrets) })
}
