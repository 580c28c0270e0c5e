package grpcapi

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// dial prepares the connection, which is made when it is first used.
func dial(env api.Environment, endpoint *url.URL) (*grpc.ClientConn, error) {
	if env.AllowURL != nil {
		if err := env.AllowURL(endpoint); err != nil {
			return nil, err
		}
	}
	security := insecure.NewCredentials()
	if endpoint.Scheme == "https" {
		config, err := certpool.WithPair(env.TLS, env.Settings.CertFile, env.Settings.KeyFile)
		if err != nil {
			return nil, err
		}
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		security = credentials.NewTLS(config)
	}
	dialer := &netguard.Dialer{Dialer: net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second, Control: env.DialControl}, Proxy: env.Proxy}
	// The dialer resolves the name, so that it sees every address that is tried.
	conn, err := grpc.NewClient("passthrough:///"+endpoint.Host,
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithUserAgent(env.Header.Get("User-Agent")),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(env.MaxAnswer)))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "address of the API")
	}
	return conn, nil
}

// reserved are the headers that gRPC sets itself.
var reserved = []string{"user-agent", "content-type", "te", "host", "connection", "accept", "accept-encoding"}

// outgoing adds the configured metadata and the token of a login to a context.
func (a *API) outgoing(ctx context.Context, token string) context.Context {
	md := metadata.MD{}
	for name, values := range a.env.Header {
		if key := strings.ToLower(name); !slices.Contains(reserved, key) && !strings.HasPrefix(key, "grpc-") {
			md[key] = slices.Clone(values)
		}
	}
	switch s := a.env.Settings; {
	case token != "":
		md.Set("authorization", "Bearer "+token)
	case s.User != "":
		md.Set("authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.User+":"+s.Password)))
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// usesLogin reports whether calls carry the token of a login. It is not sent in the clear
// to other machines.
func (a *API) usesLogin() bool {
	return a.env.Login != nil && (a.endpoint.Scheme == "https" || netguard.IsLoopback(a.endpoint.Hostname()))
}

func (a *API) token(ctx context.Context) (string, error) {
	if !a.usesLogin() {
		return "", nil
	}
	return a.env.Login.Token(ctx, a.endpoint.String())
}
