package http

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hosts, ask string
		allowed    bool
	}{
		{"api.example.com", "https://api.example.com/x", true},
		{"api.example.com", "https://API.Example.com:8443/x", true},
		{"api.example.com", "https://example.com", false},
		{"api.example.com", "https://api.example.com.evil.org", false},
		{"api.example.com:443", "https://api.example.com", true},
		{"api.example.com:443", "http://api.example.com", false},
		{"*.example.com", "http://a.b.example.com", true},
		{"*.example.com", "http://example.com", false},
		{"*.example.com", "http://evilexample.com", false},
		{"*", "http://anything.org", true},
		{"*", "ftp://anything.org", false},
		{"10.0.0.0/8", "http://10.1.2.3", true},
		{"10.0.0.0/8", "http://11.1.2.3", false},
		{"10.0.0.0/8", "http://[::ffff:10.1.2.3]", true},
		{"::1", "http://[::1]:80/", true},
		{"[::1]:81", "http://[::1]:80/", false},
		{"a.org, b.org", "http://b.org", true},
		{"a.org", "http://a.org@b.org", false},
	} {
		client, err := NewClient(ClientOptions{Hosts: strings.Split(test.hosts, ", ")})
		if err != nil {
			t.Fatal(err)
		}
		question, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.ask, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = client.Transport.(*guard).rules.check(question.URL)
		if (err == nil) != test.allowed {
			t.Errorf("%s for %s: %v", test.hosts, test.ask, err)
		}
	}
}

func TestInvalidHosts(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "http://a.org", "a.*.org", "a b", "user@a.org"} {
		if _, err := NewClient(ClientOptions{Hosts: []string{host}}); fault.CodeOf(err) != fault.Config {
			t.Errorf("%q: %v", host, err)
		}
	}
	if client, err := NewClient(ClientOptions{}); client != nil || err != nil {
		t.Errorf("no hosts make %v, %v", client, err)
	}
}

func TestNamesOfPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	for hosts, allowed := range map[string]bool{
		"*":                          false, // localhost is no public host
		"localhost":                  true,
		"localhost:" + port:          true,
		"localhost:1,*":              false,
		"127.0.0.0/8,::1,localhost*": false,
		"127.0.0.0/8,::1,*":          true,
	} {
		client, err := NewClient(ClientOptions{Hosts: strings.Split(hosts, ",")})
		if err != nil {
			if allowed {
				t.Error(err)
			}
			continue
		}
		answer, err := client.Get("http://localhost:" + port)
		if (err == nil) != allowed {
			t.Errorf("%s: %v", hosts, err)
		}
		if err == nil {
			answer.Body.Close()
		} else if fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s: refused by %v", hosts, err)
		}
		client.CloseIdleConnections()
	}
}
