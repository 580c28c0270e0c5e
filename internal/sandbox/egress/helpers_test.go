package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/sandbox/egress"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(clocktest.Settled(m))
}

// internet is a network of names whose servers listen on loopback.
type internet struct {
	t       testing.TB
	service *egress.Service
	events  *event.Subscription
	roots   *x509.CertPool

	mu       sync.Mutex
	names    map[string][]netip.Addr
	servers  map[netip.AddrPort]string // where they really listen
	lookups  []string
	dialled  []netip.AddrPort
	recorded []egress.Connection
}

// newInternet makes one with api.example (a public address) and evil.example.
func newInternet(t testing.TB, o egress.Options) *internet {
	t.Helper()
	n := &internet{t: t, names: map[string][]netip.Addr{}, servers: map[netip.AddrPort]string{}, roots: x509.NewCertPool()}
	bus := event.New(event.BusOptions{})
	n.events = bus.Subscribe(event.Options{})
	t.Cleanup(func() { n.events.Close(); bus.Close() })
	o.Events, o.Resolve, o.Dial, o.Record, o.Roots, o.Folder = bus, n.resolve, n.dial, n.record, n.roots, t.TempDir()
	n.service = egress.New(o)
	return n
}

func (n *internet) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups = append(n.lookups, host)
	if addresses := n.names[host]; addresses != nil {
		return append([]netip.Addr(nil), addresses...), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *internet) dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, address)
	real := n.servers[address]
	n.mu.Unlock()
	if real == "" {
		return nil, fmt.Errorf("dial %s: %w", address, errors.New("connection refused"))
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

func (n *internet) record(c egress.Connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recorded = append(n.recorded, c)
}

// host adds a server at a name, an address and a port.
func (n *internet) host(name, address string, port uint16, real string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := netip.MustParseAddr(address)
	n.names[name] = []netip.Addr{at}
	n.servers[netip.AddrPortFrom(at, port)] = real
}

// serve adds a web server; port 443 is TLS.
func (n *internet) serve(name, address string, port uint16, handler http.Handler) *httptest.Server {
	n.t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if port == 443 {
		pair, root := signed(n.t, name)
		server.TLS = pair
		n.roots.AddCert(root)
		server.StartTLS()
	} else {
		server.Start()
	}
	n.t.Cleanup(server.Close)
	n.host(name, address, port, server.Listener.Addr().String())
	return server
}

// program is a program with a gateway.
type program struct {
	*egress.Gateway
	address string
	env     map[string]string
}

// start starts the gateway of a program.
func (n *internet) start(shared bool, secrets []egress.Secret, network ...string) *program {
	n.t.Helper()
	rules, err := egress.ParseRules(network)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.startWith(shared, egress.Program{Name: "files", Rules: rules, Secrets: secrets})
}

func (n *internet) startWith(shared bool, p egress.Program) *program {
	n.t.Helper()
	gateway, err := n.service.Gateway(p)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.run(shared, gateway)
}

// run serves a gateway until the test ends.
func (n *internet) run(shared bool, gateway *egress.Gateway) *program {
	n.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { gateway.Serve(listener, shared) })
	n.t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	started := &program{Gateway: gateway, address: listener.Addr().String(), env: map[string]string{}}
	for _, pair := range gateway.Env(started.address) {
		name, value, _ := strings.Cut(pair, "=")
		started.env[name] = value
	}
	return started
}

// client is Go's client with the program's variables.
func (p *program) client(t testing.TB) *http.Client {
	t.Helper()
	proxy, err := url.Parse(p.env["HTTPS_PROXY"])
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), ForceAttemptHTTP2: true, TLSClientConfig: trusting(t, p)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// raw opens a bare connection to the proxy.
func (p *program) raw(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask writes to a bare connection and reads until the proxy closes it.
func (p *program) ask(t testing.TB, text string) string {
	t.Helper()
	conn := p.raw(t)
	if _, err := io.WriteString(conn, text); err != nil {
		return err.Error()
	}
	answer, _ := io.ReadAll(conn) // a reset ends it too
	return string(answer)
}

// next awaits an event.
func next[T event.Payload](n *internet) T {
	n.t.Helper()
	for e := range n.events.All(n.t.Context()) {
		if payload, ok := e.Data.(T); ok {
			return payload
		}
	}
	n.t.Fatal("no event")
	panic("unreachable")
}

// get fetches a URL.
func get(t testing.TB, client *http.Client, address string) (status int, body string) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
