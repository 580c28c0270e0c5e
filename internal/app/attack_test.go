package app

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// harmlessRoutes answer everybody alike, and do nothing: for load balancers, and
// pages whose scripts a browser reads only from its own origin.
var harmlessRoutes = map[string]bool{
	"GET /health": true, "GET /ready": true, "/": true, "GET /{$}": true, "GET /icon.svg": true, "GET /assets/": true,
}

// TestAttackRebindingOnEveryRoute asks every route of the real server as a page
// elsewhere would have a browser do: under a name that was made to point here,
// and from another origin.
func TestAttackRebindingOnEveryRoute(t *testing.T) {
	t.Parallel()
	url, house := start(t, Sources{})
	for _, route := range house.routes() {
		if harmlessRoutes[route.Pattern] {
			continue
		}
		method, path, hasMethod := strings.Cut(route.Pattern, " ")
		if !hasMethod {
			method, path = http.MethodPost, route.Pattern
		}
		path = wildcard.ReplaceAllString(path, "x")
		for name, tricked := range map[string]func(*http.Request){
			"another name":   func(r *http.Request) { r.Host = "evil.example" },
			"another origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"a sandbox":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		} {
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			tricked(r)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%s by %s: %s", route.Pattern, name, response.Status)
			}
		}
	}
}

// TestAttackDNSRebinding has a name lead to the public internet when it is first
// looked up and to the cloud's metadata afterwards: the guard sees the address
// that is dialled, not the name.
func TestAttackDNSRebinding(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	resolver := fakeResolver(t, func() net.IP {
		asked.Add(1)
		return net.IPv4(169, 254, 169, 254)
	})
	dialer := net.Dialer{Resolver: resolver, Control: dialGuard([]string{"*", "rebind.example"}), Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp4", "rebind.example:80")
	if err == nil {
		conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "private network") || asked.Load() == 0 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

// fakeResolver answers every question for an IPv4 address with what answer says.
func fakeResolver(t *testing.T, answer func() net.IP) *net.Resolver {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(dnsAnswer(query[:n], answer().To4()), from)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// dnsAnswer is the question with one address as its answer (RFC 1035).
func dnsAnswer(query, ip []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the name's end, type and class
	reply := append([]byte(nil), query[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180)
	binary.BigEndian.PutUint16(reply[6:], 1)
	binary.BigEndian.PutUint32(reply[8:], 0)
	reply = append(reply, 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, ip...)
}
