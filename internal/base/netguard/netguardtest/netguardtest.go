// Package netguardtest controls name resolution in tests, and reserves addresses,
// among them one that must not be reached.
package netguardtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Names answers all DNS lookups of this program. Other names do not exist, so no
// lookup leaves the machine.
type Names struct {
	server net.PacketConn

	mu      sync.Mutex
	answers map[string]func() netip.Addr // by name
}

// InterceptDNS answers all lookups from now on. Call it to initialize a package
// variable of a test, because no lookup may run at the same time.
func InterceptDNS() *Names {
	server, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("listen for DNS queries: %v", err))
	}
	n := &Names{server: server, answers: map[string]func() netip.Addr{}}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	go n.serve()
	return n
}

// Add returns a new name, which resolves to the result of to each time.
func (n *Names) Add(to func() netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := fmt.Sprintf("n%d.rebind.example", len(n.answers))
	n.answers[name] = to
	return name
}

func (n *Names) serve() {
	query := make([]byte, 512)
	for {
		size, from, err := n.server.ReadFrom(query)
		if err != nil {
			return
		}
		if reply := n.reply(query[:size]); reply != nil {
			_, _ = n.server.WriteTo(reply, from)
		}
	}
}

// Constants of DNS messages (RFC 1035).
const (
	headerSize = 12
	typeA      = 1
	typeAAAA   = 28
	answered   = 0x8180
	noSuchName = 0x8183
)

// reply returns the response to a query. It has the address if that is of the
// requested type.
func (n *Names) reply(query []byte) []byte {
	name, end := readName(query)
	if end+4 > len(query) {
		return nil
	}
	n.mu.Lock()
	to := n.answers[name]
	n.mu.Unlock()
	reply := append([]byte(nil), query[:end+4]...)
	binary.BigEndian.PutUint16(reply[2:], noSuchName)
	clear(reply[6:headerSize])
	if to == nil {
		return reply
	}
	binary.BigEndian.PutUint16(reply[2:], answered)
	kind := binary.BigEndian.Uint16(query[end:])
	address := to()
	if address.Is4() != (kind == typeA) || address.Is6() != (kind == typeAAAA) {
		return reply
	}
	binary.BigEndian.PutUint16(reply[6:], 1)
	reply = append(reply, 0xc0, headerSize) // the name in the query
	reply = binary.BigEndian.AppendUint16(reply, kind)
	reply = append(reply, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
	reply = binary.BigEndian.AppendUint16(reply, uint16(address.BitLen()/8))
	return append(reply, address.AsSlice()...)
}

// readName returns the name in a query, and where it ends.
func readName(query []byte) (name string, end int) {
	var labels []string
	for end = headerSize; end < len(query) && query[end] != 0; end += int(query[end]) + 1 {
		labels = append(labels, string(query[min(end+1, len(query)):min(end+1+int(query[end]), len(query))]))
	}
	return strings.ToLower(strings.Join(labels, ".")), end + 1
}

// PrivateServer is a server in a private network, which must not be reached from
// outside.
type PrivateServer struct {
	Addr netip.Addr
	Port string

	mu       sync.Mutex
	requests []string
}

// NewPrivateServer starts a server at a private address of this machine. If the
// machine has none, no server runs, but the refusal of such an address can still be
// tested.
func NewPrivateServer(t testing.TB) *PrivateServer {
	t.Helper()
	i := &PrivateServer{Addr: netip.MustParseAddr("10.255.255.254"), Port: "9"}
	for _, address := range privateAddresses(t) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address.String(), "0"))
		if err != nil {
			continue
		}
		_, i.Port, _ = net.SplitHostPort(listener.Addr().String())
		i.Addr = address
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(i.note)}}
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				i.add("a connection")
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		break
	}
	return i
}

func privateAddresses(t testing.TB) (all []netip.Addr) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range found {
		prefix, err := netip.ParsePrefix(at.String())
		if err == nil && prefix.Addr().IsPrivate() {
			all = append(all, prefix.Addr())
		}
	}
	return all
}

func (i *PrivateServer) note(_ http.ResponseWriter, r *http.Request) {
	i.add(r.Method + " " + r.URL.Path)
}

func (i *PrivateServer) add(what string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, what)
}

// Requests returns all requests that reached it.
func (i *PrivateServer) Requests() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.requests, ", ")
}

// At returns the address of the server with a name as its host.
func (i *PrivateServer) At(name string) string { return net.JoinHostPort(name, i.Port) }

// Proxy is an HTTP proxy behind which everything is one server.
type Proxy struct {
	URL string

	mu    sync.Mutex
	asked []string
}

// NewProxy starts a proxy that leads all requests and tunnels to an address.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}
	transport := &http.Transport{DialContext: dial}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", to, to
	}}
	p := &Proxy{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		if r.Method != http.MethodConnect {
			forward.ServeHTTP(w, r)
			return
		}
		next, err := dial(r.Context(), "", "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = next.Close() }()
		w.WriteHeader(http.StatusOK)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		go func() {
			_, _ = io.Copy(next, conn) // ends with the connection
			_ = next.Close()
		}()
		_, _ = io.Copy(conn, next)
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	p.URL = server.URL
	return p
}

// Asked returns the methods and hosts of all requests to the proxy.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// The system assigns no ports of this range by itself: they are below those of
// outgoing connections and of listeners on port 0.
const (
	ownPort    = 18080
	firstShare = 20000 // each process has a share from here on
	shareSize  = 16
	shares     = 700
)

var addresses, ports atomic.Int64

// ReservedAddress returns an address that no other process uses while its owner does
// not listen on it. It is a separate loopback address if the system has several.
func ReservedAddress() string {
	if !hasLoopbacks() {
		return net.JoinHostPort("127.0.0.1", ReservedPort())
	}
	n, pid := int(addresses.Add(1)), os.Getpid() // enough for 62,500 processes
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+pid/250%250, 1+pid%250, 1+n%250, ownPort+n/250)
}

// hasLoopbacks reports whether the system has more loopback addresses than one. The
// address that is given out is not tried: a program that starts at that moment would
// hold the socket for as long as it takes to start.
var hasLoopbacks = sync.OnceValue(func() bool { return isFree("127.0.0.2:0") })

// ReservedPort returns a port, for a program whose address cannot be set.
func ReservedPort() string {
	first := firstShare + os.Getpid()%shares*shareSize
	for range shareSize {
		port := strconv.Itoa(first + int(ports.Add(1))%shareSize)
		if isFree(":" + port) {
			return port
		}
	}
	panic(fmt.Sprintf("netguardtest: ports %d to %d are all in use", first, first+shareSize-1))
}

func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
