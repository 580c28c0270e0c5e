package egress_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/sandbox/egress"
)

func TestSOCKS(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		n := newInternet(t, egress.Options{})
		n.serve("api.example", public, 80, http.HandlerFunc(hello))
		p := n.start(shared, nil, "api.example:80")
		client := p.client(t)
		proxy, err := url.Parse(strings.Replace(p.env["ALL_PROXY"], "http://", "socks5h://", 1))
		if err != nil {
			t.Fatal(err)
		}
		if !shared {
			proxy.User = nil
		}
		client.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
		if status, body := get(t, client, "http://api.example/x"); status != 200 || body != "HTTP/1.1 GET api.example /x" {
			t.Error(shared, status, body)
		}
		if _, body := get(t, client, "http://evil.example/"); !strings.Contains(body, "not allowed by ruleset") {
			t.Error(shared, body)
		}
		if e := next[egress.RefusedConnection](n); e.Protocol != egress.SOCKS || e.Allow != "evil.example:80" {
			t.Errorf("%+v", e)
		}
	}
}

func TestMalformedSOCKS(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{HandshakeTimeout: 200 * time.Millisecond})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(false, nil, "api.example:80")
	const open = "\x05\x01\x00"
	reply := func(code byte) string { return "\x05\x00\x05" + string(code) + "\x00\x01\x00\x00\x00\x00\x00\x00" }
	for text, want := range map[string]string{
		"\x05":             "", // and nothing else, slowly
		"\x05\x00":         "\x05\xff",
		"\x05\x02\x01\x03": "\x05\xff",
		open:               "\x05\x00",
		open + "\x05\x02\x00\x03\x0bapi.example\x00\x50":                                            reply(7), // BIND
		open + "\x05\x03\x00\x03\x0bapi.example\x00\x50":                                            reply(7), // UDP
		open + "\x04\x01\x00\x03\x0bapi.example\x00\x50":                                            reply(7),
		open + "\x05\x01\x00\x02\x0bapi.example\x00\x50":                                            reply(8),
		open + "\x05\x01\x00\x03\x00\x00\x50":                                                       reply(8), // an empty name
		open + "\x05\x01\x00\x03\x0bapi.example\x00\x00":                                            reply(8), // port 0
		open + "\x05\x01\x00\x03\x0bapi\x00example\x00\x50":                                         reply(8),
		open + "\x05\x01\x00\x03\x0c93.184.216.34x\x00\x50"[:16]:                                    "\x05\x00",
		open + "\x05\x01\x00\x03\xffshort":                                                          "\x05\x00",
		open + "\x05\x01\x00\x01\x7f\x00\x00\x01\x1f\x91":                                           reply(2), // 127.0.0.1:8081
		open + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50":                     reply(2), // ::1
		open + "\x05\x01\x00\x04" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x50": reply(2), // ::ffff:127.0.0.1
		open + "\x05\x01\x00\x03\x09127.0.0.1\x00\x50":                                              reply(2),
		open + "\x05\x01\x00\x03\x0cevil.example\x00\x50":                                           reply(2),
	} {
		if answer := p.ask(t, text); answer != want {
			t.Errorf("%q: %q, want %q", text, answer, want)
		}
	}
	if len(n.dialled) > 0 {
		t.Errorf("dialled %v", n.dialled)
	}
}

// Data that follows the request at once is not lost.
func TestEarlyDataOfSOCKS(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(false, nil, "api.example:80")
	conn := p.raw(t)
	_, _ = io.WriteString(conn, "\x05\x01\x00\x05\x01\x00\x03\x0bapi.example\x00\x50GET /early HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "GET api.example /early") {
		t.Errorf("%q %v", answer, err)
	}
}
