package processes

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpserver/httpservertest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestBalancers runs the configurations of docs/balancers.md with the real programs: calls and
// a stream pass, a node that stops costs nothing, and one that was killed is not missed.
func TestBalancers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(t *testing.T, b balanced)
		env   []string // of the nodes
	}{
		{"nginx", nginxOfDocs, nil},
		{"caddy", caddyOfDocs, []string{"LUANETTE_SHUTDOWN_DELAY=5s"}}, // as the page says
		{"haproxy", haproxyOfDocs, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBalanced(t, startPair(t, dbtest.Postgres(t), c.env...))
			c.start(t, b)
			b.check(t)
		})
	}
}

const (
	publicHost = "tools.example.com"
	rootKey    = "root-token"
)

// startPair starts two nodes on a database that know they are behind a balancer.
func startPair(t *testing.T, database string, env ...string) []*clusterNode {
	t.Helper()
	folder := t.TempDir()
	var nodes []*clusterNode
	for _, name := range []string{"ann", "bob"} {
		c := newBalancedNode(t, folder, name, fmt.Sprintf("database = %q\npublic_url = %q\n", database, "https://"+publicHost), env...)
		c.Start(t)
		nodes = append(nodes, c)
	}
	return nodes
}

// newBalancedNode returns a node that trusts balancers on this machine. It is not started.
func newBalancedNode(t *testing.T, folder, name, config string, env ...string) *clusterNode {
	t.Helper()
	c := &clusterNode{name: name, Server: programtest.Server{Folder: folder, Address: netguardtest.ReservedAddress(), Args: []string{"--data", name, "--config", "luanette.toml"}}}
	c.Env = append(env, "ROOT="+rootKey, "LUANETTE_NODE="+name, "LUANETTE_OAUTH_KEY=a key that is long enough")
	c.Configure(t, "trusted_proxies = [\"127.0.0.0/8\"]\n"+config+"[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n")
	return c
}

// balanced is two nodes behind a balancer.
type balanced struct {
	nodes             []*clusterNode
	url               string // that people use
	address           string // of the balancer
	folder            string // for its files
	certFile, keyFile string
	client            *http.Client
}

func newBalanced(t *testing.T, nodes []*clusterNode) balanced {
	t.Helper()
	b := balanced{nodes: nodes, url: "https://" + publicHost, address: netguardtest.ReservedAddress(), folder: t.TempDir()}
	b.certFile, b.keyFile, _ = httpservertest.WritePair(t, b.folder, 1)
	b.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, b.address)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate is for 127.0.0.1
	}}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// ofDocs returns the configuration of docs/balancers.md with our addresses.
func (b balanced) ofDocs(t *testing.T, language string, changes ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/balancers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```"+language+"\n")
	text, _, _ = strings.Cut(text, "```")
	changes = append(changes, "10.0.0.1:8081", b.nodes[0].Address, "10.0.0.2:8081", b.nodes[1].Address)
	for i := 0; i < len(changes); i += 2 {
		found = found && strings.Contains(text, changes[i])
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	if !found {
		t.Fatalf("the %s of docs/balancers.md is not there, or lacks one of %q", language, changes)
	}
	return text
}

func nginxOfDocs(t *testing.T, b balanced) {
	t.Helper()
	startNginx(t, b.ofDocs(t, "nginx", "listen 443", "listen "+b.address,
		"/etc/ssl/tools.example.com.pem", b.certFile, "/etc/ssl/tools.example.com.key", b.keyFile))
}

func caddyOfDocs(t *testing.T, b balanced) {
	t.Helper()
	host, port, _ := net.SplitHostPort(b.address)
	site := fmt.Sprintf("{\nadmin off\nauto_https off\n}\nhttps://%s:%s {\nbind %s\ntls %s %s\n", publicHost, port, host, b.certFile, b.keyFile)
	startBalancer(t, b.folder, b.ofDocs(t, "caddy", publicHost+" {\n", site), "caddy", "run", "--adapter", "caddyfile", "--config")
}

func haproxyOfDocs(t *testing.T, b balanced) {
	t.Helper()
	var both []byte
	for _, file := range []string{b.certFile, b.keyFile} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, text...)
	}
	pem := filepath.Join(b.folder, "both.pem")
	if err := os.WriteFile(pem, both, 0o600); err != nil {
		t.Fatal(err)
	}
	startBalancer(t, b.folder, b.ofDocs(t, "haproxy", ":443", b.address, "/etc/haproxy/tools.example.com.pem", pem), "haproxy", "-db", "-f")
}

// check lets nodes stop and die.
func (b balanced) check(t *testing.T) {
	t.Helper()
	ann, bob := b.nodes[0], b.nodes[1]
	b.awaitNode(t, ann)
	b.awaitNode(t, bob)
	b.stream(t)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for !isClosed(stop) {
				if err := b.call(t.Context()); err != nil {
					t.Errorf("a call while a node stops: %v", err)
					return
				}
			}
		})
	}
	ann.Signal(t, syscall.SIGTERM)
	output, err := ann.Wait()
	if err != nil {
		t.Errorf("a node ended with %v:\n%s", err, output)
	}
	ann.Start(t)
	b.awaitNode(t, ann)
	close(stop)
	load.Wait()
	bob.Kill()
	inRow := 0
	clocktest.Await(t, func() bool { // some notice it by a health check
		if inRow++; b.call(t.Context()) != nil {
			inRow = 0
		}
		return inRow == 20
	})
}

// awaitNode waits until the balancer lets a node answer.
func (b balanced) awaitNode(t *testing.T, c *clusterNode) {
	t.Helper()
	var last string
	clocktest.Await(t, func() bool {
		name, err := b.node(t.Context())
		last = fmt.Sprint(name, " ", err)
		return err == nil && name == c.name
	}, func() string { return last })
}

// node returns the name of the node that answers.
func (b balanced) node(ctx context.Context) (name string, err error) {
	answer, err := b.get(ctx, "/health")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	var health struct{ Node string }
	err = json.NewDecoder(answer.Body).Decode(&health)
	return health.Node, err
}

// call calls a tool.
func (b balanced) call(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/tools/lua_eval", strings.NewReader(`{"code":"return 1"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+rootKey)
	r.Header.Set("Content-Type", "application/json")
	answer, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

func (b balanced) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+rootKey)
	return b.client.Do(r)
}

// stream reads the beginning of a stream, which a balancer must not hold back.
func (b balanced) stream(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	answer, err := b.get(ctx, "/mcp/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			return
		}
	}
	t.Errorf("%s, and nothing in the stream", answer.Status)
}
