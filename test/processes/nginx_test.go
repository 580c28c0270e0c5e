package processes

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// answeredBy is the header by which nginx says which node answered.
const answeredBy = "X-Answered-By"

// nginxFront is a way through nginx, and what came of the requests that took it.
type nginxFront struct {
	clusterNode
	upstream, location string // what its configuration has beyond the least
	repeats            bool   // nginx repeats requests whose outcome is unknown

	served *atomic.Int64
	failed atomic.Int64
}

// TestBehindNginx restarts and kills nodes under load behind a real nginx. With the
// configuration that everybody writes first, and with connections that stay open, a rolling
// restart loses nothing, and a kill only what the node was serving: nginx does not repeat a POST
// that it has sent. Where it may repeat them, a kill loses nothing.
func TestBehindNginx(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make nodes runs it: it starts several servers")
	}
	t.Parallel()
	f := startCluster(t)
	nodes := f.nodes[:2]
	fronts := []*nginxFront{
		{clusterNode: clusterNode{name: "plain"}},
		{clusterNode: clusterNode{name: "kept"}, upstream: "keepalive 16;", location: `proxy_set_header Connection "";`},
		{clusterNode: clusterNode{name: "repeated"}, location: "proxy_next_upstream error timeout non_idempotent;", repeats: true},
	}
	var sites strings.Builder
	for _, front := range fronts {
		front.Address = netguardtest.ReservedAddress()
		fmt.Fprintf(&sites, `
upstream %[1]s { server %[2]s; server %[3]s; %[4]s }
server {
	listen %[5]s;
	add_header `+answeredBy+` $upstream_addr always;
	location / {
		proxy_pass http://%[1]s;
		# Servers without keys, as those of this test, take the rest for requests of others.
		proxy_set_header Host $http_host;
		proxy_http_version 1.1;
		%[6]s
	}
}`, front.name, nodes[0].Address, nodes[1].Address, front.upstream, front.Address, front.location)
	}
	startNginx(t, sites.String())
	for _, front := range fronts {
		front.awaitAnswer(t, nodes[0])
	}

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var killed atomic.Bool
	for _, front := range fronts {
		front.served = startLoad(ctx, &all, func(context.Context) *clusterNode { return &front.clusterNode }, func(what string, _ *clusterNode, err error) {
			if front.failed.Add(1); front.repeats || !killed.Load() {
				t.Errorf("%s through %s: %v", what, front.name, err)
			}
		})
	}
	for _, c := range nodes {
		c.Signal(t, syscall.SIGTERM)
		if output, err := c.Wait(); err != nil {
			t.Errorf("%s ended with %v:\n%s", c.name, err, output)
		}
		f.start(t, c)
		for _, front := range fronts { // nginx leaves a node alone for ten seconds after it was refused
			front.awaitAnswer(t, c)
		}
	}
	killed.Store(true)
	nodes[0].Kill()
	for _, front := range fronts {
		before := front.served.Load()
		clocktest.Await(t, func() bool { return front.served.Load() > before+100 })
	}
	stop()
	all.Wait()
	const clients = 4 // of each load, with one request at a time
	for _, front := range fronts {
		if lost := front.failed.Load(); lost > clients {
			t.Errorf("through %s, %d requests failed after a kill; at most one of each of %d clients was being served", front.name, lost, clients)
		}
		t.Logf("%s: %d requests were served, a kill cost %d", front.name, front.served.Load(), front.failed.Load())
	}
}

// awaitAnswer waits until nginx lets a node answer.
func (front *nginxFront) awaitAnswer(t *testing.T, by *clusterNode) {
	t.Helper()
	clocktest.Await(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL()+"/ready", nil)
		if err != nil {
			return false
		}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK && answer.Header.Get(answeredBy) == by.Address
	})
}

// startNginx starts nginx with sites, in a folder of its own.
func startNginx(t *testing.T, sites string) {
	t.Helper()
	folder, user := t.TempDir(), ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // its workers write into the folder, too
	}
	config := user + "daemon off;\npid nginx.pid;\nworker_processes 1;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += fmt.Sprintf("%s_temp_path %s;\n", kind, kind)
	}
	startBalancer(t, folder, config+sites+"\n}\n", "nginx", "-p", folder, "-e", "stderr", "-c")
}

// startBalancer starts a program of Debian with the path of its configuration as the last
// argument, and stops it when the test ends.
func startBalancer(t *testing.T, folder, config, name string, args ...string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		program = filepath.Join("/usr/sbin", name) // not in everybody's PATH
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%[1]s is not installed (Debian: apt-get install %[1]s): what it does with nodes that stop was not tested", name)
	}
	file := filepath.Join(folder, name+".conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, append(args, file)...)
	cmd.Env = []string{"HOME=" + folder}
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); t.Failed() {
			t.Logf("%s: %v\n%s", name, err, &output)
		}
	})
}
