package egress_test

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

func github(hosts ...string) []egress.Secret {
	return []egress.Secret{{Name: "gh", Variable: "GITHUB_TOKEN", Value: secret.New(token), Hosts: hosts}}
}

// received are the headers that a server got, for the test to see.
type received chan http.Header

func (c received) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c <- r.Header.Clone()
	hello(w, r)
}

func TestSecretGoesToItsHostOnly(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	api, other := make(received, 1), make(received, 1)
	n.serve("api.example", public, 443, api)
	n.serve("other.example", "93.184.216.35", 443, other)
	n.serve("api.example", public, 80, other)
	p := n.start(false, github("api.example"), "api.example:443", "api.example:80", "other.example:443")
	placeholder := p.env["GITHUB_TOKEN"]
	if placeholder == token || len(placeholder) != len(token) || !strings.HasPrefix(placeholder, "ghp_") {
		t.Fatalf("the placeholder is %q", placeholder)
	}
	client := p.client(t)
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(rootOf(t, n, "other.example"))
	send := func(address string) {
		t.Helper()
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		request.Header.Set("Authorization", "Bearer "+placeholder)
		request.Header.Set("X-Other", placeholder+","+placeholder)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || response.ProtoMajor != 2 && strings.HasPrefix(address, "https") {
			t.Errorf("%s: %s %s %s", address, response.Proto, response.Status, body)
		}
	}
	send("https://api.example/user")
	if got := <-api; got.Get("Authorization") != "Bearer "+token || got.Get("X-Other") != token+","+token {
		t.Errorf("the host got %v", got)
	}
	for _, address := range []string{"https://other.example/", "http://api.example/"} {
		send(address)
		if got := <-other; got.Get("Authorization") != "Bearer "+placeholder {
			t.Errorf("%s got %v", address, got)
		}
	}
	client.CloseIdleConnections()
	p.Close()
	shown, _ := json.Marshal([]any{n.service.Connections("files"), n.service.Hosts("files"), n.recorded})
	if strings.Contains(string(shown), token) || !strings.Contains(string(shown), `"secrets":["gh"]`) {
		t.Errorf("%s", shown)
	}
}

// git sends tokens as passwords.
func TestSecretInBasic(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	api := make(received, 1)
	n.serve("api.example", public, 443, api)
	p := n.start(false, github("api.example"), "api.example:443")
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", nil)
	request.SetBasicAuth("x-access-token", p.env["GITHUB_TOKEN"])
	response, err := p.client(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got, want := (<-api).Get("Authorization"), "Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a host repeats of the secret does not come back to the program.
func TestEchoedSecret(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 443, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Trailer", "X-End")
		w.Header().Add("Link", "</x>; rel=preload; "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusEarlyHints)
		out := io.Writer(w)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			defer zip.Close()
			out = zip
		}
		value := strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "Basic ")
		for _, part := range []string{`{"token":"`, value[:5], value[5:], `","again":"`, value, `"}`} {
			fmt.Fprint(out, part)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("X-End", value)
	}))
	p := n.start(false, github("api.example"), "api.example:443")
	client := p.client(t)
	pair := base64.StdEncoding.EncodeToString([]byte("x:" + p.env["GITHUB_TOKEN"]))
	for _, sent := range []string{"Bearer " + p.env["GITHUB_TOKEN"], "Basic " + pair} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", nil)
		request.Header.Set("Authorization", sent)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		value := strings.Fields(sent)[1]
		if want := `{"token":"` + value + `","again":"` + value + `"}`; err != nil || string(body) != want || response.Header.Get("X-Echo") != sent || response.Trailer.Get("X-End") != value {
			t.Errorf("%s: %v %v %s %v", sent, response.Header, response.Trailer, body, err)
		}
		if strings.Contains(fmt.Sprint(response.Header), token) {
			t.Error(response.Header)
		}
	}
}

// A connection to a host of a secret is for that host alone.
func TestDomainFronting(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	api := make(received, 8)
	n.serve("api.example", public, 443, api)
	p := n.start(false, github("api.example"), "api.example:443")
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", nil)
	request.Host = "evil.example"
	request.Header.Set("Authorization", p.env["GITHUB_TOKEN"])
	response, err := p.client(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMisdirectedRequest {
		t.Error(response.Status)
	}
	fronting := p.client(t)
	fronting.Transport.(*http.Transport).TLSClientConfig.ServerName = "evil.example"
	if _, body := get(t, fronting, "https://api.example/"); !strings.Contains(body, "tls: ") {
		t.Error(body)
	}
	if e := next[egress.RefusedConnection](n); !strings.Contains(e.Reason, `"evil.example" inside TLS is not api.example`) || e.Hint != "" {
		t.Errorf("%+v", e)
	}
	if answer := p.ask(t, "CONNECT api.example:443 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: api.example\r\n\r\n"); strings.Contains(answer, "HTTP/1.1 GET") {
		t.Error(answer)
	}
	if e := next[egress.RefusedConnection](n); !strings.Contains(e.Reason, "must use TLS") {
		t.Errorf("%+v", e)
	}
	if len(api) > 0 {
		t.Errorf("the host got %v", <-api)
	}
}

// A remote server whose certificate is not valid gets nothing.
func TestRemoteCertificateIsVerified(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	api := make(received, 1)
	server := n.serve("wrong.example", public, 443, api)
	n.host("api.example", "93.184.216.35", 443, server.Listener.Addr().String())
	p := n.start(false, github("api.example"), "api.example:443")
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", nil)
	request.Header.Set("Authorization", p.env["GITHUB_TOKEN"])
	client := p.client(t)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "certificate") || strings.Contains(string(body), token) || len(api) > 0 {
		t.Errorf("%s: %s", response.Status, body)
	}
	client.CloseIdleConnections()
	if e := next[egress.Ended](n); e.Outcome != egress.Failed || !strings.Contains(e.Reason, "certificate") {
		t.Errorf("%+v", e)
	}
}

// A program that does not accept our certificate gets no connection, and the event says why.
func TestProgramWithoutOurCertificate(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	n.serve("api.example", public, 443, http.HandlerFunc(hello))
	p := n.start(false, github("api.example"), "api.example:443")
	client := p.client(t)
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = n.roots
	if _, body := get(t, client, "https://api.example/"); !strings.Contains(body, "certificate") {
		t.Error(body)
	}
	if e := next[egress.Ended](n); e.Outcome != egress.Failed || !strings.Contains(e.Reason, "does not accept the certificate") {
		t.Errorf("%+v", e)
	}
}

func TestCertificateFilesEndWithTheProgram(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	p := n.start(false, github("api.example"), "api.example:443")
	if len(p.Files()) != 2 {
		t.Fatal(p.Files())
	}
	for _, file := range p.Files() {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
		if text, _ := os.ReadFile(file); strings.Contains(string(text), "PRIVATE") {
			t.Error("a key is on disk")
		}
	}
	p.Close()
	for _, file := range p.Files() {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is left", file)
		}
	}
	if none := n.start(false, nil); len(none.Files()) > 0 || none.env["SSL_CERT_FILE"] != "" || none.env["NO_PROXY"] != "" || none.env["NODE_USE_ENV_PROXY"] != "1" {
		t.Errorf("%v %v", none.Files(), none.env)
	}
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	for _, s := range []egress.Secret{
		{Name: "gh", Value: secret.New("two\nlines"), Hosts: []string{"api.example"}},
		{Name: "gh", Hosts: []string{"api.example"}},
		{Name: "gh", Value: secret.New(token), Hosts: []string{"*.example"}},
		{Name: "gh", Value: secret.New(token), Hosts: []string{"https://api.example/"}},
	} {
		if _, err := n.service.Gateway(egress.Program{Name: "files", Secrets: []egress.Secret{s}}); err == nil || strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), token) {
			t.Errorf("%v: %v", s.Hosts, err)
		}
	}
	if err := egress.CheckHosts("gh", []string{"api.example", "api.example:8443"}); err != nil {
		t.Error(err)
	}
}

// rootOf is the authority of a remote server.
func rootOf(t testing.TB, n *internet, name string) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", n.servers[netip.AddrPortFrom(n.names[name][0], 443)], &tls.Config{ServerName: name, RootCAs: n.roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	chain := conn.ConnectionState().PeerCertificates
	return chain[len(chain)-1]
}

// The level of a profile decides whether its list counts; references to secrets are
// resolved when the program starts.
func TestProfiles(t *testing.T) {
	t.Parallel()
	lookups := map[string]string{"${env:TOKEN}": token}
	n := newInternet(t, egress.Options{Secret: func(text string) (secret.Text, error) {
		if lookups[text] == "" {
			return secret.Text{}, errors.New("the variable is not set")
		}
		return secret.New(lookups[text]), nil
	}})
	n.serve("api.example", public, 80, http.HandlerFunc(hello))
	for level, status := range map[profile.Level]int{profile.Strict: http.StatusForbidden, profile.Open: http.StatusOK, profile.Off: http.StatusOK} {
		gateway, err := n.service.Within(profile.Profile{Name: "files", Level: level, Credentials: []profile.Credential{{Name: "gh", Variable: "T", Value: secret.New("${env:TOKEN}"), Hosts: []string{"api.example"}}}})
		if err != nil {
			t.Fatal(err)
		}
		p := n.run(false, gateway)
		if p.env["T"] == "" || p.env["T"] == token {
			t.Errorf("%s: the variable is %q", level, p.env["T"])
		}
		if got, body := get(t, p.client(t), "http://api.example/"); got != status {
			t.Errorf("%s: %d %s", level, got, body)
		}
	}
	for _, wrong := range []profile.Profile{
		{Level: profile.Strict, Network: []string{"no port"}},
		{Credentials: []profile.Credential{{Name: "gh", Value: secret.New("${env:OTHER}")}}},
	} {
		if _, err := n.service.Within(wrong); err == nil {
			t.Errorf("%+v has a gateway", wrong)
		}
	}
}
