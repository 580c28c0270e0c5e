package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
)

// httpAPI sends requests to the HTTP API of a running server.
type httpAPI struct {
	base string // without a slash at the end
	key  secret.Text
	http *http.Client
}

// Access is what connections to a running server need.
type Access struct {
	Key    secret.Text // API key; zero if the server requires none
	CAFile string      // PEM file with the authority of its certificate; empty: one of the system
}

// connectHTTP returns the API of the server at address, such as http://127.0.0.1:8081. An
// address of its MCP endpoint is accepted too.
func connectHTTP(address string, access Access) (httpAPI, error) {
	u, err := url.Parse(withScheme(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return httpAPI{}, fault.New(fault.InvalidParams, "%s is not the address of an HTTP server", address).WithHint("for example http://127.0.0.1:8081")
	}
	path, _, _ := strings.Cut(u.Path, "/mcp")
	api := httpAPI{u.Scheme + "://" + u.Host + strings.TrimRight(path, "/"), access.Key, http.DefaultClient}
	if access.CAFile != "" {
		api.http, err = certpool.Client(access.CAFile)
	}
	return api, err
}

// withScheme adds http:// to an address without a scheme.
func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// open sends a request and returns the response if it is not an error. The caller closes
// its body.
func (a httpAPI) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	request, err := newRequest(ctx, method, a.base+path, body)
	if err != nil {
		return nil, err
	}
	if !a.key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+a.key.Reveal())
	}
	response, err := a.http.Do(request)
	if err != nil {
		if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
			err = withURL.Err // the message names the address already
		}
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s", a.base).WithHint("%s", cmp.Or(certpool.Hint(err), startHint))
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.base)
	}
	return nil, responseError(response.StatusCode, raw)
}

// maxResponse is the maximum size of a response, in bytes.
const maxResponse = 256 << 20

// send sends a request and returns the body of the response.
func (a httpAPI) send(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	response, err := a.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.base)
	}
	return raw, nil
}

// sendInto sends a request and decodes the response.
func (a httpAPI) sendInto(ctx context.Context, method, path string, body, into any) error {
	raw, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", a.base)
	}
	return nil
}

// newRequest returns a request with a JSON body, which may be nil.
func newRequest(ctx context.Context, method, target string, body any) (*http.Request, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// responseError returns the error in a response. Some APIs have codes of their own, in
// capitals; for those the status determines the code.
func responseError(status int, body []byte) error {
	type problem struct{ Code, Message, Hint string }
	var p problem
	var nested struct{ Error problem }
	if json.Unmarshal(body, &nested) == nil && nested.Error.Message != "" {
		p = nested.Error
	} else if json.Unmarshal(body, &p) != nil || p.Message == "" {
		return fault.New(codeOf(status), "the server responded with status %d", status).WithHint("check that it is a luanette of this version")
	}
	if status == http.StatusUnauthorized {
		return fault.New(fault.NeedsAuth, "the server requires a key: %s", p.Message).WithHint(keyHint)
	}
	code := fault.Code(p.Code)
	if p.Code == "" || p.Code != strings.ToLower(p.Code) {
		code = codeOf(status)
	}
	if code == fault.NeedsAuth && p.Hint == "" {
		p.Hint = keyHint
	}
	return fault.New(code, "%s", p.Message).WithHint("%s", p.Hint)
}

func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.NeedsAuth
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway:
		return fault.Unavailable
	default:
		return fault.Upstream
	}
}

// Request sends a request to the API of the server at address.
func Request(ctx context.Context, address string, access Access, method, path string, body any) (json.RawMessage, error) {
	api, err := connectHTTP(address, access)
	if err != nil {
		return nil, err
	}
	return api.send(ctx, method, path, body)
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
	api, err := connectHTTP(address, access)
	return remoteKeys{api, "/api/v1/keys"}, err
}

// ConnectOwnKeys uses the keys of the person who is signed in at the server at address.
func ConnectOwnKeys(address string, access Access) (Keys, error) {
	api, err := connectHTTP(address, access)
	return remoteKeys{api, "/api/v1/me/keys"}, err
}

type remoteKeys struct {
	api  httpAPI
	path string
}

func (k remoteKeys) Create(ctx context.Context, want httpauth.NewKey) (created httpauth.KeyView, err error) {
	return created, k.api.sendInto(ctx, http.MethodPost, k.path, want, &created)
}

func (k remoteKeys) List(ctx context.Context) ([]httpauth.KeyView, error) {
	var list struct{ Keys []httpauth.KeyView }
	err := k.api.sendInto(ctx, http.MethodGet, k.path, nil, &list)
	return list.Keys, err
}

func (k remoteKeys) Revoke(ctx context.Context, name string) (revoked httpauth.KeyView, err error) {
	return revoked, k.api.sendInto(ctx, http.MethodDelete, k.path+"/"+url.PathEscape(name), nil, &revoked)
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
	log.Record(ctx, audit.Draft{Who: who.ID, Name: who.Name, Client: who.User, Action: action, Subject: subject, Args: audit.Digest(nil), Decision: "allow"})
	return log.Close(ctx)
}
