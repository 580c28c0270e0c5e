package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/store/db"
)

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
func ConnectKeys(address string, key secret.Text) (Keys, error) {
	base, err := serverURL(address)
	return remoteKeys{base, key}, err
}

// serverURL parses the address of a server.
func serverURL(address string) (*url.URL, error) {
	base, err := url.Parse(withScheme(address))
	if err != nil || base.Host == "" {
		return nil, fault.New(fault.InvalidParams, "%q is not the address of a server", address).WithHint("for example http://127.0.0.1:8081")
	}
	return base, nil
}

type remoteKeys struct {
	base *url.URL
	key  secret.Text
}

func (k remoteKeys) Create(ctx context.Context, want httpauth.NewKey) (made httpauth.KeyView, err error) {
	return made, k.do(ctx, http.MethodPost, []string{"/api/v1/keys"}, want, &made)
}

func (k remoteKeys) List(ctx context.Context) ([]httpauth.KeyView, error) {
	var answer struct{ Keys []httpauth.KeyView }
	err := k.do(ctx, http.MethodGet, []string{"/api/v1/keys"}, nil, &answer)
	return answer.Keys, err
}

func (k remoteKeys) Revoke(ctx context.Context, name string) (revoked httpauth.KeyView, err error) {
	return revoked, k.do(ctx, http.MethodDelete, []string{"/api/v1/keys", name}, nil, &revoked)
}

func (remoteKeys) Close() error { return nil }

// do sends a request and decodes the response.
func (k remoteKeys) do(ctx context.Context, method string, path []string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, k.base.JoinPath(path...).String(), bytes.NewReader(raw))
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "create request")
	}
	req.Header.Set("Content-Type", "application/json")
	if !k.key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+k.key.Reveal())
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "connect to the server").
			WithHint("start it with `luanette serve`, or omit --server to use the database")
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read the response")
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return keysFault(resp, answer)
	}
	return json.Unmarshal(answer, into)
}

// keysFault reads the error of a response.
func keysFault(resp *http.Response, answer []byte) error {
	var body struct{ Message, Hint string }
	if json.Unmarshal(answer, &body) != nil || body.Message == "" {
		return fault.New(fault.Upstream, "the server responded with %s", resp.Status)
	}
	f := fault.New(fault.Upstream, "%s", body.Message)
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		f = fault.New(fault.NeedsAuth, "%s", body.Message)
		if body.Hint == "" {
			body.Hint = "set LUANETTE_KEY to a key of the server with the scope admin"
		}
	}
	if body.Hint != "" {
		f = f.WithHint("%s", body.Hint)
	}
	return f
}
