package server

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
)

// openKeys opens the store of API keys and the authenticator of HTTP requests.
func (srv *Server) openKeys(ctx context.Context) error {
	fixed, err := srv.config.FixedKeys(srv.options.Env)
	if err != nil {
		return err
	}
	keys := apikey.Options{Fixed: fixed, Bus: srv.bus, Log: srv.log, OnChange: srv.auditKey, MaxAge: srv.keysMaxAge(), NoGuests: len(srv.config.Issuers)+len(srv.config.Identity) > 0}
	own, err := owner.Secret(srv.config.Data)
	if err != nil {
		return err
	}
	keys.Owner = apikey.HashOf(own.Reveal())
	o := httpauth.Options{Browsers: srv.config.Browsers(), Log: srv.log, OnLogin: srv.auditLogin, Peers: srv.peers(), Secret: own}
	if err := srv.openPeople(ctx, &keys, &o); err != nil {
		return err
	}
	if srv.keys, err = apikey.Open(ctx, srv.store, keys); err != nil {
		return err
	}
	o.Keys = srv.keys
	srv.addIssuers(&o)
	srv.auth = httpauth.New(o)
	return srv.checkGuarded(ctx)
}

// currentPrincipal returns the current rights of a principal: of a key, or of a webhook;
// nil in a server without keys.
func (srv *Server) currentPrincipal() func(context.Context, principal.Principal) (principal.Principal, error) {
	if srv.keys == nil {
		return nil
	}
	return func(ctx context.Context, was principal.Principal) (principal.Principal, error) {
		if who, ok, err := srv.webhooks.Current(was); ok {
			return who, err
		}
		return srv.keys.Current(ctx, was)
	}
}

// peers decides whom the server serves without a key.
func (srv *Server) peers() *owner.Peers {
	if srv.localPeers == nil {
		srv.localPeers = &owner.Peers{Local: owner.Local(srv.config.Local), AllUsers: srv.config.LocalUsers == config.LocalAll, Programs: srv.programs}
		if srv.config.Origins["data"] != "" { // the default is that of commands, too
			srv.localPeers.Data = srv.config.Data
			if folder, err := filepath.Abs(srv.config.Data); err == nil {
				srv.localPeers.Data = folder
			}
		}
	}
	return srv.localPeers
}

// programs are those that this server has started.
func (srv *Server) programs() map[int]owner.Program {
	all := map[int]owner.Program{}
	for id, name := range srv.sandbox.Started() {
		all[id] = srv.program(name)
	}
	return all
}

// program is a program by the name of its profile, which is that of its upstream.
func (srv *Server) program(name string) owner.Program {
	known, is := srv.current().Upstreams[name]
	if !is {
		return owner.Program{}
	}
	return owner.Program{Namespace: name, Hub: known.Hub}
}

// checkKeyRequired refuses to listen on an address that other machines can reach while no
// key exists.
func (srv *Server) checkKeyRequired(ctx context.Context, address string) error {
	shut, err := srv.auth.KeyRequired(ctx)
	if err != nil || shut {
		return err
	}
	if config.ListensLocally(address) {
		return nil
	}
	return fault.New(fault.Config, "listen on %s: other machines can reach that address, and no key is required", address).
		WithHint("make a key first: luanette key create admin --scope admin")
}

// caller returns the name under which a principal's sessions, pending calls and variables
// are stored. The local owner is the unnamed user of stdio and the terminal.
func caller(r *http.Request) string {
	if who := principal.Of(r.Context()); who.ID != principal.LocalID {
		return who.ID
	}
	return ""
}

// keysMaxAge is how long cached keys are used. Nodes notify each other of changes, so it
// can be long; processes on a SQLite file cannot.
func (srv *Server) keysMaxAge() time.Duration {
	if srv.isShared() {
		return cmp.Or(srv.options.pollInterval, 10*time.Second)
	}
	return 0 // the default
}
