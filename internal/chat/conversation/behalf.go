package conversation

import (
	"context"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Scoper is an Agent that knows which tools turns may use.
type Scoper interface {
	Scope(servers []agent.Server) *tool.Scope
}

// asPerson returns ctx with a principal that acts for a person.
func asPerson(ctx context.Context, who principal.Principal, p Person) context.Context {
	who.Person = url.PathEscape(p.Org) + "/" + p.User
	return principal.With(ctx, who)
}

// InScope returns ctx with the tools that the conversations of the principal's person may
// use, for jobs that were started in one. Outside of chats it is ctx.
func (r *Service) InScope(ctx context.Context) (context.Context, error) {
	name, user, in := strings.Cut(principal.Of(ctx).Person, "/")
	scoper, can := r.agent.(Scoper)
	if !in || !can {
		return ctx, nil
	}
	org, err := url.PathUnescape(name)
	if err != nil {
		return ctx, err
	}
	servers, err := r.offered(ctx, newTurn("", Message{Person: Person{Org: org, User: user}}))
	if err != nil {
		return ctx, err
	}
	return tool.WithScope(ctx, scoper.Scope(servers)), nil
}
