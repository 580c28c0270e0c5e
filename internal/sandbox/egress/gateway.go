package egress

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/sandbox/certificates"
)

// Program is what a gateway is for.
type Program struct {
	Name    string
	Rules   Rules
	Secrets []Secret
}

// Gateway is the way out of one program, from its start to its end.
type Gateway struct {
	service   *Service
	name      string
	dialer    dialer
	password  string
	secrets   []heldSecret
	authority *certificates.Authority // nil without secrets
	files     *certificates.Files     // nil without secrets
	names     nameTable

	plain     http.Server // of the program's requests to the proxy
	incoming  *handoff
	secure    http.Server // of its requests inside TLS to hosts of secrets
	decrypted *handoff
	transport *http.Transport
	forward   httputil.ReverseProxy

	slots  chan struct{}   // one per open connection
	shared bool            // others reach the listener, too
	ctx    context.Context // of the program's connections, until Close
	cancel context.CancelFunc

	mu    sync.Mutex
	open  map[*clientConn]bool // nil after the end
	tasks sync.WaitGroup

	refused map[string]bool // destinations, up to maxHosts
}

// Gateway makes the gateway of a program. It is ready to use; Serve or Close releases it.
func (s *Service) Gateway(p Program) (*Gateway, error) {
	secrets, err := holdSecrets(p.Secrets)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		service: s, name: p.Name, password: rand.Text(), secrets: secrets,
		dialer:   dialer{rules: p.Rules, resolve: s.options.Resolve, dial: s.options.Dial},
		incoming: newHandoff(), decrypted: newHandoff(), slots: make(chan struct{}, s.options.MaxConnections), open: map[*clientConn]bool{}, refused: map[string]bool{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if hosts := secretHosts(secrets); len(hosts) > 0 {
		if err := g.issue(hosts); err != nil {
			return nil, fmt.Errorf("certificates of %s: %w", p.Name, err)
		}
	}
	g.transport = newTransport(g.dialTransport, s.options.Roots)
	g.configure(&g.plain, g.serveProxy)
	g.configure(&g.secure, g.serveIntercepted)
	g.forward = httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: maskResponse, ErrorHandler: g.answerError,
		Transport: g.transport, FlushInterval: -1, ErrorLog: g.plain.ErrorLog,
	}
	return g, nil
}

// issue makes the authority of the program.
func (g *Gateway) issue(hosts []string) (err error) {
	if g.authority, err = certificates.New(g.name, hosts, g.service.options.Clock.Now()); err != nil {
		return err
	}
	g.files, err = g.authority.Write(g.service.options.Folder, g.service.options.RootFiles)
	return err
}

const (
	maxHeader  = 64 << 10
	keptOpen   = 2 * time.Minute // idle connections of plain HTTP
	halfClosed = 10 * time.Minute
)

func (g *Gateway) configure(server *http.Server, handler http.HandlerFunc) {
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.enter() {
			defer g.tasks.Done()
			handler(w, r)
		}
	})
	server.MaxHeaderBytes = maxHeader
	server.ReadHeaderTimeout, server.IdleTimeout = g.service.options.HandshakeTimeout, keptOpen
	server.ErrorLog = log.New(discard{}, "", 0) // what a program does wrong is in the record of its connection
	server.ConnContext = withConn
	server.BaseContext = func(net.Listener) context.Context { return g.ctx }
	server.TLSConfig = tlsDefaults()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Serve accepts the program's connections until the listener is closed. If shared, other
// programs reach the listener, too, and connections need the password of Env. The gateway
// ends with it.
func (g *Gateway) Serve(listener net.Listener, shared bool) {
	g.shared = shared
	g.tasks.Go(func() { _ = g.plain.Serve(g.incoming) })
	g.tasks.Go(func() { _ = g.secure.Serve(g.decrypted) })
	g.accept(listener, g.receive)
	g.Close()
}

// accept passes connections on, as many at a time as are allowed.
func (g *Gateway) accept(listener net.Listener, receive func(*clientConn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || g.service.options.Clock.Sleep(g.ctx, 10*time.Millisecond) != nil {
				return
			}
			continue // such as too many open files
		}
		select {
		case g.slots <- struct{}{}:
		case <-g.ctx.Done():
			_ = conn.Close()
			return
		}
		if client := (&clientConn{Conn: conn, gateway: g}); !g.start(client, receive) {
			_ = client.Close()
			return
		}
	}
}

// start serves a connection, unless the gateway has ended.
func (g *Gateway) start(client *clientConn, receive func(*clientConn)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return false
	}
	g.open[client] = true
	g.tasks.Go(func() { receive(client) })
	return true
}

// isFirst reports whether it is called for a destination for the first time.
func (g *Gateway) isFirst(to string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[to] || len(g.refused) >= maxHosts {
		return false
	}
	g.refused[to] = true
	return true
}

// enter begins a task, unless the gateway has ended.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return false
	}
	g.tasks.Add(1)
	return true
}

func (g *Gateway) remove(client *clientConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, client)
}

// Close ends all connections and removes the program's certificates. It waits until all
// are recorded.
func (g *Gateway) Close() {
	g.cancel()
	g.mu.Lock()
	open := g.open
	g.open = nil
	g.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
	_ = g.plain.Close()
	_ = g.secure.Close()
	_ = g.incoming.Close()
	_ = g.decrypted.Close()
	g.tasks.Wait()
	g.transport.CloseIdleConnections()
	if g.files != nil {
		g.files.Remove()
	}
}

// Env returns the variables, as NAME=value, by which the program finds the proxy at
// address, and the placeholders of its secrets.
func (g *Gateway) Env(address string) []string {
	proxy := (&url.URL{Scheme: "http", User: url.UserPassword("luanette", g.password), Host: address}).String()
	env := []string{"NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+proxy)
	}
	if g.files != nil {
		env = append(env, g.files.Env()...)
	}
	for _, s := range g.secrets {
		if s.variable != "" {
			env = append(env, s.variable+"="+s.placeholder)
		}
	}
	return env
}

// Files are the certificates that the program must be able to read.
func (g *Gateway) Files() []string {
	if g.files == nil {
		return nil
	}
	return g.files.Paths()
}

// Ports are the ports at which connections of programs that do not know the proxy are
// taken: those of the web, and those that the rules name.
func (g *Gateway) Ports() []int {
	ports := []int{80, 443}
	for _, r := range g.dialer.rules.list {
		if port := int(r.port); port != 0 && !slices.Contains(ports, port) && len(ports) < maxPorts {
			ports = append(ports, port)
		}
	}
	return ports
}

// maxPorts is at how many ports there is a listener.
const maxPorts = 64

// ServeDirect accepts connections that the program believes to have with another host,
// until the listener is closed. Their local address is that of the host.
func (g *Gateway) ServeDirect(listener net.Listener) { g.accept(listener, g.receiveDirect) }

// receiveDirect connects the program to the host that it means.
func (g *Gateway) receiveDirect(client *clientConn) {
	local, isTCP := client.LocalAddr().(*net.TCPAddr)
	if !isTCP {
		_ = client.Close()
		return
	}
	at := local.AddrPort()
	to, err := newDestination(g.HostOf(at.Addr()), at.Port())
	if err != nil {
		_ = client.Close()
		return
	}
	g.carry(client, to, Direct, func(failed error) error {
		if failed != nil {
			g.explainDirect(client, failed)
		}
		return nil
	})
}

// patience is how long a program may take to speak, and to hear why it is refused.
const patience = 2 * time.Second

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16

// explainDirect tells a program in its own protocol that it is refused, if it is TLS or
// HTTP: others see that the connection ends.
func (g *Gateway) explainDirect(client *clientConn, failed error) {
	_ = client.SetDeadline(time.Now().Add(patience))
	first := make([]byte, 4096)
	n, err := client.Read(first)
	switch {
	case err != nil:
		return
	case first[0] == tlsHandshake:
		_, err = client.Conn.Write([]byte{0x15, 3, 1, 0, 2, 2, 49}) // the alert access_denied
	case n > 4 && isUpper(first[0]) && isUpper(first[1]):
		err = g.writeRefusal(client, failed)
	default:
		return
	}
	if err == nil && client.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(client, maxHeader)) // unread data would take the answer with it
	}
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }
