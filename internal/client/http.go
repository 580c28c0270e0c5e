package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
)

// Access is what connections to a running server need.
type Access = serverapi.Access

// Request sends a request to the API of the server at address.
func Request(ctx context.Context, address string, access Access, method, path string, body any) (json.RawMessage, error) {
	api, err := serverapi.Connect(address, access)
	if err != nil {
		return nil, err
	}
	return api.Send(ctx, method, path, body)
}

// Keys creates, lists and revokes API keys, in the database or on a running server.
type Keys interface {
	Create(ctx context.Context, want httpauth.NewKey) (httpauth.KeyView, error)
	List(ctx context.Context) ([]httpauth.KeyView, error)
	Revoke(ctx context.Context, name string) (httpauth.KeyView, error)
	Close() error
}

// OpenKeys opens the keys of a configuration's database. Servers that use the same
// database notice changes.
func OpenKeys(ctx context.Context, loaded *config.Loaded, env config.Environment) (Keys, error) {
	fixed, err := loaded.FixedKeys(env)
	if err != nil {
		return nil, err
	}
	if err := config.MakeDataFolder(loaded.Data); err != nil {
		return nil, err
	}
	store, err := loaded.OpenDatabase(ctx, loaded.SecretFinder(env))
	if err != nil {
		return nil, err
	}
	var failed error
	ring, err := apikey.Open(ctx, store, apikey.Options{Fixed: fixed, OnChange: func(ctx context.Context, action, name string) {
		failed = recordAudit(ctx, store, loaded, action, name)
	}})
	if err != nil {
		_ = store.Close() // the first error matters
		return nil, err
	}
	return localKeys{ring, store, &failed}, nil
}

type localKeys struct {
	ring   *apikey.Store
	store  *db.DB
	failed *error // of the last audit entry
}

func (k localKeys) Create(ctx context.Context, want httpauth.NewKey) (httpauth.KeyView, error) {
	key, err := want.Key(time.Now())
	if err != nil {
		return httpauth.KeyView{}, err
	}
	made, token, err := k.ring.Create(ctx, key)
	v := httpauth.ViewOf(made, time.Now())
	v.Token = token
	return v, err
}

func (k localKeys) List(ctx context.Context) (views []httpauth.KeyView, err error) {
	list, err := k.ring.List(ctx)
	for _, key := range list {
		views = append(views, httpauth.ViewOf(key, time.Now()))
	}
	return views, err
}

func (k localKeys) Revoke(ctx context.Context, name string) (httpauth.KeyView, error) {
	key, err := k.ring.Revoke(ctx, name)
	return httpauth.ViewOf(key, time.Now()), err
}

func (k localKeys) Close() error { return errors.Join(*k.failed, k.store.Close()) }

// ConnectKeys uses the keys of the server at address.
func ConnectKeys(address string, access Access) (Keys, error) {
	api, err := serverapi.Connect(address, access)
	return remoteKeys{api, "/api/v1/keys"}, err
}

// ConnectOwnKeys uses the keys of the person who is signed in at the server at address.
func ConnectOwnKeys(address string, access Access) (Keys, error) {
	api, err := serverapi.Connect(address, access)
	return remoteKeys{api, "/api/v1/me/keys"}, err
}

type remoteKeys struct {
	api  serverapi.API
	path string
}

func (k remoteKeys) Create(ctx context.Context, want httpauth.NewKey) (created httpauth.KeyView, err error) {
	return created, k.api.SendInto(ctx, http.MethodPost, k.path, want, &created)
}

func (k remoteKeys) List(ctx context.Context) ([]httpauth.KeyView, error) {
	var list struct{ Keys []httpauth.KeyView }
	err := k.api.SendInto(ctx, http.MethodGet, k.path, nil, &list)
	return list.Keys, err
}

func (k remoteKeys) Revoke(ctx context.Context, name string) (revoked httpauth.KeyView, err error) {
	return revoked, k.api.SendInto(ctx, http.MethodDelete, k.path+"/"+url.PathEscape(name), nil, &revoked)
}

func (remoteKeys) Close() error { return nil }

// Nodes lists the servers that share the configuration's database.
func Nodes(ctx context.Context, loaded *config.Loaded, env config.Environment) (list []node.Info, err error) {
	store, err := loaded.OpenDatabase(ctx, loaded.SecretFinder(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return node.List(ctx, store)
}

// recordAudit writes one entry to the audit log for an action that a command did
// without a server.
func recordAudit(ctx context.Context, store *db.DB, loaded *config.Loaded, action, subject string) error {
	if !loaded.Audit.Enabled {
		return nil
	}
	log, err := audit.Open(ctx, store, audit.Options{Node: loaded.NodeName()})
	if err != nil {
		return err
	}
	who := principal.Of(ctx)
	log.Record(ctx, audit.Entry{Who: who.ID, Name: who.Name, Client: who.User, Action: action, Subject: subject, Args: audit.Digest(nil), Decision: "allow"})
	return log.Close(ctx)
}
