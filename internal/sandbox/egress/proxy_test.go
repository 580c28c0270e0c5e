package egress_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/sandbox/egress"
)

const public = "93.184.216.34"

func hello(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Method, r.Host, r.URL)
}

// echo is a server of bare TCP that returns what it gets.
func echo(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestTunnel(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.host("db.example", public, 5432, echo(t))
	p := n.start(false, nil, "db.example:5432")
	conn := p.raw(t)
	fmt.Fprintf(conn, "CONNECT DB.example.:5432 HTTP/1.1\r\nHost: other.example:1\r\n\r\nearly ")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	fmt.Fprint(conn, "and late")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(in); string(got) != "early and late" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	ended := next[egress.Ended](n).Connection
	if ended.Sent != 14 || ended.Received != 14 || ended.Outcome != egress.Closed || ended.Destination() != "db.example:5432" ||
		ended.Rule != "db.example:5432" || ended.Server != "files" || ended.Protocol != egress.Tunnel || ended.Address == "" {
		t.Errorf("%+v", ended)
	}
	if list := n.service.Connections("files"); len(list) != 1 || list[0].Destination() != "db.example:5432" {
		t.Errorf("%+v", list)
	}
	if hosts := n.service.Hosts("files"); len(hosts) != 1 || hosts[0].Connections != 1 || hosts[0].Sent != 14 {
		t.Errorf("%+v", hosts)
	}
	if len(n.recorded) != 1 || len(n.lookups) != 1 || n.lookups[0] != "db.example" {
		t.Errorf("%+v %v", n.recorded, n.lookups)
	}
	n.service.Forget("files")
	if len(n.service.Hosts("files"))+len(n.service.Connections("files")) > 0 {
		t.Error("not forgotten")
	}
}

// A connection that is open is shown, and ends with the program.
func TestOpenConnections(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.host("db.example", public, 5432, echo(t))
	p := n.start(false, nil, "db.example:5432")
	if status := p.connect(t, "db.example:5432"); status != http.StatusOK {
		t.Fatal(status)
	}
	if list := n.service.Connections("files"); len(list) != 1 || list[0].Outcome != egress.Open {
		t.Errorf("%+v", list)
	}
	p.Close()
	if list := n.service.Connections("files"); len(list) != 1 || list[0].Outcome != egress.Closed {
		t.Errorf("%+v", list)
	}
}

func TestHTTPSByTunnel(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 443, http.HandlerFunc(hello))
	p := n.start(true, nil, "api.example:443")
	client := p.client(t)
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = n.roots
	if status, body := get(t, client, "https://api.example/x?y"); status != 200 || body != "HTTP/2.0 GET api.example /x?y" {
		t.Error(status, body)
	}
}

func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 80, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %v", r.Method, r.Host, r.URL, body, r.Header["Proxy-Authorization"])
	}))
	p := n.start(true, nil, "api.example:80")
	response, err := p.client(t).Post("http://api.example/a%2Fb?x=;y", "text/plain", strings.NewReader("data"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if string(body) != "POST api.example /a%2Fb?x=;y data []" {
		t.Errorf("%s", body)
	}
	if ended := next[egress.Ended](n); ended.Sent != 4 || ended.Received != int64(len(body)) || ended.Protocol != egress.HTTP || ended.Requests != 1 {
		t.Errorf("%+v", ended)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 443, http.HandlerFunc(hello))
	n.host("rebound.example", "127.0.0.1", 443, echo(t))
	n.host("metadata.example", "169.254.169.254", 80, echo(t))
	n.host("inner.example", "10.0.0.5", 443, echo(t))
	p := n.start(false, nil, "api.example:443", "rebound.example:*", "metadata.example:80", "*.sub.example:443", "inner.example:443", "10.0.0.6:443", "dead.example:443", "localhost:9")
	client := p.client(t)
	for address, want := range map[string]struct{ text, allow string }{
		"https://evil.example/":         {`luanette: files may not connect to evil.example:443; allow it with network = ["evil.example:443"]`, "evil.example:443"},
		"https://api.example:8443/":     {`allow it with network = ["api.example:8443"]`, "api.example:8443"},
		"http://api.example/":           {`luanette: files may not connect to api.example:80; allow it with network = ["api.example:80"]`, "api.example:80"},
		"https://sub.example/":          {`["sub.example:443"]`, "sub.example:443"},
		"https://93.184.216.34/":        {`["93.184.216.34:443"]`, "93.184.216.34:443"},
		"https://[::1]/":                {`["[::1]:443"]`, "[::1]:443"},
		"http://127.0.0.1:8081/":        {`["127.0.0.1:8081"]`, "127.0.0.1:8081"},
		"https://rebound.example/":      {`rebound.example leads to 127.0.0.1, which is not on the public internet; allow it with network = ["127.0.0.1:443"]`, "127.0.0.1:443"},
		"http://metadata.example/":      {`metadata.example leads to 169.254.169.254`, "169.254.169.254:80"},
		"https://inner.example/":        {`["10.0.0.5:443"]`, "10.0.0.5:443"},
		"http://localhost:8081/":        {`["localhost:8081"]`, "localhost:8081"},
		"https://api.example.evil.com/": {`["api.example.evil.com:443"]`, "api.example.evil.com:443"},
	} {
		_, body := get(t, client, address)
		if !strings.Contains(body, want.text) {
			t.Errorf("%s: %s", address, body)
		}
		if e := next[egress.RefusedConnection](n); e.Allow != want.allow || e.Outcome != egress.Refused || e.Hint != fmt.Sprintf("network = [%q]", want.allow) {
			t.Errorf("%s: %+v", address, e)
		}
	}
	for _, address := range n.dialled {
		t.Errorf("%s was dialled", address)
	}
	if _, body := get(t, client, "https://dead.example/"); !strings.Contains(body, "resolve dead.example") {
		t.Error(body)
	}
	if e := next[egress.Ended](n); e.Outcome != egress.Failed || e.Reason == "" {
		t.Errorf("%+v", e)
	}
}

// connect opens a tunnel and returns the status of the answer.
func (p *program) connect(t testing.TB, to string) int {
	t.Helper()
	conn := p.raw(t)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", to)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// Of several addresses only public ones are dialled, and a name is resolved once, so that
// it cannot change its address between check and use.
func TestRebinding(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.host("turn.example", public, 80, echo(t))
	n.names["turn.example"] = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr(public), netip.MustParseAddr("::ffff:10.0.0.1")}
	p := n.start(false, nil, "turn.example:80")
	if status := p.connect(t, "turn.example:80"); status != http.StatusOK {
		t.Error(status)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lookups) != 1 || len(n.dialled) != 1 || n.dialled[0] != netip.MustParseAddrPort(public+":80") {
		t.Errorf("looked up %v, dialled %v", n.lookups, n.dialled)
	}
}

func TestAddressesThatAreListed(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.host("db.example", "10.0.0.5", 5432, echo(t))
	n.servers[netip.MustParseAddrPort("127.0.0.1:5432")] = echo(t)
	p := n.start(false, nil, "db.example:5432", "10.0.0.0/24:5432", "localhost:5432")
	for _, to := range []string{"db.example:5432", "10.0.0.5:5432", "localhost:5432"} {
		if status := p.connect(t, to); status != http.StatusOK {
			t.Error(to, status)
		}
	}
}

// Where the network is open, everything is allowed and recorded.
func TestOpenNetwork(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.servers[netip.MustParseAddrPort("127.0.0.1:80")] = n.serve("any.example", public, 80, http.HandlerFunc(hello)).Listener.Addr().String()
	client := n.startWith(false, egress.Program{Name: "files", Rules: egress.All()}).client(t)
	for _, address := range []string{"http://any.example/", "http://93.184.216.34/"} {
		if status, body := get(t, client, address); status != 200 {
			t.Error(address, status, body)
		}
		next[egress.Ended](n)
	}
	if hosts := n.service.Hosts("files"); len(hosts) != 2 {
		t.Errorf("%+v", hosts)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(true, nil, "api.example:80")
	for _, header := range []string{"", "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("luanette:wrong")) + "\r\n", "Proxy-Authorization: Bearer x\r\n", "Authorization: Basic eDp5\r\n"} {
		for _, line := range []string{"CONNECT api.example:80", "GET http://api.example/"} {
			if answer := p.ask(t, line+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+header+"\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 407 ") || !strings.Contains(answer, "Proxy-Authenticate: Basic") {
				t.Errorf("%s with %q: %s", line, header, answer)
			}
		}
	}
	if status, body := get(t, p.client(t), "http://api.example/"); status != 200 {
		t.Error(status, body)
	}
}

// What is not a request to a proxy is answered or closed, and reaches nobody.
func TestMalformedHTTP(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{HandshakeTimeout: 200 * time.Millisecond})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(false, nil, "api.example:80")
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n":                                      "HTTP/1.1 400 ",
		"GET https://api.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                             "HTTP/1.1 400 ",
		"GET ftp://api.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                               "HTTP/1.1 400 ",
		"CONNECT api.example HTTP/1.1\r\nConnection: close\r\n\r\n":                                             "HTTP/1.1 400 ",
		"CONNECT api.example:0 HTTP/1.1\r\nConnection: close\r\n\r\n":                                           "HTTP/1.1 400 ",
		"CONNECT api.example:99999 HTTP/1.1\r\nConnection: close\r\n\r\n":                                       "HTTP/1.1 400 ",
		"CONNECT api.example:80 HTTP/1.1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody":                 "HTTP/1.1 400 ",
		"CONNECT http://api.example:80/ HTTP/1.1\r\nConnection: close\r\n\r\n":                                  "HTTP/1.1 400 ",
		"CONNECT 0x7f.1:80 HTTP/1.1\r\nConnection: close\r\n\r\n":                                               "HTTP/1.1 400 ",
		"POST http://api.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody!":   "HTTP/1.1 400 ",
		"POST http://api.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n": "HTTP/1.1 501 ",
		"GET http://api.example/ HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n":                                      "HTTP/1.1 400 ",
		"GET http://api.example/ HTTP/1.1\r\nHost : x\r\n\r\n":                                                  "HTTP/1.1 400 ",
		"GET http://api.example/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 100<<10) + "\r\n\r\n":        "HTTP/1.1 431 ",
		"\x16\x03\x01\x00\x05hello":            "HTTP/1.1 400 ",
		"\x04\x01\x00\x50\x01\x02\x03\x04\x00": "",              // SOCKS4 never ends its line
		"\x05\x01\x00\r\n\r\n":                 "HTTP/1.1 400 ", // SOCKS5
		"GET http://api.ex":                    "",              // slow
	} {
		if answer := p.ask(t, text); !strings.HasPrefix(answer, want) || want == "" && strings.HasPrefix(answer, "HTTP/1.1 2") {
			t.Errorf("%.80q: %.200q", text, answer)
		}
	}
	if len(n.dialled) > 0 {
		t.Errorf("dialled %v", n.dialled)
	}
}

// The second of two requests sent at once has its own destination, and is checked itself.
func TestPipelining(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(false, nil, "api.example:80")
	answer := p.ask(t, "GET http://api.example/one HTTP/1.1\r\nHost: evil.example\r\n\r\nGET http://evil.example/two HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n")
	if strings.Count(answer, "HTTP/1.1 200") != 1 || !strings.Contains(answer, "GET api.example /one") || strings.Count(answer, "HTTP/1.1 403") != 1 {
		t.Error(answer)
	}
}

// A smuggled second request inside the body of the first stays a body.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	bodies := make(chan string, 4)
	n.serve("api.example", public, 80, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(body)
	}))
	p := n.start(false, nil, "api.example:80")
	inner := "GET /smuggled HTTP/1.1\r\nHost: api.example\r\n\r\n"
	answer := p.ask(t, fmt.Sprintf("POST http://api.example/outer HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner))
	if strings.HasPrefix(answer, "HTTP/1.1 4") {
		return // refusing both headers is right, too
	}
	if got := <-bodies; got != "/outer "+inner || len(bodies) > 0 {
		t.Errorf("%q", got)
	}
}

// A program may have so many connections; further ones wait.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{MaxConnections: 2})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	p := n.start(false, nil, "api.example:80")
	first, second := p.raw(t), p.raw(t)
	for _, conn := range []net.Conn{first, second} {
		fmt.Fprint(conn, "GET http://api.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	third := p.raw(t)
	fmt.Fprint(third, "GET http://api.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
	first.Close() // its place becomes free
	if _, err := http.ReadResponse(bufio.NewReader(third), nil); err != nil {
		t.Fatal(err)
	}
}
