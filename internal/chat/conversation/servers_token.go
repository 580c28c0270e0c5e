package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
)

// storedServer is a server as it is stored. Its token is encrypted, and bound to its owner
// and URL.
type storedServer struct {
	bareServer
	Sealed []byte `json:"sealedToken,omitempty"`
}

// bareServer is a Server without its UnmarshalJSON.
type bareServer Server

func (r *Service) sealed(p Person, s Server) (storedServer, error) {
	k := storedServer{bareServer: bareServer(s)}
	if s.AuthToken == "" {
		return k, nil
	}
	if r.options.Secrets.Key == nil {
		return k, fault.New(fault.Unavailable, "tokens of servers cannot be stored here")
	}
	k.AuthToken = ""
	var err error
	k.Sealed, err = r.options.Secrets.Seal(s.AuthToken, aboutToken(p, s)...)
	return k, err
}

// unsealed returns the server with its token, or without it if it cannot be decrypted,
// so that the server can still be removed or changed. A token that an earlier version
// stored in plain text is used as it is.
func (r *Service) unsealed(ctx context.Context, p Person, k storedServer) Server {
	s := Server(k.bareServer)
	if len(k.Sealed) == 0 || r.options.Secrets.Key == nil {
		return s
	}
	if err := r.options.Secrets.Open(k.Sealed, &s.AuthToken, aboutToken(p, s)...); err != nil {
		r.options.Log.WarnContext(ctx, "decrypt token of a server", "org", p.Org, "user_id", p.User, "server", s.ID, "error", err, "hint", fault.HintOf(err))
	}
	return s
}

func aboutToken(p Person, s Server) []string {
	return []string{"server of a chat", p.Org, p.User, s.ID, s.URL}
}
