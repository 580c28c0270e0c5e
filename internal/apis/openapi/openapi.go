// Package openapi offers the operations of services with an OpenAPI or Swagger document as
// tools. Documents are read lazily from their raw JSON, since those of large services take
// other readers seconds and hundreds of megabytes.
package openapi

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
)

// API is a service with a document. It implements api.API.
type API struct {
	env    api.Environment
	client *httpcall.Client
	source *source
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	service *service
	problem string // why the newest document is not used
}

var _ api.Opener = Open

// Open reads the document of a service and watches it for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	source, err := newSource(ctx, env)
	if err != nil {
		return nil, err
	}
	var client *httpcall.Client
	loaded, err := load(env, source.reader(ctx))
	if err == nil {
		if env.Login != nil && loaded.tokenURL != "" {
			env.Login = env.Login.At(loaded.tokenURL)
		}
		client, err = httpcall.New(env, loaded.base)
	}
	if err != nil {
		source.abandon(ctx)
		return nil, err
	}
	a := &API{env: env, client: client, source: source, service: loaded}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.done.Go(func() { source.watch(watching, a.reload) })
	return a, nil
}

// reload reads the document again. A document that cannot be used, or that names another
// service, changes nothing: credentials are for the service that was configured.
func (a *API) reload(ctx context.Context) {
	fresh, err := load(a.env, a.source.reader(ctx))
	a.mu.Lock()
	switch {
	case err != nil:
		a.problem = "the changed document is not used: " + err.Error()
	case fresh.base != a.service.base:
		a.problem = "the changed document is not used: it names another server, " + fresh.base + "; set base_url, or add the upstream again"
	case fresh.tokenURL != a.service.tokenURL:
		a.problem = "the changed document is not used: it names another address for tokens, " + fresh.tokenURL + "; add the upstream again"
	default:
		a.service, a.problem = fresh, ""
	}
	problem := a.problem
	a.mu.Unlock()
	if problem != "" {
		a.env.Log.WarnContext(ctx, "API document is not used", "upstream", a.env.Name, "reason", problem)
	}
	a.env.Changed()
}

// List implements api.API.
func (a *API) List(context.Context) (api.Listing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	listing := a.service.listing
	if a.problem != "" {
		listing.LeftOut = append([]string{a.problem}, listing.LeftOut...)
	}
	return listing, nil
}

// Call implements api.API.
func (a *API) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	a.mu.Lock()
	op, base := a.service.operations[call.Tool], a.service.base
	a.mu.Unlock()
	if op == nil {
		return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
	}
	if op.base != "" {
		base = op.base
	}
	builder := newBuilder(op, call.Arguments)
	request, err := builder.request(base)
	if err != nil {
		return nil, err
	}
	if err := builder.addBody(ctx, &request, a.env.Files); err != nil {
		return nil, err
	}
	a.client.Identify(&request)
	request.Progress = func(message string) { call.Progress(0, 0, message) }
	query := builder.pageQuery(request.URL)
	response, err := a.client.Do(ctx, request) //nolint:bodyclose // result closes it
	if err != nil {
		return nil, err
	}
	return answer{op, query, a.env, a.client, response}.result(ctx)
}

// Close implements api.API.
func (a *API) Close() {
	a.stop()
	a.done.Wait()
	a.client.Close()
}
