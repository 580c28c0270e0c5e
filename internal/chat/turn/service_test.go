package turn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// script is an agent that does what a test says.
type script func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error)

func (s script) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	return s(ctx, r, emit)
}

// echo answers with the message itself.
func echo(_ context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	emit(agent.Text{Text: "re: "})
	emit(agent.Text{Text: r.Message})
	return agent.Reply{Responses: []string{"re: " + r.Message}, Language: r.Language, Usage: llm.Usage{Input: 10, Output: 2, Cost: 0.5}}, nil
}

func store(t *testing.T) string { return dbtest.Fresh(t) }

func open(t *testing.T, url string, a script, o turn.Options) (*turn.Service, func()) {
	t.Helper()
	database, err := db.Open(t.Context(), url, dbtest.Options(url))
	if err != nil {
		t.Fatal(err)
	}
	o.Servers.Secrets = secret.Box{Key: func() (secret.Text, error) { return secret.New("the key of the test, long enough"), nil }}
	service, err := turn.Open(t.Context(), database, a, o)
	if err != nil {
		t.Fatal(err)
	}
	leave := sync.OnceFunc(func() {
		service.Close()
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(leave)
	return service, leave
}

var ann = profile.Person{Org: "acme", User: "ann"}

func say(t *testing.T, service *turn.Service, p profile.Person, text string) *turn.Turn {
	t.Helper()
	turn, err := service.Send(t.Context(), conversation.Message{Person: p, Text: text, RequestID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func answered(t *testing.T, turn *turn.Turn) agent.Reply {
	t.Helper()
	reply, err := turn.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func history(t *testing.T, service *turn.Service, p profile.Person) (texts []string) {
	t.Helper()
	entries, _, err := service.Conversations.History(t.Context(), p, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		texts = append(texts, e.UserMessage+" → "+e.AssistantResponse)
	}
	return texts
}

// TestOrderPerPerson checks that each person's messages are answered once, one at a time
// and in order, and that people do not wait for one another.
func TestOrderPerPerson(t *testing.T) {
	t.Parallel()
	const people, messages = 20, 10
	var mu sync.Mutex
	busy := map[string]bool{}
	var meeting sync.WaitGroup // of two people's first turns: it takes both at a time
	meeting.Add(2)
	service, _ := open(t, store(t), func(_ context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		mu.Lock()
		if busy[r.User] {
			t.Errorf("two turns of %s at a time", r.User)
		}
		busy[r.User] = true
		mu.Unlock()
		if r.Message == "user0 message 0" || r.Message == "user1 message 0" {
			meeting.Done()
			meeting.Wait()
		}
		for range rand.IntN(200) {
			emit(agent.Text{Text: "."})
		}
		mu.Lock()
		busy[r.User] = false
		mu.Unlock()
		return agent.Reply{Responses: []string{"re: " + r.Message}}, nil
	}, turn.Options{})
	var all sync.WaitGroup
	for n := range people {
		p := profile.Person{Org: "acme", User: fmt.Sprint("user", n)}
		all.Go(func() {
			var want []string
			for m := range messages {
				text := fmt.Sprintf("%s message %d", p.User, m)
				want = append(want, text+" → re: "+text)
				turn := say(t, service, p, text)
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(2) == 0 {
					cancel() // the client disconnects
				}
				_, _ = turn.Wait(ctx)
				cancel()
			}
			answered(t, say(t, service, p, "last"))
			if got := history(t, service, p); !slices.Equal(got, append(want, "last → re: last")) {
				t.Errorf("%s: %q", p.User, got)
			}
		})
	}
	all.Wait()
}

func TestFollowersSeeEverything(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	service, _ := open(t, store(t), func(_ context.Context, _ agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		emit(agent.Text{Text: "a"})
		<-hold
		emit(agent.Text{Text: "b"})
		return agent.Reply{Responses: []string{"ab"}}, nil
	}, turn.Options{})
	turn := say(t, service, ann, "x")
	var early strings.Builder
	_, err := turn.Follow(t.Context(), func(e agent.Event) error {
		early.WriteString(e.(agent.Text).Text)
		return errors.New("seen enough")
	})
	if err == nil || early.String() != "a" {
		t.Errorf("%q, %v", early.String(), err)
	}
	close(hold)
	var late strings.Builder
	if _, err := turn.Follow(t.Context(), func(e agent.Event) error { late.WriteString(e.(agent.Text).Text); return nil }); err != nil || late.String() != "ab" {
		t.Errorf("%q, %v", late.String(), err)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	began, hold := make(chan struct{}, 3), make(chan struct{})
	service, _ := open(t, store(t), func(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		began <- struct{}{}
		<-hold
		return agent.Reply{Responses: []string{r.Message}}, nil
	}, turn.Options{Depth: 2})
	first := say(t, service, ann, "0")
	<-began // it is not queued any more
	if second := say(t, service, ann, "1"); first.Queued || !second.Queued {
		t.Errorf("queued: %v, %v", first.Queued, second.Queued)
	}
	last := say(t, service, ann, "2")
	if _, err := service.Send(t.Context(), conversation.Message{Person: ann, Text: "3"}); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a message beyond the limit: %v", err)
	}
	close(hold)
	answered(t, last)
	if got := len(history(t, service, ann)); got != 3 {
		t.Errorf("%d answers", got)
	}
}

// TestRestart checks that accepted messages are answered after a restart, in order, and
// that answered ones are not answered again.
func TestRestart(t *testing.T) {
	t.Parallel()
	url := store(t)
	began := make(chan struct{})
	service, leave := open(t, url, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		if r.Message == "first" {
			return echo(ctx, r, emit)
		}
		close(began)
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	}, turn.Options{})
	answered(t, say(t, service, ann, "first"))
	broken := say(t, service, ann, "second")
	say(t, service, ann, "third")
	<-began
	leave()
	if _, err := broken.Wait(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("the waiting client got %v", err)
	}
	var seen []string
	var mu sync.Mutex
	again, _ := open(t, url, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		mu.Lock()
		seen = append(seen, r.Message)
		mu.Unlock()
		return echo(ctx, r, emit)
	}, turn.Options{})
	if n := len(again.Resumed()); n != 2 {
		t.Errorf("%d turns run again, want 2", n)
	}
	answered(t, say(t, again, ann, "fourth"))
	if want := []string{"second", "third", "fourth"}; !slices.Equal(seen, want) {
		t.Errorf("answered %q", seen)
	}
	if got := history(t, again, ann); len(got) != 4 || got[1] != "second → re: second" {
		t.Errorf("history %q", got)
	}
}

// TestTurnIsGivenUpAfterItsAttempts checks that a turn that repeatedly ends the process is given up.
func TestTurnIsGivenUpAfterItsAttempts(t *testing.T) {
	t.Parallel()
	url := store(t)
	for range 2 {
		began := make(chan struct{})
		service, leave := open(t, url, func(ctx context.Context, _ agent.Request, _ func(agent.Event)) (agent.Reply, error) {
			close(began)
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}, turn.Options{Attempts: 2})
		if len(service.Resumed()) == 0 {
			say(t, service, ann, "message")
		}
		<-began
		leave()
	}
	service, _ := open(t, url, echo, turn.Options{Attempts: 2})
	answered(t, say(t, service, ann, "next"))
	if _, err := service.Resumed()[0].Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "interrupted 2 times") {
		t.Errorf("got %v", err)
	}
}

func TestTheSameKeyIsTheSameMessage(t *testing.T) {
	t.Parallel()
	url := store(t)
	var turns atomic.Int64
	service, leave := open(t, url, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		turns.Add(1)
		if r.Message == "bad" {
			return agent.Reply{}, fault.New(fault.Upstream, "no").WithHint("later")
		}
		return echo(ctx, r, emit)
	}, turn.Options{})
	keyed := func(service *turn.Service, text, key string) (agent.Reply, error) {
		turn, err := service.Send(t.Context(), conversation.Message{Person: ann, Text: text, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return turn.Wait(t.Context())
	}
	for range 2 {
		if reply, err := keyed(service, "good", "k1"); err != nil || reply.Text() != "re: good" || reply.Usage.Cost != 0.5 {
			t.Errorf("%+v, %v", reply, err)
		}
		if _, err := keyed(service, "bad", "k2"); fault.CodeOf(err) != fault.Upstream || fault.HintOf(err) != "later" {
			t.Errorf("got %v", err)
		}
	}
	leave()
	service, _ = open(t, url, echo, turn.Options{})
	if reply, err := keyed(service, "good", "k1"); err != nil || reply.Text() != "re: good" {
		t.Errorf("after a restart: %+v, %v", reply, err)
	}
	if turns.Load() != 3 {
		t.Errorf("%d turns, want 1 of the answered message and 2 of the one that failed", turns.Load())
	}
	if reply, err := keyed(service, "bad", "k2"); err != nil || reply.Text() != "re: bad" {
		t.Errorf("the failed message was not tried again: %+v, %v", reply, err)
	}
	_, err := service.Send(t.Context(), conversation.Message{Person: ann, Text: "another text", Key: "k1"})
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the same key with another text: %v", err)
	}
	if got, want := history(t, service, ann), []string{"good → re: good", "bad → re: bad"}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	var sent []int
	service, _ := open(t, store(t), func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		sent = append(sent, len(r.History))
		if len(r.History) > 0 && r.History[len(r.History)-1].Assistant == "" {
			t.Error("an exchange without answer")
		}
		return echo(ctx, r, emit)
	}, turn.Options{})
	if err := service.Profiles.Settings.Set(t.Context(), profile.Org("acme"), profile.Settings{HistoryStored: 4, HistorySent: 2}); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		answered(t, say(t, service, ann, fmt.Sprint(n)))
	}
	if got := fmt.Sprint(sent); got != "[0 1 2 2 2 2]" {
		t.Errorf("sent %s", got)
	}
	if got := fmt.Sprint(history(t, service, ann)); got != "[2 → re: 2 3 → re: 3 4 → re: 4 5 → re: 5]" {
		t.Errorf("stored %s", got)
	}
	page, total, err := service.Conversations.History(t.Context(), ann, 2, 1)
	if err != nil || total != 4 || len(page) != 2 || page[0].UserMessage != "3" {
		t.Errorf("%v %d %v", page, total, err)
	}
	if other := history(t, service, profile.Person{Org: "other", User: "ann"}); other != nil {
		t.Errorf("another organisation sees %q", other)
	}
	if gone, err := service.Conversations.Forget(t.Context(), ann); gone != 4 || err != nil {
		t.Errorf("%d, %v", gone, err)
	}
	if answered(t, say(t, service, ann, "again")); sent[6] != 0 {
		t.Error("deleted history was sent")
	}
}

// TestUnreachableServersAreKnown checks that a turn knows which servers could not be used at the
// last one, also if that had nothing to answer.
func TestUnreachableServersAreKnown(t *testing.T) {
	t.Parallel()
	var known []string
	service, _ := open(t, store(t), func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		known = append(known, strings.Join(r.Away(), "+"))
		reply, err := echo(ctx, r, emit)
		reply.Away = []string{"git", r.Message}
		return reply, err
	}, turn.Options{})
	for _, text := range []string{"1", "2", "#default", "3"} {
		answered(t, say(t, service, ann, text))
	}
	if got := fmt.Sprintf("%q", known); got != `["" "git+1" "git+2"]` {
		t.Errorf("known were %s", got)
	}
}

func TestRequestOfATurn(t *testing.T) {
	t.Parallel()
	var last agent.Request
	upstreams := &ownServers{own: []servers.Server{{ID: "fs", Enabled: true, Priority: 5}, {ID: "git", Enabled: true, Priority: 6},
		{ID: "wiki", Enabled: true, Priority: 7}, {ID: "wiki@acme", Enabled: true, Priority: 7}, {ID: "ledger@beta", Enabled: true, Priority: 8}}}
	service, _ := open(t, store(t), func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		last = r
		return echo(ctx, r, emit)
	}, turn.Options{Servers: servers.Options{Upstreams: upstreams}})
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	answered(t, say(t, service, ann, "hello"))
	if !last.First || last.Language != "en" || last.Servers != nil {
		t.Errorf("at first: %+v", last)
	}
	text := func(s string) *string { return &s }
	must(nil, service.Profiles.ChangePrompts(ctx, profile.Person{Org: "acme"}, map[agent.Slot]*string{"identity": text("org"), "closing": text("org")}))
	must(nil, service.Profiles.Modes.Set(ctx, "acme", profile.Mode{Name: "study-guide", Prompts: agent.Prompts{"identity": "mode"}}))
	must(nil, service.Profiles.ChangePrompts(ctx, ann, map[agent.Slot]*string{"closing": text("own")}))
	must(service.Servers.Replace(ctx, profile.Person{Org: "acme"}, []servers.Server{
		{ID: "web", URL: "https://web.example", AuthToken: "t", Enabled: true, Priority: 1, AllowedTools: []string{"get"}}, {ID: "git"},
	}))
	must(service.Servers.Put(ctx, ann, servers.Server{ID: "dead", URL: "https://dead.example", Enabled: true}))
	answered(t, say(t, service, ann, "#study @german what now?"))
	resolved := agent.Resolve(last.Prompts...)
	if last.First || last.Message != "what now?" || last.Language != "de" || resolved["identity"] != "mode" || resolved["closing"] != "own" {
		t.Errorf("then: %+v", last)
	}
	if got := fmt.Sprint(last.Servers); got != "[{wiki@acme wiki wiki []  } {fs fs fs []  } {web@acme web web [get]  } { dead dead [] no such host https://dead.example}]" {
		t.Errorf("servers %s", got)
	}
	answered(t, say(t, service, ann, "#default #nosuch thing"))
	if resolved := agent.Resolve(last.Prompts...); resolved["identity"] != "org" || last.Message != "#nosuch thing" || last.Language != "de" {
		t.Errorf("after the mode: %+v", last)
	}
	shown, err := service.Servers.List(ctx, profile.Person{Org: "acme"})
	if err != nil || shown[0].Hidden().AuthToken != servers.HiddenToken {
		t.Errorf("%+v, %v", shown, err)
	}
	must(service.Servers.Put(ctx, profile.Person{Org: "acme"}, shown[0].Hidden()))
	if kept, _ := service.Servers.List(ctx, profile.Person{Org: "acme"}); kept[0].AuthToken != "t" {
		t.Errorf("the token was lost: %+v", kept)
	}
	moved := shown[0].Hidden()
	moved.URL = "https://elsewhere.example"
	must(service.Servers.Put(ctx, profile.Person{Org: "acme"}, moved))
	if kept, _ := service.Servers.List(ctx, profile.Person{Org: "acme"}); kept[0].AuthToken != "" {
		t.Errorf("the token was kept for another URL: %+v", kept)
	}
}

// ownServers are upstreams in memory.
type ownServers struct {
	own   []servers.Server
	added map[string]servers.Server // by namespace
}

func (s *ownServers) All() []servers.Server { return s.own }

func (s *ownServers) Put(_ context.Context, org string, server servers.Server) (string, error) {
	space := server.ID + "@" + org
	if server.Space == "" {
		s.own = append(s.own, servers.Server{ID: space, Name: space, Enabled: true})
	}
	if s.added == nil {
		s.added = map[string]servers.Server{}
	}
	s.added[space] = server
	return space, nil
}

func (s *ownServers) Address(space string) (string, string) {
	return s.added[space].URL, s.added[space].AuthToken
}

func (s *ownServers) Remove(_ context.Context, _, space string) error {
	s.own = slices.DeleteFunc(s.own, func(own servers.Server) bool { return own.ID == space })
	delete(s.added, space)
	return nil
}

func (s *ownServers) CheckURL(_ context.Context, target *url.URL) error {
	if target.Hostname() == "10.0.0.1" {
		return fault.New(fault.Denied, "not there")
	}
	return nil
}

func (s *ownServers) Connect(_ context.Context, _ profile.Person, server servers.Server) (string, error) {
	if server.ID == "dead" {
		return "", errors.New("no such host")
	}
	return "private-" + server.ID, nil
}

func (s *ownServers) Await(context.Context, []string, func(int)) {}

func (s *ownServers) Discover(context.Context, string) ([]string, error) {
	return []string{"get", "put", "search"}, nil
}

// TestServersOfAnOrganisationAreUpstreams checks what becomes of upstreams when the servers of
// an organisation change, and that a server does not replace an upstream.
func TestServersOfAnOrganisationAreUpstreams(t *testing.T) {
	t.Parallel()
	upstreams := &ownServers{own: []servers.Server{{ID: "fs", Enabled: true}}}
	service, _ := open(t, store(t), echo, turn.Options{Servers: servers.Options{Upstreams: upstreams}})
	ctx, acme := t.Context(), profile.Person{Org: "acme"}
	wiki := servers.Server{ID: "wiki", URL: "https://wiki.example", AuthToken: "one", Enabled: true}
	put := func(p profile.Person, s servers.Server) error {
		_, err := service.Servers.Put(ctx, p, s)
		return err
	}
	if err := put(acme, wiki); err != nil || upstreams.added["wiki@acme"].AuthToken != "one" {
		t.Fatalf("%+v, %v", upstreams.added, err)
	}
	for name, problem := range map[string]struct {
		err  error
		code fault.Code
	}{
		"an upstream":                    {put(acme, servers.Server{ID: "fs", URL: "https://fs.example"}), fault.Conflict},
		"an upstream, for a person":      {put(ann, servers.Server{ID: "fs", URL: "https://fs.example"}), fault.Conflict},
		"one of the organisation":        {put(ann, wiki), fault.Conflict},
		"no address":                     {put(ann, servers.Server{ID: "nowhere"}), fault.InvalidParams},
		"no address, for organisations":  {put(acme, servers.Server{ID: "nowhere"}), fault.InvalidParams},
		"its address taken away":         {put(acme, servers.Server{ID: "wiki"}), fault.InvalidParams},
		"an address that is not allowed": {put(ann, servers.Server{ID: "other", URL: "http://10.0.0.1/mcp"}), fault.Denied},
	} {
		if fault.CodeOf(problem.err) != problem.code {
			t.Errorf("%s: %v", name, problem.err)
		}
	}
	if n, err := service.Servers.Discover(ctx, acme, servers.Server{ID: "wiki", AllowedTools: []string{"get", "gone"}}); n != 1 || err != nil {
		t.Errorf("%d tools, %v, want those that are allowed", n, err)
	}
	if _, dropped, err := service.Servers.Patch(ctx, acme, "wiki", []byte(`{"priority":3}`)); dropped || err != nil || upstreams.added["wiki@acme"].AuthToken != "one" {
		t.Errorf("another priority: %v, %v, %+v", dropped, err, upstreams.added)
	}
	if _, dropped, err := service.Servers.Patch(ctx, acme, "wiki", []byte(`{"url":"https://new.example"}`)); !dropped || err != nil ||
		upstreams.added["wiki@acme"].URL != "https://new.example" || upstreams.added["wiki@acme"].AuthToken != "" {
		t.Errorf("another url: %v, %v, %+v", dropped, err, upstreams.added)
	}
	if _, err := service.Servers.Replace(ctx, acme, []servers.Server{{ID: "fs"}}); err != nil || len(upstreams.added) != 0 || len(upstreams.own) != 1 {
		t.Errorf("replaced: %+v, %v", upstreams, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	service, _ := open(t, store(t), echo, turn.Options{})
	ctx, org := t.Context(), profile.Person{Org: "acme"}
	long := strings.Repeat("x", 9000)
	tests := map[string]error{
		"no user":             second(service.Send(ctx, conversation.Message{Person: profile.Person{Org: "acme"}, Text: "x"})),
		"a control character": second(service.Send(ctx, conversation.Message{Person: profile.Person{Org: "acme", User: "a\nb"}, Text: "x"})),
		"settings":            service.Profiles.Settings.Set(ctx, profile.Org("acme"), profile.Settings{HistoryStored: 3, HistorySent: 4}),
		"no such slot":        service.Profiles.ChangePrompts(ctx, org, map[agent.Slot]*string{"identy": nil}),
		"a slot too long":     service.Profiles.ChangePrompts(ctx, org, map[agent.Slot]*string{"identity": &long}),
		"a mode's name":       service.Profiles.Modes.Set(ctx, "acme", profile.Mode{Name: "No Good"}),
		"a server's id":       second(service.Servers.Put(ctx, org, servers.Server{ID: "a b"})),
		"a server's scheme":   second(service.Servers.Put(ctx, org, servers.Server{ID: "a", URL: "file:///etc/passwd"})),
		"a password":          second(service.Servers.Put(ctx, org, servers.Server{ID: "a", URL: "https://u:p@host"})),
		"a repeated id":       second(service.Servers.Replace(ctx, org, []servers.Server{{ID: "a"}, {ID: "a"}})),
		"a priority":          second(service.Servers.Put(ctx, org, servers.Server{ID: "a", Priority: 101})),
	}
	for name, err := range tests {
		if fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"mode": second(service.Profiles.Modes.Get(ctx, "acme", "x")), "remove mode": service.Profiles.Modes.Remove(ctx, "acme", "x"), "server": service.Servers.Remove(ctx, org, "x"),
	} {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
