package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
)

// keptServer is a server as it is stored: its token can be read by us only, and for
// nobody else's server and no other address.
type keptServer struct {
	bareServer
	Sealed []byte `json:"sealedToken,omitempty"`
}

// bareServer is a Server that is read as it was written.
type bareServer Server

func (r *Service) sealed(p Person, s Server) (keptServer, error) {
	k := keptServer{bareServer: bareServer(s)}
	if s.AuthToken == "" {
		return k, nil
	}
	if r.options.Secrets.Key == nil {
		return k, fault.New(fault.Unavailable, "tokens of servers cannot be kept here")
	}
	k.AuthToken = ""
	var err error
	k.Sealed, err = r.options.Secrets.Seal(s.AuthToken, aboutToken(p, s)...)
	return k, err
}

// unsealed is the server with its token; without it when it cannot be read any more,
// so that the server can still be removed or given another. One that was kept in the
// clear by an earlier version is read as it is.
func (r *Service) unsealed(ctx context.Context, p Person, k keptServer) Server {
	s := Server(k.bareServer)
	if len(k.Sealed) == 0 || r.options.Secrets.Key == nil {
		return s
	}
	if err := r.options.Secrets.Open(k.Sealed, &s.AuthToken, aboutToken(p, s)...); err != nil {
		r.options.Log.WarnContext(ctx, "token of a server not read", "org", p.Org, "user_id", p.User, "server", s.ID, "error", err, "hint", fault.HintOf(err))
	}
	return s
}

func aboutToken(p Person, s Server) []string {
	return []string{"server of a chat", p.Org, p.User, s.ID, s.URL}
}
