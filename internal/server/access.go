package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/ui/login"
)

// access says who is asking.
type access struct {
	localPeers *owner.Peers
	people     *identity.Service // nil if nobody can sign in
	keys       *apikey.Store
	tokens     *jwt.Server // of configured issuers; nil if there are none
	auth       *httpauth.Authenticator
	webhooks   webhook.Table
}

// openAccess opens the store of API keys and the authenticator of HTTP requests.
func openAccess(ctx context.Context, p *process, log *audit.Log, launcher *launch.Launcher) (*access, error) {
	fixed, err := p.config.FixedKeys(p.options.Env)
	if err != nil {
		return nil, err
	}
	own, err := owner.Secret(p.config.Data)
	if err != nil {
		return nil, err
	}
	keys := apikey.Options{
		Fixed: fixed, Owner: apikey.HashOf(own.Reveal()), Bus: p.bus, Log: p.log, MaxAge: p.keysMaxAge(), NoGuests: len(p.config.Issuers)+len(p.config.Identity) > 0,
		OnChange: func(ctx context.Context, action, name string) { log.RecordAction(ctx, action, name, nil) },
	}
	a := &access{localPeers: newPeers(p, launcher)}
	onLogin := countedLogins(ctx, p, log)
	o := httpauth.Options{Browsers: p.config.Browsers(), Log: p.log, OnLogin: onLogin, Peers: a.localPeers, Secret: own, Has: p.parts()}
	if len(p.config.Identity) > 0 {
		if a.people, err = openPeople(ctx, p, log, onLogin); err != nil {
			return nil, err
		}
		keys.People, o.People = a.people, a.people
	}
	if a.keys, err = apikey.Open(ctx, p.store, keys); err != nil {
		return nil, err
	}
	o.Keys = a.keys
	if err := a.openTokens(p); err != nil {
		return nil, err
	}
	if a.tokens != nil {
		o.Tokens = a.tokens
	}
	a.auth = httpauth.New(o)
	p.closeLast.plain("sign-ins", a.auth.Close)
	return a, a.checkGuarded(ctx, p)
}

// openTokens accepts tokens of configured issuers, and those that clients of people have.
func (a *access) openTokens(p *process) error {
	if len(p.config.Issuers) == 0 && a.people == nil {
		return nil
	}
	client, err := p.config.IssuerClient(p.options.Env)
	if err != nil {
		return err
	}
	a.tokens = jwt.New(p.config.TokenIssuers(), client)
	if a.people != nil {
		a.tokens.WithOwn(p.config.PublicURL, a.people.Resource())
	}
	return nil
}

// parts names what not every server has, for its page.
func (p *process) parts() (has []string) {
	if len(p.config.Identity) > 0 {
		has = append(has, "people")
	}
	if _, remote := p.config.Upstreams[hootenanny.Space]; remote || p.config.Music.Enabled {
		has = append(has, "music")
	}
	return has
}

// newPeers decides whom the server serves without a key.
func newPeers(p *process, launcher *launch.Launcher) *owner.Peers {
	peers := &owner.Peers{Local: owner.Local(p.config.Local), AllUsers: p.config.LocalUsers == config.LocalAll}
	peers.Programs = func() map[int]owner.Program { // that this server has started
		all := map[int]owner.Program{}
		for id, name := range launcher.Started() {
			all[id] = p.program(name)
		}
		return all
	}
	if p.config.Origins["data"] != "" { // the default is that of commands, too
		peers.Data = p.config.Data
		if folder, err := filepath.Abs(p.config.Data); err == nil {
			peers.Data = folder
		}
	}
	return peers
}

// program is a program by the name of its profile, which is that of its upstream.
func (p *process) program(name string) owner.Program {
	known, is := p.current().Upstreams[name]
	if !is {
		return owner.Program{}
	}
	return owner.Program{Namespace: name, Hub: known.Hub}
}

// openPeople lets people sign in with the configured identity providers.
func openPeople(ctx context.Context, p *process, log *audit.Log, onLogin func(context.Context, string, string, bool)) (*identity.Service, error) {
	client, err := p.config.IssuerClient(p.options.Env)
	if err != nil {
		return nil, err
	}
	o := p.config.IdentityOptions(p.secrets)
	o.Client, o.OnLogin, o.Audit, o.Interval, o.Log = client, onLogin, log.RecordAction, p.keysMaxAge(), p.log
	o.OnBlock = login.EndOf
	return identity.Open(ctx, p.store, o)
}

// keysMaxAge is how long cached keys are used. Nodes notify each other of changes, so it
// can be long; processes on a SQLite file cannot.
func (p *process) keysMaxAge() time.Duration {
	if p.isShared() {
		return cmp.Or(p.options.pollInterval, 10*time.Second)
	}
	return 0 // the default
}

// owners finds the people that stored values belong to.
func (a *access) owners() personal.Owners {
	owners := personal.Owners{Check: a.keys.CheckID}
	if a.people != nil {
		owners.People = a.people.Store
	}
	return owners
}

// currentPrincipal returns the current rights of a principal: of a key, or of a webhook.
func (a *access) currentPrincipal(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	if who, ok, err := a.webhooks.Current(was); ok {
		return who, err
	}
	return a.keys.Current(ctx, was)
}

// caller returns the name under which a principal's sessions, pending calls and variables
// are stored. The local owner is the unnamed user of stdio and the terminal.
func caller(r *http.Request) string {
	if who := principal.Of(r.Context()); who.ID != principal.LocalID {
		return who.ID
	}
	return ""
}

// checkKeyRequired refuses to listen on an address that other machines can reach while no
// key exists.
func (a *access) checkKeyRequired(ctx context.Context, address string) error {
	shut, err := a.auth.KeyRequired(ctx)
	if err != nil || shut {
		return err
	}
	if config.ListensLocally(address) {
		return nil
	}
	return fault.New(fault.Config, "listen on %s: other machines can reach that address, and no key is required", address).
		WithHint("make a key first: luanette key create admin --scope admin")
}

// guardedFile is in a data folder whose server requires keys, or did.
const guardedFile = "keys_required"

// checkGuarded refuses to open a server to this machine that once required keys: its database
// was emptied or replaced.
func (a *access) checkGuarded(ctx context.Context, p *process) error {
	required, err := a.auth.KeyRequired(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(p.config.Data, guardedFile)
	if required {
		return noteGuarded(path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		a.keys.Watch(func() { a.noteFirstKey(context.WithoutCancel(ctx), p) })
		return nil
	}
	return fault.New(fault.Config, "this server required keys before, and its database has none").
		WithHint("restore a backup, or make a key with `luanette key create admin --scope admin`; to open it to this machine again, remove %s", path)
}

// noteGuarded makes the file.
func noteGuarded(path string) error {
	if err := os.WriteFile(path, []byte("This server requires keys. Without any, it does not start.\n"), 0o600); err != nil {
		return fault.Wrap(fault.Config, err, "note that keys are required")
	}
	return nil
}

// noteFirstKey makes the file when the first key was created.
func (a *access) noteFirstKey(ctx context.Context, p *process) {
	has, err := a.keys.HasKeys(ctx)
	if err == nil && has {
		err = noteGuarded(filepath.Join(p.config.Data, guardedFile))
	}
	if err != nil {
		p.log.WarnContext(ctx, "a server that loses its database will not notice that it had keys", "error", err)
	}
}
