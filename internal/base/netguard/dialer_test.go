package netguard_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

var names = netguardtest.InterceptDNS()

// proxyOf returns what the environment of a test says.
func proxyOf(environment map[string]string) netguard.ProxyFunc {
	return netguard.EnvironmentProxy(func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
}

// TestGuardsBehindAProxy checks that a guarded connection goes through the proxy of the
// environment, to the address that was allowed, and that one that is refused asks no proxy.
func TestGuardsBehindAProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the server") }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	at := func(address string) string {
		return names.Add(func() netip.Addr { return netip.MustParseAddr(address) }) + ":" + port
	}
	here, public, private := at("127.0.0.1"), at("93.184.216.34"), at("10.1.2.3")
	for name, tt := range map[string]struct {
		host, no string
		asked    []string
		code     fault.Code
	}{
		"a public address":        {public, "", []string{"CONNECT 93.184.216.34:" + port}, ""},
		"a private address":       {private, "", nil, fault.Denied},
		"a name without address":  {"none.example:" + port, "", nil, fault.Unavailable},
		"NO_PROXY":                {here, "rebind.example", nil, ""},
		"NO_PROXY and guarded":    {private, "rebind.example", nil, fault.Denied},
		"this machine as address": {"127.0.0.1:" + port, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := netguardtest.NewProxy(t, server.Listener.Addr().String())
			transport := netguard.Outbound{Loopback: true, Proxy: proxyOf(map[string]string{"https_proxy": proxy.URL, "NO_PROXY": tt.no})}.Transport().(*http.Transport)
			transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			transport.TLSClientConfig.ServerName = "example.com" // of the test's certificate
			t.Cleanup(transport.CloseIdleConnections)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+tt.host+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if err == nil {
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if string(body) != "the server" {
					t.Errorf("got %q", body)
				}
			}
			if fault.CodeOf(err) != tt.code && !(err == nil && tt.code == "") {
				t.Errorf("got %v, want %q", err, tt.code)
			}
			if got := proxy.Asked(); !slices.Equal(got, tt.asked) {
				t.Errorf("the proxy was asked %q, want %q", got, tt.asked)
			}
		})
	}
}

// TestProxyRefuses checks what is said when a proxy refuses or is no proxy, without its
// password.
func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpwYXNz" {
			t.Errorf("authorization %q", r.Header.Get("Proxy-Authorization"))
		}
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(refusing.Close)
	with := func(url string) string { return strings.Replace(url, "://", "://user:pass@", 1) }
	for proxy, want := range map[string]string{
		with(refusing.URL): "407", with("socks5://127.0.0.1:1"): "socks5", with("http://127.0.0.1:1"): "connect to the proxy 127.0.0.1:1",
	} {
		dialer := netguard.Dialer{Proxy: proxyOf(map[string]string{"HTTPS_PROXY": proxy})}
		conn, err := dialer.DialContext(t.Context(), "tcp", "server.example:443")
		if err == nil {
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error()+fault.HintOf(err), "pass@") {
			t.Errorf("through %s: %v", want, err)
		}
	}
}
