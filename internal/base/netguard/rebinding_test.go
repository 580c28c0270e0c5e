package netguard_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// rebinding is a resolver of names whose first answer is a public address, and all others
// this machine.
func rebinding(t *testing.T, asked *atomic.Int32) *net.Resolver {
	t.Helper()
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		query := make([]byte, 512)
		for {
			n, from, err := listener.ReadFrom(query)
			if err != nil {
				return // closed
			}
			if answer := answered(query[:n], asked); answer != nil {
				_, _ = listener.WriteTo(answer, from) // the resolver asks again
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-served
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", listener.LocalAddr().String())
	}}
}

// answered answers a DNS query with one question (RFC 1035): an address for type A, and
// nothing for others.
func answered(query []byte, asked *atomic.Int32) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	if end+5 > len(query) {
		return nil
	}
	question := query[12 : end+5]
	isA := binary.BigEndian.Uint16(query[end+1:]) == 1
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if !isA {
		return answer
	}
	answer[7] = 1
	address := [4]byte{127, 0, 0, 1}
	if asked.Add(1) == 1 {
		address = [4]byte{93, 184, 216, 34}
	}
	return append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), address[:]...)
}

// TestRebinding checks that a name that is public when it is looked at, and this machine
// when it is used, is refused: the address that is dialled decides.
func TestRebinding(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	resolver := rebinding(t, &asked)
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "client.example")
	if err != nil || len(first) != 1 || !netguard.Public(netip.Addr(first[0])) {
		t.Fatalf("the first look: %v %v", first, err)
	}
	client := netguard.Outbound{Resolver: resolver}.Client()
	t.Cleanup(client.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://client.example:"+at.Port()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if fault.CodeOf(err) != fault.Denied || asked.Load() < 2 {
		t.Errorf("after %d questions: %v", asked.Load(), err)
	}
}
