package server

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// openPersonal opens the values of single people, and lets upstreams use them.
func (srv *Server) openPersonal(ctx context.Context, o *upstream.Options) (err error) {
	owners := personal.Owners{Check: srv.keys.CheckID}
	if srv.people != nil {
		owners.People = srv.people.Store
	}
	key := sync.OnceValues(func() (secret.Text, error) { return srv.config.OAuthKey(srv.secrets) })
	srv.personal, err = personal.Open(ctx, srv.store, personal.Options{Owners: owners, Key: key, Log: srv.log})
	o.Person, o.Personal = owners.Person, srv.personal.Get
	return err
}

// followPeople ends connections of people who were blocked, or whose values changed.
func (srv *Server) followPeople(manager *upstream.Manager) {
	watch := []func(func()) (stop func()){srv.keys.Watch}
	if srv.people != nil {
		watch = append(watch, srv.people.Store.Watch)
	}
	srv.runBackground(func(ctx context.Context) { srv.personal.Follow(ctx, manager, watch...) })
}
