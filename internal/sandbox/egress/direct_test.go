package egress_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// withoutProxy runs a command that does not know the proxy.
const withoutProxy = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy -u NODE_USE_ENV_PROXY "

// Programs that ignore the proxy reach what their profile lists all the same, with
// secrets, and nothing else. Node's fetch ignores it before version 22.21.
func TestProgramThatIgnoresTheProxy(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	launcher := &launch.Launcher{}
	n := newInternet(t, egress.Options{Refused: launcher.Keep})
	api := make(received, 1)
	n.serve("api.example", public, 443, api)
	n.serve("plain.example", "93.184.216.35", 80, http.HandlerFunc(hello))
	n.serve("other.example", "93.184.216.36", 443, http.HandlerFunc(hello))
	n.host("db.example", "93.184.216.37", 5432, echo(t))
	folder := t.TempDir()
	launcher.Folder, launcher.Home = filepath.Join(folder, "sandbox"), folder
	launcher.Gateway = func(p profile.Profile) (launch.Gateway, error) { return n.service.Within(p) }
	if cause := launcher.Support().Namespaces; cause != "" {
		t.Skip("there are no network namespaces here: ", cause)
	}
	run := func(script string) string {
		t.Helper()
		cmd, err := launcher.Command(profile.Profile{
			Name: "files", Level: profile.Strict, Network: []string{"api.example:443", "plain.example:80", "db.example:5432"},
			Credentials: []profile.Credential{{Name: "gh", Variable: "TOKEN", Value: secret.New(token), Hosts: []string{"api.example"}}},
		}, launch.Program{Path: "/bin/sh", Args: []string{"sh", "-c", withoutProxy + node + ` -e "$0"`, script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(&out, "(%v)", err)
		}
		return out.String()
	}
	fetch := func(url string) string {
		return fmt.Sprintf(`fetch(%q, {headers: {Authorization: "Bearer " + process.env.TOKEN}}).then(r => r.text()).then(console.log, e => console.log("failed", e.cause?.code, e.cause?.message))`, url)
	}
	if got := run(fetch("https://api.example/a")); !strings.Contains(got, "GET api.example /a") {
		t.Fatal(got)
	}
	if got := (<-api).Get("Authorization"); got != "Bearer "+token {
		t.Errorf("the host got %q", got)
	}
	if got := run(fetch("http://plain.example/b")); !strings.Contains(got, "GET plain.example /b") {
		t.Error(got)
	}
	if got := run(`require("net").connect(5432, "db.example").on("data", d => { console.log("echo " + d); process.exit() }).write("hello")`); !strings.Contains(got, "echo hello") {
		t.Error(got)
	}
	if got := run(fetch("https://other.example/")); !strings.Contains(got, "access denied") {
		t.Error(got)
	}
	if got := run(fetch("http://93.184.216.35/")); !strings.Contains(got, "93.184.216.35:80") || strings.Contains(got, "hello") {
		t.Error(got)
	}
	if got := run(fetch("https://api.example:8443/")); !strings.Contains(got, "failed EACCES") {
		t.Error(got)
	}
	refusals, err := launcher.Refusals("files")
	if err != nil || len(refusals) != 1 || refusals[0].Object != "api.example:8443" || refusals[0].Allow != `network = ["api.example:8443"]` {
		t.Errorf("%+v %v", refusals, err)
	}
	var seen []string
	for _, c := range n.recorded {
		seen = append(seen, c.Destination()+" "+c.Protocol+" "+c.Outcome)
	}
	want := "api.example:443 direct closed; plain.example:80 direct closed; db.example:5432 direct closed; other.example:443 direct refused; 93.184.216.35:80 direct refused"
	if got := strings.Join(seen, "; "); got != want {
		t.Error(got)
	}
}

// A datagram of a sandboxed program does not leave its network.
func TestDatagramsStay(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	host, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	n := newInternet(t, egress.Options{})
	folder := t.TempDir()
	launcher := &launch.Launcher{Folder: filepath.Join(folder, "sandbox"), Home: folder}
	launcher.Gateway = func(p profile.Profile) (launch.Gateway, error) { return n.service.Within(p) }
	script := fmt.Sprintf(`const s = require("dgram").createSocket("udp4"); s.send("out", %d, "127.0.0.1", e => { console.log("sent", e?.code); s.close() })`, host.LocalAddr().(*net.UDPAddr).Port)
	cmd, err := launcher.Command(profile.Profile{Name: "files", Level: profile.Strict}, launch.Program{Path: node, Args: []string{"node", "-e", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && !strings.Contains(out.String(), "EPERM") { // refused where the network is the computer's
		t.Fatal(err, out.String())
	}
	// Datagrams of loopback arrive in order: ours would be behind that of the program.
	other, err := net.Dial("udp4", host.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Write([]byte("ours")); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	size, _, err := host.ReadFrom(buffer)
	if err != nil || string(buffer[:size]) != "ours" {
		t.Errorf("%q %v", buffer[:size], err)
	}
}

// direct starts a gateway for connections without the proxy, and returns where they are
// taken.
func direct(t *testing.T, network ...string) (*egress.Gateway, string) {
	t.Helper()
	n := newInternet(t, egress.Options{})
	rules, err := egress.ParseRules(network)
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := n.service.Gateway(egress.Program{Name: "files", Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { gateway.ServeDirect(listener) })
	t.Cleanup(func() {
		listener.Close()
		gateway.Close()
		serving.Wait()
	})
	return gateway, listener.Addr().String()
}

// A program that is refused learns it in its own protocol.
func TestDirectRefusal(t *testing.T) {
	t.Parallel()
	_, address := direct(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	if got := string(answer); !strings.HasPrefix(got, "HTTP/1.1 403 luanette: files may not connect to localhost:") {
		t.Error(got)
	}
	secured, err := tls.Dial("tcp", address, &tls.Config{ServerName: "api.example"})
	if err == nil {
		secured.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Error(err)
	}
}

// ask sends a question of DNS and returns the answer.
func ask(t *testing.T, conn net.Conn, kind dnsmessage.Type, name string) (dnsmessage.RCode, []dnsmessage.Resource) {
	t.Helper()
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(packed); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1500)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buffer[:n]); err != nil || answer.ID != 7 || !answer.Response {
		t.Fatal(answer, err)
	}
	return answer.RCode, answer.Answers
}

func TestNames(t *testing.T) {
	t.Parallel()
	gateway, _ := direct(t)
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { gateway.ServeNames(server) })
	defer serving.Wait()
	defer server.Close()
	conn, err := net.Dial("udp4", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	address := func(name string) netip.Addr {
		code, answers := ask(t, conn, dnsmessage.TypeA, name)
		if code != dnsmessage.RCodeSuccess || len(answers) != 1 {
			t.Fatal(name, code, answers)
		}
		return netip.AddrFrom4(answers[0].Body.(*dnsmessage.AResource).A)
	}
	first := address("API.example.")
	if !netip.MustParsePrefix("198.18.0.0/15").Contains(first) || gateway.HostOf(first) != "api.example" {
		t.Error(first, gateway.HostOf(first))
	}
	if again, other := address("api.example."), address("other.example."); again != first || other == first {
		t.Error(again, other)
	}
	if local := address("localhost."); !local.IsLoopback() || gateway.HostOf(local) != "localhost" {
		t.Error(local)
	}
	if code, answers := ask(t, conn, dnsmessage.TypeAAAA, "api.example."); code != dnsmessage.RCodeSuccess || len(answers) != 0 {
		t.Error(code, answers)
	}
	if code, _ := ask(t, conn, dnsmessage.TypeA, "2130706433."); code != dnsmessage.RCodeNameError {
		t.Error(code)
	}
	if unknown := netip.MustParseAddr("198.19.255.1"); gateway.HostOf(unknown) != "198.19.255.1" {
		t.Error(gateway.HostOf(unknown))
	}
}
