package netguardtest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

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
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(i.note)}} //nolint:gosec // a test's
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
