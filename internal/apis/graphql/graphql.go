// Package graphql offers the queries and mutations of GraphQL services as tools.
package graphql

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
)

// API is a GraphQL service. It implements api.API.
type API struct {
	env    api.Environment
	url    *url.URL
	client *httpcall.Client
	schema *description.Description[*service]
}

var _ api.Opener = Open

// Open reads the schema of a service, from a file or from the service itself, and watches
// it for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	u, err := url.Parse(env.Settings.Source)
	if err != nil {
		return nil, fault.New(fault.Config, "the url of the API is not valid") // the parse error would quote secrets in it
	}
	client, err := httpcall.New(env, env.Settings.Source)
	if err != nil {
		return nil, err
	}
	a := &API{env: env, url: u, client: client}
	a.schema, err = description.Open(ctx, env, description.Source[*service]{
		Ask:   a.introspect,
		Parse: func(text []byte) (*service, error) { return load(env, text) },
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return a, nil
}

// List implements api.API.
func (a *API) List(context.Context) (api.Listing, error) {
	s, problem := a.schema.Value()
	return description.Listing(s.listing, problem), nil
}

// Call implements api.API.
func (a *API) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	s, _ := a.schema.Value()
	switch op := s.operations[call.Tool]; {
	case op != nil:
		return a.callField(ctx, s, op, call)
	case call.Tool == toolQuery && s.offersDocuments:
		return a.callDocument(ctx, s, call)
	case call.Tool == toolTypes && s.offersDocuments:
		return s.describeTypes(call.Arguments)
	}
	return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
}

// Close implements api.API.
func (a *API) Close() {
	a.schema.Close()
	a.client.Close()
}
