package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// as is a context in which a person acts, whose client sent a token of ours.
func as(t testing.TB, name string) context.Context {
	return principal.With(t.Context(), principal.Principal{ID: "person:" + name, Name: name, User: name, Scopes: []principal.Scope{principal.MCP}})
}

// company is a server that knows its people by their tokens: each has a session of its own,
// and a tool that nobody else has.
type company struct {
	open bool // it lists its tools without a token

	mu      sync.Mutex
	refused string                 // token
	servers map[string]*mcp.Server // by token
	headers []http.Header          // of all requests
}

func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	c.mu.Lock()
	c.headers = append(c.headers, r.Header.Clone())
	server := c.server(token)
	c.mu.Unlock()
	if server == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}).ServeHTTP(w, r)
}

// server is that of one token; nil if the token is not known. c.mu is held.
func (c *company) server(token string) *mcp.Server {
	if token != "" && token == c.refused {
		return nil
	}
	if s := c.servers[token]; s != nil {
		return s
	}
	who, known := strings.CutPrefix(token, "token-")
	if !known && !c.open {
		return nil
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "company", Version: "1"}, &mcp.ServerOptions{Instructions: "for " + who})
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return say(who), nil, nil
	})
	if known {
		mcp.AddTool(s, &mcp.Tool{Name: "of_" + who}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return say("secret of " + who), nil, nil
		})
		s.AddResource(&mcp.Resource{URI: "me://mail", Name: "mail"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "me://mail", Text: "mail of " + who}}}, nil
		})
	}
	c.servers[token] = s
	return s
}

// ownLogins has a token for each owner who has logged in.
type ownLogins struct {
	mu     sync.Mutex
	tokens map[string]string // by owner
	denied map[string]int    // how often those were asked for who may not log in
}

func (l *ownLogins) Token(_ context.Context, spec upstream.Spec) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, never := l.denied[spec.Owner]; never {
		l.denied[spec.Owner]++
		return "", fault.New(fault.Denied, "%s may not use %s", spec.Owner, spec.Name)
	}
	return l.tokens[spec.Owner], nil
}

func (l *ownLogins) Refused(_ context.Context, spec upstream.Spec, _ int, _, _ string) (string, error) {
	return "", fault.New(fault.NeedsAuth, "upstream %s needs the login of %s", spec.Name, spec.Owner).WithHint("open https://hub.example/connect/%s", spec.Name)
}

func (l *ownLogins) set(owner, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[owner] = token
}

// newCompany is a manager with a company's server as the upstream "test".
func newCompany(t *testing.T, c *company, change func(*upstream.Options, *upstream.Spec)) (*upstream.Manager, *ownLogins) {
	t.Helper()
	c.servers = map[string]*mcp.Server{}
	site := httptest.NewServer(c)
	t.Cleanup(site.Close)
	logins := &ownLogins{tokens: map[string]string{"person:ann": "token-ann", "person:bob": "token-bob"}}
	o := options(t)
	o.Login = logins
	spec := upstream.Spec{Name: "test", Settings: upstream.Settings{URL: site.URL, Login: upstream.LoginEach, Wait: duration.Duration(clocktest.Timeout)}, Trusted: true}
	if change != nil {
		change(&o, &spec)
	}
	m := upstream.New(o)
	t.Cleanup(m.Close)
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	return m, logins
}

// answerTo is the text of a call's result.
func answerTo(ctx context.Context, m *upstream.Manager, name string) (string, error) {
	result, err := m.Call(ctx, tool.Call{Ref: ref(name)})
	return textOf(result.Raw), err
}

func textOf(result json.RawMessage) string {
	content, _ := rawjson.Get(result, "content")
	items, _ := rawjson.Items(content)
	if len(items) == 0 {
		return string(result)
	}
	text, _ := rawjson.GetText(items[0], "text")
	return text
}

// listedFor are the tools that are listed for a principal.
func listedFor(ctx context.Context, m *upstream.Manager) (names []string) {
	all, _ := m.Tools(ctx)
	own := m.Own(ctx)
	for _, info := range all {
		if !own[info.Space].Lacks[info.Name] {
			names = append(names, info.Name)
		}
	}
	return names
}

// TestNobodySeesAnother checks that results, tools, resources and sessions of one person
// never reach another, and that what clients send us never reaches the server.
func TestNobodySeesAnother(t *testing.T) {
	t.Parallel()
	c := &company{}
	m, _ := newCompany(t, c, nil)
	ann, bob, eve := as(t, "ann"), as(t, "bob"), as(t, "eve")
	var wg sync.WaitGroup
	for range 20 {
		for name, ctx := range map[string]context.Context{"ann": ann, "bob": bob} {
			wg.Go(func() {
				if got, err := answerTo(ctx, m, "whoami"); err != nil || got != name {
					t.Errorf("%s is %q, %v", name, got, err)
				}
			})
		}
	}
	wg.Wait()
	if got, err := answerTo(ann, m, "of_ann"); err != nil || got != "secret of ann" {
		t.Errorf("ann: %q, %v", got, err)
	}
	if got, err := answerTo(bob, m, "of_ann"); err == nil {
		t.Errorf("bob: %q", got)
	}
	if _, err := answerTo(eve, m, "whoami"); fault.CodeOf(err) != fault.NeedsAuth || fault.HintOf(err) != "open https://hub.example/connect/test" {
		t.Errorf("eve: %v (%s)", err, fault.HintOf(err))
	}
	for ctx, want := range map[context.Context][]string{ann: {"of_ann", "whoami"}, bob: {"of_bob", "whoami"}, eve: {"whoami"}} {
		if got := listedFor(ctx, m); !slices.Equal(got, want) {
			t.Errorf("%s sees %q", principal.Of(ctx).Name, got)
		}
	}
	peer, _ := m.Peer("test")
	for _, name := range []string{"ann", "bob"} {
		who := principal.Of(as(t, name))
		mail, err := peer.For(who).Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"me://mail"}`), nil) // as in the background
		if err != nil || !strings.Contains(string(mail), "mail of "+name) {
			t.Errorf("mail of %s: %s, %v", name, mail, err)
		}
		_, _, instructions, err := peer.For(who).Describe(t.Context())
		if err != nil || string(instructions) != `"for `+name+`"` {
			t.Errorf("instructions of %s: %s, %v", name, instructions, err)
		}
	}
	if text := m.Instructions("test"); text != "" {
		t.Errorf("instructions for everybody: %q", text)
	}
	if st, _ := m.Status("test"); st.People != 3 || st.Login != upstream.LoginEach || st.Tools != 1 {
		t.Errorf("status %+v", st)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, header := range c.headers {
		if sent := header.Get("Authorization"); !slices.Contains([]string{"", "Bearer token-ann", "Bearer token-bob"}, sent) || header.Get("Cookie") != "" {
			t.Errorf("the server saw %v", header)
		}
	}
}

// TestToolsStayListed checks that tools are listed before a login and after it has ended.
func TestToolsStayListed(t *testing.T) {
	t.Parallel()
	t.Run("by a server that lists them without a login", func(t *testing.T) {
		t.Parallel()
		m, _ := newCompany(t, &company{open: true}, nil)
		clocktest.Await(t, func() bool { return slices.Equal(listedFor(as(t, "ann"), m), []string{"whoami"}) })
		if _, err := answerTo(as(t, "ann"), m, "of_ann"); err != nil {
			t.Error(err)
		}
		if ann, bob := listedFor(as(t, "ann"), m), listedFor(as(t, "bob"), m); len(ann) != 2 || len(bob) != 1 {
			t.Errorf("ann sees %q, bob %q", ann, bob)
		}
	})
	t.Run("by the first two who log in", func(t *testing.T) {
		t.Parallel()
		var cache upstream.Options
		c := &company{}
		m, logins := newCompany(t, c, func(o *upstream.Options, _ *upstream.Spec) { cache = *o })
		if _, err := answerTo(as(t, "eve"), m, "whoami"); fault.CodeOf(err) != fault.NeedsAuth {
			t.Errorf("without a login: %v", err)
		}
		logins.set("person:eve", "token-eve")
		if got, err := answerTo(as(t, "eve"), m, "whoami"); err != nil || got != "eve" {
			t.Errorf("after the login: %q, %v", got, err)
		}
		want := []string{"of_eve", "whoami"}
		clocktest.Await(t, func() bool { return slices.Equal(listedFor(as(t, "eve"), m), want) }) // calls do not wait for the list
		c.mu.Lock()
		c.servers["token-eve"] = nil
		c.mu.Unlock()
		logins.set("person:eve", "expired")
		if _, err := answerTo(as(t, "eve"), m, "whoami"); fault.CodeOf(err) != fault.NeedsAuth {
			t.Errorf("after the login has ended: %v", err)
		}
		if eve, bob := listedFor(as(t, "eve"), m), listedFor(as(t, "bob"), m); !slices.Equal(eve, want) || len(bob) != 0 {
			t.Errorf("after the login has ended eve sees %q; bob, who has not logged in, %q", eve, bob)
		}
		if _, err := answerTo(as(t, "ann"), m, "whoami"); err != nil {
			t.Error(err)
		}
		clocktest.Await(t, func() bool {
			return slices.Equal(listedFor(as(t, "ann"), m), []string{"of_ann", "whoami"}) && slices.Equal(listedFor(as(t, "bob"), m), []string{"whoami"})
		}, func() string {
			return fmt.Sprintf("after a second login ann sees %q, bob %q", listedFor(as(t, "ann"), m), listedFor(as(t, "bob"), m))
		})
		st, _ := m.Status("test")
		m.Close()
		again := upstream.New(cache)
		t.Cleanup(again.Close)
		if err := again.Add(st.Desired); err != nil {
			t.Fatal(err)
		}
		clocktest.Await(t, func() bool { return slices.Equal(listedFor(as(t, "bob"), again), []string{"whoami"}) })
	})
}

// TestDeniedLoginIsNotRetried checks that somebody who may not log in is told so at once, and
// that nothing is tried again before they ask again.
func TestDeniedLoginIsNotRetried(t *testing.T) {
	t.Parallel()
	m, logins := newCompany(t, &company{}, nil)
	logins.mu.Lock()
	logins.denied = map[string]int{"person:eve": 0}
	logins.mu.Unlock()
	for n := 1; n <= 3; n++ {
		if _, err := answerTo(as(t, "eve"), m, "whoami"); fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), "person:eve may not use test") {
			t.Errorf("%v", err)
		}
		logins.mu.Lock()
		if logins.denied["person:eve"] != n {
			t.Errorf("%d attempts for %d calls", logins.denied["person:eve"], n)
		}
		logins.mu.Unlock()
	}
	if got, err := answerTo(as(t, "ann"), m, "whoami"); err != nil || got != "ann" {
		t.Errorf("ann: %q, %v", got, err)
	}
}

// playPerson answers every call with its process, variable and arguments.
func playPerson() int {
	fmt.Fprintln(os.Stderr, "key", os.Getenv("PLAIN"))
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		m, err := wire.Parse(line)
		if err != nil || !m.IsRequest() {
			continue
		}
		answer := minimalAnswer(m, false)
		if m.Method == wire.MethodToolsCall {
			text := fmt.Sprintf("%d|%s|%s", os.Getpid(), os.Getenv("WHO"), strings.Join(os.Args[1:], " "))
			told, err := tool.Output(text, nil)
			if err != nil {
				return 1
			}
			message := wire.Answer(m.ID, told.Raw, nil)
			answer = message.Append(nil)
		}
		_, _ = os.Stdout.Write(append(answer, '\n'))
	}
}

// processOf is the process that serves a person.
func processOf(t *testing.T, ctx context.Context, m *upstream.Manager) int {
	t.Helper()
	text, err := answerTo(ctx, m, "good")
	pid, _, _ := strings.Cut(text, "|")
	id, bad := strconv.Atoi(pid)
	if err != nil || bad != nil {
		t.Fatalf("%q, %v", text, err)
	}
	return id
}

func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }

// TestProcessPerPerson checks that each person has a process, that others do not notice
// when one is killed, and that it ends when its person is blocked.
func TestProcessPerPerson(t *testing.T) {
	t.Parallel()
	blocked := map[string]bool{}
	var mu sync.Mutex
	o := options(t)
	o.Person = func(_ context.Context, owner string) (upstream.Person, error) {
		mu.Lock()
		defer mu.Unlock()
		if blocked[owner] {
			return upstream.Person{}, fault.New(fault.Denied, "%s is blocked", owner)
		}
		name := strings.TrimPrefix(owner, "person:")
		return upstream.Person{ID: name, Email: name + "@example.org"}, nil
	}
	m := upstream.New(o)
	t.Cleanup(m.Close)
	spec := stdioSpec(t, "person")
	spec.Login, spec.Trusted = upstream.LoginEach, true
	spec.Env["WHO"] = "${person.email}"
	spec.Args = []string{"--user=${person.id}"}
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	ann, bob := as(t, "ann"), as(t, "bob")
	first, other := processOf(t, ann, m), processOf(t, bob, m)
	if text, err := answerTo(bob, m, "good"); err != nil || text != fmt.Sprintf("%d|bob@example.org|--user=bob", other) {
		t.Errorf("bob's process: %q, %v", text, err)
	}
	if first == other || processOf(t, ann, m) != first {
		t.Errorf("processes %d and %d", first, other)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { // a call that the process read before it died has an unknown outcome
		st, _ := m.PersonStatus(ann, "test")
		return st.State != upstream.StateConnected || st.Stats.Connects > 1
	})
	second := processOf(t, ann, m)
	if second == first || processOf(t, bob, m) != other {
		t.Errorf("after kill -9: %d, then %d; bob had %d", first, second, other)
	}
	mu.Lock()
	blocked["person:ann"] = true
	mu.Unlock()
	m.EndPeople(func(owner string) bool { return owner == "person:ann" })
	clocktest.Await(t, func() bool { return !runs(second) })
	if _, err := answerTo(ann, m, "good"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("blocked: %v", err)
	}
	if processOf(t, bob, m) != other {
		t.Error("bob's process was ended, too")
	}
}

// TestPersonalValuesAreNotShown checks that what a person stored reaches the process, and
// neither the log of the process nor errors.
func TestPersonalValuesAreNotShown(t *testing.T) {
	t.Parallel()
	const value = "ordinary-words-that-look-like-nothing"
	stored := map[string]string{}
	var mu sync.Mutex
	o := options(t)
	o.Personal = func(_ context.Context, owner, name string) (secret.Text, error) {
		mu.Lock()
		defer mu.Unlock()
		if text, ok := stored[owner+" "+name]; ok {
			return secret.New(text), nil
		}
		return secret.Text{}, fault.New(fault.NotFound, "no value %s", name)
	}
	m := upstream.New(o)
	t.Cleanup(m.Close)
	spec := stdioSpec(t, "person")
	spec.Login, spec.Trusted = upstream.LoginEach, true
	spec.Env["WHO"], spec.Env["PLAIN"] = "${personal:KEY}", "x ${personal:KEY}"
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	ann := as(t, "ann")
	_, err := answerTo(ann, m, "good")
	if fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(fault.HintOf(err), "/api/v1/me/secrets/KEY") {
		t.Errorf("without a value: %v (%s)", err, fault.HintOf(err))
	}
	mu.Lock()
	stored["person:ann KEY"] = value
	mu.Unlock()
	if text, err := answerTo(ann, m, "good"); err != nil || !strings.Contains(text, "|"+value+"|") {
		t.Errorf("with a value: %q, %v", text, err)
	}
	if err := syscall.Kill(processOf(t, ann, m), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if st, _ := m.PersonStatus(ann, "test"); strings.Contains(fmt.Sprintf("%+v", st), value) {
		t.Errorf("the status has the value: %+v", st)
	}
	if _, err := answerTo(as(t, "bob"), m, "good"); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("bob, who has none: %v", err)
	}
	chats := principal.With(t.Context(), principal.Principal{ID: "key:web", Person: "acme/ada"})
	if _, err := answerTo(chats, m, "good"); fault.CodeOf(err) != fault.NeedsAuth || strings.Contains(fault.HintOf(err), "/me/secrets") || !strings.Contains(fault.HintOf(err), "lets ada sign in") {
		t.Errorf("somebody in a chat, who cannot store any: %v (%s)", err, fault.HintOf(err))
	}
}

// TestPersonalHeaders checks what variables stand for in headers and addresses, and that
// nothing that a person is called can become more than a value.
func TestPersonalHeaders(t *testing.T) {
	t.Parallel()
	c := &company{}
	file := t.TempDir() + "/key"
	if err := os.WriteFile(file, []byte("of the server"), 0o600); err != nil {
		t.Fatal(err)
	}
	people := map[string]upstream.Person{
		"person:ann": {ID: "ann", Name: "${file:" + file + "} & co", Email: "ann@example.org", Org: "acme"},
		"person:bob": {ID: "bob", Name: "bob\r\nX-Admin: 1", Email: "bob@example.org", Org: "acme"},
		"person:eve": {ID: "eve", Name: "eve", Org: "acme"},
	}
	m, _ := newCompany(t, c, func(o *upstream.Options, spec *upstream.Spec) {
		o.Person = func(_ context.Context, owner string) (upstream.Person, error) { return people[owner], nil }
		o.Secret = secret.Finder{}.Find
		spec.Headers = map[string]string{"X-Email": "${person.email}", "X-Name": "${person.name}"}
		spec.URL += "/?org=${person.org}&name=${person.name}"
	})
	_, err := answerTo(as(t, "ann"), m, "whoami")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bob", "eve"} {
		if _, err := answerTo(as(t, name), m, "whoami"); fault.CodeOf(err) != fault.NeedsAuth {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, header := range c.headers {
		if header.Get("X-Email") != "ann@example.org" || header.Get("X-Name") != people["person:ann"].Name || header.Get("X-Admin") != "" {
			t.Errorf("the server saw %v", header)
		}
	}
}

// TestVariablesOfPeople checks where variables of people are allowed.
func TestVariablesOfPeople(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*upstream.Spec)
		says   string // "" if it is allowed
	}{
		"headers":             {func(s *upstream.Spec) { s.Headers = map[string]string{"A": "${person.email} ${personal:KEY}"} }, ""},
		"query":               {func(s *upstream.Spec) { s.URL += "?u=${person.id}" }, ""},
		"shared":              {func(s *upstream.Spec) { s.Login, s.Headers = "", map[string]string{"A": "${person.email}"} }, `needs login = "each"`},
		"shared value":        {func(s *upstream.Spec) { s.Login, s.Headers = "", map[string]string{"A": "${personal:KEY}"} }, `needs login = "each"`},
		"path":                {func(s *upstream.Spec) { s.URL += "/${person.id}" }, "headers, env, args and the query"},
		"secret in the query": {func(s *upstream.Spec) { s.URL += "?k=${personal:KEY}" }, "headers and env only"},
		"unknown":             {func(s *upstream.Spec) { s.Headers = map[string]string{"A": "${person.phone}"} }, "is not known"},
	}
	for name, tt := range tests {
		spec := upstream.Spec{Name: "crm", Settings: upstream.Settings{URL: "https://crm.example/mcp", Login: upstream.LoginEach}}
		tt.change(&spec)
		spec, warnings := spec.Expand(func(string) (string, bool) { return "", false })
		err := spec.Validate()
		if tt.says == "" && (err != nil || len(warnings) > 0) || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, %q", name, err, warnings)
		}
	}
}

// ownFakes is a manager whose fake server notes for whom it is dialled.
func ownFakes(t *testing.T, spec upstream.Spec) (s *testManager, dialled func() []string) {
	var mu sync.Mutex
	var owners []string
	s = newTestManager(t, func(o *upstream.Options) {
		dial := o.Dialers["fake"]
		o.Dialers = map[string]upstream.Dialer{"fake": func(ctx context.Context, spec upstream.Spec, hooks upstream.Hooks) (upstream.Transport, error) {
			mu.Lock()
			owners = append(owners, strings.TrimPrefix(spec.Owner, "person:"))
			mu.Unlock()
			return dial(ctx, spec, hooks)
		}}
	})
	spec.Login = upstream.LoginEach
	s.add(t, spec)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(owners)
	}
}

func TestPersonalConnectionsEndWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, dialled := ownFakes(t, upstream.Spec{Settings: upstream.Settings{Idle: duration.Duration(time.Minute)}})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := answerTo(as(t, "ann"), s.Manager, "read"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := dialled(); !slices.Equal(got, []string{"", "ann"}) {
			t.Errorf("50 first calls dialled for %q", got)
		}
		time.Sleep(2 * time.Minute)
		if st := s.state(t); st.People != 0 || st.State != upstream.StateAsleep {
			t.Errorf("after two minutes without a call: %d people, %s", st.People, st.State)
		}
		if _, err := answerTo(as(t, "ann"), s.Manager, "read"); err != nil || len(dialled()) != 3 {
			t.Errorf("the next call: %v, dialled for %q", err, dialled())
		}
	})
}

func TestPersonalConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, dialled := ownFakes(t, upstream.Spec{Settings: upstream.Settings{People: 2}})
		release := make(chan struct{})
		s.fake.handle = func(ctx context.Context, m wire.Message) (json.RawMessage, error) {
			if name, _ := rawjson.GetText(m.Params, "name"); name == "write" {
				<-release
			}
			return json.RawMessage(`{"content":[]}`), nil
		}
		for _, name := range []string{"ann", "bob", "eve", "ann"} { // eve takes the place of ann, and ann that of bob
			if _, err := answerTo(as(t, name), s.Manager, "read"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
		}
		if got, st := dialled(), s.state(t); !slices.Equal(got, []string{"", "ann", "bob", "eve", "ann"}) || st.People != 2 {
			t.Errorf("dialled for %q, %d people", got, st.People)
		}
		var wg sync.WaitGroup
		for _, name := range []string{"ann", "eve"} {
			wg.Go(func() {
				if _, err := answerTo(as(t, name), s.Manager, "write"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		_, err := answerTo(as(t, "bob"), s.Manager, "read")
		if fault.CodeOf(err) != fault.Limit || !strings.Contains(fault.HintOf(err), "people") {
			t.Errorf("while both places are in use: %v (%s)", err, fault.HintOf(err))
		}
		close(release)
		wg.Wait()
		if _, err := answerTo(as(t, "bob"), s.Manager, "read"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestPersonalConnectionsFollowTheSpec(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, dialled := ownFakes(t, upstream.Spec{})
		ann := as(t, "ann")
		if _, err := answerTo(ann, s.Manager, "write"); err != nil {
			t.Fatal(err)
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Login: upstream.LoginEach, DisabledTools: []string{"write"}}})
		if _, err := answerTo(ann, s.Manager, "write"); fault.CodeOf(err) != fault.Denied || len(dialled()) != 2 {
			t.Errorf("with fewer tools: %v, dialled for %q", err, dialled())
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Login: upstream.LoginEach, Headers: map[string]string{"A": "1"}}})
		if st := s.state(t); st.People != 0 {
			t.Errorf("with other headers: %d people", st.People)
		}
		s.add(t, upstream.Spec{})
		if _, err := answerTo(ann, s.Manager, "write"); err != nil {
			t.Fatal(err)
		}
		if got := dialled(); got[len(got)-1] != "" {
			t.Errorf("shared again, dialled for %q", got)
		}
		s.Remove("test")
		if _, err := answerTo(ann, s.Manager, "write"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("removed: %v", err)
		}
	})
}
