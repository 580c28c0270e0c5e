package owner

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/peer"
	"github.com/luanette/luanette/internal/core/principal"
)

// Local says what requests from this machine may do that come without the owner's secret,
// a key or a session.
type Local string

// The values of the setting `local`.
const (
	AsOwner Local = "owner" // everything
	AsGuest Local = "guest" // use tools
	AsNone  Local = "none"  // nothing
)

// Program is a program that this server has started.
type Program struct {
	Namespace string // of the upstream that it is; empty: it is a command of a script or tool
	Hub       bool   // the upstream may use this server
}

// Peers decides whom a server without keys serves. Its fields must not change after the
// first use.
type Peers struct {
	Local    Local
	AllUsers bool // requests of other users of this machine are served like those of ours
	// Data is the data folder with the secret, if commands use another one unless told.
	Data string
	// Programs are those that run, by process id; nil: there are none.
	Programs func() map[int]Program

	finder peer.Finder
}

// Conn is a connection, with what was found out about its other end.
type Conn struct {
	net.Conn
	once sync.Once
	who  principal.Principal
	err  error
}

type connKey struct{}

// WithConn returns ctx with a connection.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &Conn{Conn: c})
}

// Identify returns whom the requests of the connection of ctx are from: a guest, an
// upstream, or the owner. It looks once for each connection.
func (p *Peers) Identify(ctx context.Context) (principal.Principal, error) {
	c, ok := ctx.Value(connKey{}).(*Conn)
	if !ok { // inside this process
		return p.guest()
	}
	c.once.Do(func() { c.who, c.err = p.identify(c.Conn) })
	return c.who, c.err
}

// MayBeOwner refuses the owner's credentials from a program that this server has started.
func (p *Peers) MayBeOwner(ctx context.Context) error {
	_, err := p.Identify(ctx)
	if errors.Is(err, errProgram) || errors.Is(err, errOther) {
		return err
	}
	return nil
}

var (
	errProgram = errors.New("programs that this server has started do not use it")
	errOther   = errors.New("other users of this machine are not served")
)

func (p *Peers) identify(conn net.Conn) (principal.Principal, error) {
	programs := map[int]Program{}
	if p.Programs != nil {
		programs = p.Programs()
	}
	ids := make([]int, 0, len(programs))
	for id := range programs {
		ids = append(ids, id)
	}
	for {
		wrapped, ok := conn.(interface{ NetConn() net.Conn }) // TLS, or limited
		if !ok {
			break
		}
		conn = wrapped.NetConn()
	}
	found, err := p.finder.Find(conn, os.Getuid(), ids)
	switch program := programs[found.Program]; {
	case errors.Is(err, peer.ErrUnsupported):
		return p.guest()
	case err != nil:
		return principal.Anonymous(), fault.Wrap(fault.NeedsAuth, err, "who sends the request is not known").WithHint("%s", p.SignInHint())
	case found.UID != os.Getuid() && found.UID != 0 && !p.AllUsers:
		return principal.Anonymous(), fault.Wrap(fault.Denied, errOther, "user %d", found.UID).
			WithHint(`local_users = "all" serves them; a key of their own lets one of them in: luanette key create`)
	case found.Program == 0:
		return p.guest()
	case !program.Hub:
		return principal.Anonymous(), fault.Wrap(fault.Denied, errProgram, "%s", program.title()).
			WithHint("hub = true in [upstreams.NAME] lets a server's program use this server, with rights of its own")
	default:
		return principal.UpstreamGuest(program.Namespace), nil
	}
}

func (p Program) title() string {
	if p.Namespace == "" {
		return "a command"
	}
	return "upstream " + p.Namespace
}

// OpenCommand is the command that signs the owner's browser in.
func (p *Peers) OpenCommand() string {
	command := []string{"luanette", "open"}
	if p.Data != "" {
		command = append(command, "--data", p.Data)
	}
	return commandline.Join(command)
}

// SignInHint says how the owner shows that they are.
func (p *Peers) SignInHint() string {
	hint := p.OpenCommand() + " signs the browser in; commands on this machine sign in by themselves"
	if p.Data != "" {
		hint += ", with the same --data"
	}
	return hint
}

// guest returns whom requests without credentials are from.
func (p *Peers) guest() (principal.Principal, error) {
	switch p.Local {
	case AsOwner:
		return principal.Local(), nil
	case AsNone:
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "this server serves its owner only").WithHint("%s", p.SignInHint())
	}
	return principal.Guest(), nil
}
