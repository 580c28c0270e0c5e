// Package grpcapi offers the methods of gRPC services as tools.
package grpcapi

import (
	"context"
	"encoding/json"
	"net/url"

	"google.golang.org/grpc"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

// API is a gRPC service. It implements api.API.
type API struct {
	env         api.Environment
	endpoint    *url.URL
	conn        *grpc.ClientConn
	credentials api.Credentials
	clock       clock.Clock
	schema      *description.Description[*service]
}

var _ api.Opener = Open

// Open reads the methods of a service, from a file or from the service itself, and watches
// them for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	endpoint, err := env.Settings.Endpoint()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "address of the API")
	}
	conn, err := dial(env, endpoint)
	if err != nil {
		return nil, err
	}
	a := &API{env: env, endpoint: endpoint, conn: conn, credentials: env.Credentials(), clock: clock.Real()}
	a.schema, err = description.Open(ctx, env, description.Source[*service]{
		Ask:   a.reflect,
		Parse: func(text []byte) (*service, error) { return load(env, endpoint, text) },
	})
	if err != nil {
		_ = conn.Close() // it fails only if it is closed already
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
	m := s.methods[call.Tool]
	if m == nil {
		return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
	}
	in, err := m.message(s, call.Arguments)
	if err != nil {
		return nil, err
	}
	c := &exchange{a, s, m, call}
	if m.streams() {
		return c.collect(ctx, in)
	}
	return c.unary(ctx, in)
}

// Close implements api.API.
func (a *API) Close() {
	a.schema.Close()
	_ = a.conn.Close() // it fails only if it is closed already
}
