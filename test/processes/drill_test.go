package processes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestDrill does what a team does in its first year, in the order of docs/operate.md: two nodes
// behind nginx with a provider of identities, people who work, a rolling restart, a killed node,
// a new password of the database, a database that is away, a backup that is restored elsewhere,
// and a person who leaves.
func TestDrill(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make drill runs it: it starts several servers")
	}
	t.Parallel()
	d := newDrill(t)
	ann, bob := d.signIn(t, "ann"), d.signIn(t, "bob")
	ann.work(t)
	bob.work(t)

	d.underLoad(t, "a rolling restart", func() {
		for _, c := range d.nodes {
			c.Signal(t, syscall.SIGTERM)
			if output, err := c.Wait(); err != nil {
				t.Errorf("%s ended with %v:\n%s", c.name, err, output)
			}
			c.Start(t)
			d.awaitNode(t, c)
		}
	})
	d.nodes[0].Kill()
	d.mustCall(t) // the other serves
	d.nodes[0].Start(t)
	d.awaitNode(t, d.nodes[0])

	d.underLoad(t, "a new password", func() {
		d.postgres.RequirePassword(t, "second")
		d.writePassword(t, "second")
		d.mustCall(t)
	})
	d.underLoad(t, "a database that is away", func() {
		d.postgres.Stop(t, "immediate")
		d.postgres.Start(t)
		d.mustCall(t)
	})

	elsewhere := d.restoreElsewhere(t)
	d.erase(t, ann)
	if d.things(t, bob.id) == 0 {
		t.Error("a colleague has lost everything")
	}
	for _, p := range []*erasable{&ann, &bob} { // the backup is from before
		at := *p
		at.signIn(t, elsewhere.URL())
		if !strings.Contains(at.do(t, "/tools/job_list", `{}`), p.marker) {
			t.Errorf("the jobs of %s are not in the backup", p.marker)
		}
	}
}

// drill is two nodes behind nginx, whose users come from a provider, on a database that wants a
// password.
type drill struct {
	balanced
	postgres *dbtest.Server
	provider *identitytest.Provider
	password string // the file with it
	config   string
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{postgres: dbtest.StartServer(t), password: filepath.Join(t.TempDir(), "password")}
	d.address = "127.0.0.1:" + netguardtest.ReservedPort()
	d.url, d.client = "http://"+d.address, httpjsontest.Client
	d.provider = identitytest.NewProvider(t, d.url)
	address := d.postgres.RequirePassword(t, "first")
	d.writePassword(t, "first")
	d.config = fmt.Sprintf(`
database = %q
public_url = %q
[identity.real]
issuer = %q
client_id = %q
client_secret = "${env:CLIENT_SECRET}"
scopes = ["profile", "email", "groups"]
roles = ["author"]
`, strings.Replace(address, "password=first", "password=${file:"+d.password+"}", 1), d.url, d.provider.URL, oauthtest.ClientID)
	folder := t.TempDir()
	for _, name := range []string{"ann", "bob"} {
		c := newBalancedNode(t, folder, name, d.config, "CLIENT_SECRET="+oauthtest.ClientSecret)
		c.Start(t)
		d.nodes = append(d.nodes, c)
	}
	startNginx(t, d.ofDocs(t, "nginx", "listen 443 ssl", "listen "+d.address, "ssl_certificate ", "# ", "ssl_certificate_key", "#", "Host $host", "Host $http_host"))
	d.awaitNode(t, d.nodes[0])
	return d
}

func (d *drill) writePassword(t *testing.T, password string) {
	t.Helper()
	if err := os.WriteFile(d.password, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// signIn signs somebody in at the provider, through nginx.
func (d *drill) signIn(t *testing.T, name string) erasable {
	t.Helper()
	browser := identitytest.New(t)
	if p := browser.LogIn(t, browser.Open(t, d.url+"/signin"), name); p.Status != http.StatusOK {
		t.Fatalf("%s signs in: %d %s %s", name, p.Status, p.URL, p.Body)
	}
	p := erasable{marker: "zebrafinch-" + name}
	for _, c := range browser.Cookies(d.url) {
		if c.Name == "luanette_session" {
			p.cookie = c.Value
		}
	}
	p.signIn(t, d.url)
	var me struct{ ID string }
	_, body := httpjsontest.Read(t, http.MethodGet, d.url+"/api/v1/me", "", "Cookie", "luanette_session="+p.cookie)
	if err := json.Unmarshal([]byte(body), &me); err != nil || me.ID == "" {
		t.Fatalf("me: %s, %v", body, err)
	}
	p.id = strings.TrimPrefix(me.ID, "person:")
	return p
}

func asRoot() []string { return []string{"Authorization", "Bearer " + rootKey} }

// mustCall makes a call that must succeed.
func (d *drill) mustCall(t *testing.T) {
	t.Helper()
	if err := d.call(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// underLoad does something while clients make calls, none of which may fail.
func (d *drill) underLoad(t *testing.T, what string, do func()) {
	t.Helper()
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for !isClosed(stop) && !t.Failed() {
				if err := d.call(t.Context()); err != nil {
					t.Errorf("a call during %s: %v", what, err)
				}
			}
		})
	}
	do()
	close(stop)
	load.Wait()
}

// restoreElsewhere makes a backup, restores it into another database, and starts a node there.
func (d *drill) restoreElsewhere(t *testing.T) *clusterNode {
	t.Helper()
	file := filepath.Join(t.TempDir(), "drill.backup")
	run := func(args ...string) {
		if output, err := d.nodes[0].Command(t.Context(), append(args, "--config", "luanette.toml")...).CombinedOutput(); err != nil {
			t.Fatalf("luanette %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	run("backup", file, "--data", "ann")
	run("audit", "verify", "--data", "ann")
	folder, database := t.TempDir(), dbtest.StartServer(t).URL+"&application_name=elsewhere"
	run("restore", file, "--database", database, "--data", filepath.Join(folder, "new"))
	c := newBalancedNode(t, folder, "new", strings.Replace(d.config, "database = ", fmt.Sprintf("database = %q\n# database = ", database), 1), "CLIENT_SECRET="+oauthtest.ClientSecret)
	c.Start(t)
	return c
}

// erase erases a person, and waits until nothing is left.
func (d *drill) erase(t *testing.T, p erasable) {
	t.Helper()
	answer, body := httpjsontest.Read(t, http.MethodDelete, d.url+"/api/v1/people/"+p.id, "", asRoot()...)
	if answer.StatusCode/100 != 2 {
		t.Fatalf("erase: %s %s", answer.Status, body)
	}
	clocktest.Await(t, func() bool { return len(dbtest.TablesWith(t, d.postgres.URL, p.marker)) == 0 },
		func() string { return fmt.Sprint(dbtest.TablesWith(t, d.postgres.URL, p.marker)) })
}

// things counts what is stored of a person.
func (d *drill) things(t *testing.T, id string) int {
	t.Helper()
	_, body := httpjsontest.Read(t, http.MethodGet, d.url+"/api/v1/people/"+id+"/export", "", asRoot()...)
	return strings.Count(body, "\n")
}
