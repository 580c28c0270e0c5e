package share_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// company has people of two organisations, and one job of Ann in acme.
type company struct {
	*share.Store
	t      *testing.T
	people *people.Store
	bus    *event.Bus
	clock  *clock.Virtual
	jobs   map[string]principal.Thing
	// Ann and Ben are in acme, Ann is in the other one, too, and Cid only there.
	ann, annElsewhere, ben, eva, cid, admin principal.Principal
}

func open(t *testing.T, store *db.DB) *company {
	t.Helper()
	c := &company{t: t, bus: event.New(event.BusOptions{}), clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), jobs: map[string]principal.Thing{}}
	var err error
	if c.people, err = people.Open(t.Context(), store, people.Options{Key: func() (secret.Text, error) { return secret.New("a key for this test only"), nil }}); err != nil {
		t.Fatal(err)
	}
	if c.Store, err = share.Open(t.Context(), store, share.Options{People: c.people, Events: c.bus, Clock: c.clock}); err != nil {
		t.Fatal(err)
	}
	ann := c.signIn("Ann", map[string][]string{"acme": {"author"}, "other": {"author"}})
	ben := c.signIn("Ben", map[string][]string{"acme": {"author"}})
	eva := c.signIn("Eva", map[string][]string{"acme": {"user"}})
	c.ann, c.annElsewhere, c.ben, c.eva = c.as(ann, "acme"), c.as(ann, "other"), c.as(ben, "acme"), c.as(eva, "acme")
	c.cid = c.as(c.signIn("Cid", map[string][]string{"other": {"admin"}}), "other")
	c.admin = principal.Principal{ID: "key:boss", Name: "boss", Org: "acme", Scopes: []principal.Scope{principal.Org, principal.MCP}}
	c.jobs["job1"] = principal.Thing{ID: "job1", Owner: c.ann.Owner(), Title: "report"}
	c.Register(principal.Job, func(_ context.Context, id string) (principal.Thing, error) {
		if job, ok := c.jobs[id]; ok {
			return job, nil
		}
		return principal.Thing{}, fault.New(fault.NotFound, "no job %s", id)
	})
	return c
}

func (c *company) signIn(name string, roles map[string][]string) (person string) {
	c.t.Helper()
	p, err := c.people.SignIn(c.t.Context(), people.Arrival{Identity: people.Identity{Issuer: "https://login.example", Subject: name}, Name: name, Roles: roles, Source: "corp"})
	if err != nil {
		c.t.Fatal(err)
	}
	return p.ID
}

func (c *company) as(person, org string) principal.Principal {
	c.t.Helper()
	p, err := c.people.Principal(c.t.Context(), person, org)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func to(p principal.Principal) string { return "person:" + p.User }

// give shares Ann's job as Ann.
func (c *company) give(to string, may principal.Level) share.Share {
	c.t.Helper()
	made, err := c.Create(principal.With(c.t.Context(), c.ann), principal.Job, "job1", to, may)
	if err != nil {
		c.t.Fatalf("share with %s: %v", to, err)
	}
	return made
}

// levels checks what several may do with Ann's job. IDs must agree.
func (c *company) levels(when string, want map[*principal.Principal]principal.Level) {
	c.t.Helper()
	for _, p := range []*principal.Principal{&c.ben, &c.eva, &c.cid, &c.annElsewhere, &c.admin} {
		level, err := c.Level(c.t.Context(), *p, principal.Job, "job1")
		if err != nil || level != want[p] {
			c.t.Errorf("%s: %s may %q (%v), want %q", when, p.ID, level, err, want[p])
		}
		ids, err := c.IDs(c.t.Context(), *p, principal.Job)
		if err != nil || slices.Contains(ids, "job1") != (want[p] != principal.Nothing) {
			c.t.Errorf("%s: shared with %s: %v, %v", when, p.ID, ids, err)
		}
	}
}

type levels = map[*principal.Principal]principal.Level

func TestSharesReachTheirRecipientsOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		c := open(t, store)
		c.levels("before", nil)
		one := c.give(to(c.ben), principal.See)
		if one.ToName != "Ben" || one.Owner != "Ann" || one.By != "Ann" || one.Title != "report" || one.May != principal.See {
			t.Errorf("the share is %+v", one)
		}
		c.levels("with a person", levels{&c.ben: principal.See})
		if again := c.give(to(c.ben)+"/acme", principal.Edit); again.ID != one.ID {
			t.Errorf("changed to another share: %+v", again)
		}
		c.levels("changed", levels{&c.ben: principal.Edit})
		if _, err := c.Remove(principal.With(t.Context(), c.ann), one.ID); err != nil {
			t.Fatal(err)
		}
		c.levels("removed", nil)
		c.give("role:user", principal.Edit)
		c.levels("with a role", levels{&c.eva: principal.Edit})
		c.give("org", principal.See)
		c.levels("with all", levels{&c.eva: principal.Edit, &c.ben: principal.See, &c.admin: principal.See})
		if ids, err := c.IDs(t.Context(), c.ann, principal.Job); err != nil || len(ids) > 0 {
			t.Errorf("the owner gets their own: %v, %v", ids, err)
		}
	})
}

func TestWhoActsForSomebody(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	c.give(to(c.ben), principal.Edit)
	c.give("org", principal.See)
	key := principal.Principal{ID: c.ben.ID, Org: "acme", User: c.ben.User}.ByKey("laptop")
	chat, chatsForOther, program := c.ben, c.ben, principal.Principal{ID: "key:web", Org: "acme", Person: "acme/" + c.ben.User}
	chat.Person, chatsForOther.Person = "acme/"+c.ben.User, "acme/ann"
	for name, tt := range map[string]struct {
		who  principal.Principal
		want principal.Level
	}{
		"a key of the person": {key, principal.Edit}, "the person in a chat": {chat, principal.Edit}, "a chat for somebody else": {chatsForOther, principal.Nothing},
		"a program that chats": {program, principal.Nothing}, "nobody": {principal.Anonymous(), principal.Nothing},
		"a key of no organisation": {principal.Principal{ID: "key:all"}, principal.Nothing},
	} {
		if level, err := c.Level(t.Context(), tt.who, principal.Job, "job1"); err != nil || level != tt.want {
			t.Errorf("%s: %q, %v", name, level, err)
		}
	}
}

func TestSharesEndWithTheirRecipient(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	c.give(to(c.ben), principal.Edit)
	c.give(to(c.eva), principal.Edit)
	if err := c.people.Block(t.Context(), c.ben.User); err != nil {
		t.Fatal(err)
	}
	if err := c.people.Leave(t.Context(), c.eva.User, "acme"); err != nil {
		t.Fatal(err)
	}
	c.levels("blocked and left", nil)
}

func TestWhoMayShare(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	client := c.ann
	client.Grant = "g1"
	viewer := c.ann
	viewer.Scopes = []principal.Scope{principal.Read}
	c.give(to(c.eva), principal.Edit)
	for name, tt := range map[string]struct {
		who  principal.Principal
		code fault.Code
	}{
		"the owner": {c.ann, ""}, "an administrator": {c.admin, ""}, "the owner of the machine": {principal.Local(), ""},
		"a colleague": {c.ben, fault.NotFound}, "a recipient": {c.eva, fault.Denied}, "another administrator": {c.cid, fault.NotFound},
		"the owner elsewhere": {c.annElsewhere, fault.NotFound}, "a client": {client, fault.Denied}, "without the scope": {viewer, fault.Denied},
	} {
		ctx := principal.With(t.Context(), tt.who)
		if _, err := c.Create(ctx, principal.Job, "job1", to(c.eva), principal.See); codeOf(err) != tt.code {
			t.Errorf("%s shares: %v", name, err)
		}
		if _, err := c.Of(ctx, principal.Job, "job1"); codeOf(err) != tt.code {
			t.Errorf("%s lists: %v", name, err)
		}
	}
	one := c.give(to(c.ben), principal.See)
	for name, who := range map[string]principal.Principal{"the recipient": c.ben, "another": c.eva, "another administrator": c.cid, "a client": client} {
		if _, err := c.Remove(principal.With(t.Context(), who), one.ID); err == nil {
			t.Errorf("%s removes it", name)
		}
	}
	if _, err := c.Remove(principal.With(t.Context(), c.admin), one.ID); err != nil {
		t.Errorf("an administrator: %v", err)
	}
}

// codeOf returns the code of an error; "" if there is none.
func codeOf(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.CodeOf(err)
}

func TestRefusedShares(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	ctx := principal.With(t.Context(), c.ann)
	for name, tt := range map[string]struct {
		kind principal.Kind
		to   string
		may  principal.Level
		code fault.Code
	}{
		"somebody else's colleague": {principal.Job, to(c.cid), principal.See, fault.NotFound},
		"nobody":                    {principal.Job, "person:none", principal.See, fault.NotFound},
		"another organisation":      {principal.Job, to(c.ben) + "/other", principal.See, fault.InvalidParams},
		"no role":                   {principal.Job, "role:none", principal.See, fault.NotFound},
		"no recipient":              {principal.Job, "", principal.See, fault.InvalidParams},
		"a key":                     {principal.Job, "key:web", principal.See, fault.InvalidParams},
		"no level":                  {principal.Job, "org", principal.Nothing, fault.InvalidParams},
		"an unknown level":          {principal.Job, "org", "own", fault.InvalidParams},
		"an unknown kind":           {"key", "org", principal.See, fault.InvalidParams},
		"a kind without the level":  {principal.Job, "org", principal.Use, fault.InvalidParams},
		"a kind that nobody finds":  {principal.Conversation, "org", principal.See, fault.InvalidParams},
	} {
		if _, err := c.Create(ctx, tt.kind, "job1", tt.to, tt.may); fault.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharesEndWithTheThing checks that shares of deleted things, and of things that now
// belong to somebody else, are removed.
func TestSharesEndWithTheThing(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	ctx := t.Context()
	c.jobs["job2"] = principal.Thing{ID: "job2", Owner: c.ann.Owner()}
	c.give("org", principal.See)
	c.clock.Advance(time.Minute)
	if _, err := c.Create(principal.With(ctx, c.ann), principal.Job, "job2", "org", principal.See); err != nil {
		t.Fatal(err)
	}
	if list, err := c.WithCaller(principal.With(ctx, c.ben)); err != nil || len(list) != 2 || list[0].Title != "report" {
		t.Errorf("with Ben: %+v, %v", list, err)
	}
	delete(c.jobs, "job1")
	c.jobs["job2"] = principal.Thing{ID: "job2", Owner: c.eva.Owner()}
	if err := c.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	c.levels("deleted", nil)
	if list, err := c.OfCaller(principal.With(ctx, c.ann)); err != nil || len(list) > 0 {
		t.Errorf("of Ann: %+v, %v", list, err)
	}
}

func TestSweepRunsByItself(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	c.give("org", principal.See)
	delete(c.jobs, "job1")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	defer running.Wait()
	defer stop()
	for range 2 {
		if err := c.clock.AwaitSleepers(ctx, 1); err != nil {
			t.Fatal(err)
		}
		c.clock.Advance(2 * time.Hour)
	}
	if err := c.clock.AwaitSleepers(ctx, 1); err != nil {
		t.Fatal(err)
	}
	c.levels("swept", nil)
}

func TestEventsReachOwnerAndRecipient(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	seen := map[string]*event.Subscription{}
	for name, who := range map[string]principal.Principal{"ann": c.ann, "ben": c.ben, "eva": c.eva} {
		seen[name] = c.bus.SubscribeAs(who, event.Options{})
		defer seen[name].Close()
	}
	one := c.give(to(c.ben), principal.See)
	if _, err := c.Remove(principal.With(t.Context(), c.ann), one.ID); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ann": "share.created share.removed", "ben": "share.created share.removed", "eva": ""} {
		var types []string
		for e, ok := seen[name].Poll(); ok; e, ok = seen[name].Poll() {
			types = append(types, e.Type)
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s gets %q", name, got)
		}
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	c := open(t, dbtest.Open(t, dbtest.SQLite(t)))
	var audited []string
	mux := principal.Unguarded(share.API{Shares: c.Store, Audit: func(_ context.Context, action, subject string, _ []byte) {
		audited = append(audited, action+" "+subject)
	}}.Routes())
	ask := func(who principal.Principal, method, path, body string, status int, parts ...string) string {
		t.Helper()
		r := httptest.NewRequestWithContext(principal.With(t.Context(), who), method, "http://127.0.0.1"+path, strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		for _, part := range parts {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s %s has no %s: %s", method, path, part, w.Body)
			}
		}
		if w.Code != status {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	body := `{"kind":"job","id":"job1","to":"` + to(c.ben) + `","may":"see"}`
	made := ask(c.ann, http.MethodPost, "/api/v1/shares", body, http.StatusCreated, `"thing":"job1"`, `"to_name":"Ben"`, `"may":"see"`, `"by":"Ann"`)
	ask(c.ann, http.MethodGet, "/api/v1/shares?kind=job&id=job1", "", http.StatusOK, `"to_name":"Ben"`)
	ask(c.ann, http.MethodGet, "/api/v1/shares", "", http.StatusOK, `"to_name":"Ben"`)
	ask(c.ben, http.MethodGet, "/api/v1/shares?with=me", "", http.StatusOK, `"owner":"Ann"`, `"title":"report"`)
	ask(c.eva, http.MethodGet, "/api/v1/shares?with=me", "", http.StatusOK, `"shares":[]`)
	ask(c.ben, http.MethodGet, "/api/v1/shares?with=you", "", http.StatusBadRequest)
	ask(c.ben, http.MethodGet, "/api/v1/shares?kind=job&id=job1", "", http.StatusForbidden)
	ask(principal.Anonymous(), http.MethodGet, "/api/v1/shares?with=me", "", http.StatusForbidden)
	people := ask(c.ann, http.MethodGet, "/api/v1/people/colleagues", "", http.StatusOK, `"id":"`+to(c.ben)+`"`, `"name":"Eva"`, `"author"`)
	if strings.Contains(people, "Cid") {
		t.Errorf("people of another organisation: %s", people)
	}
	ask(principal.Principal{ID: "key:web", Org: "acme"}, http.MethodGet, "/api/v1/people/colleagues", "", http.StatusForbidden)
	_, rest, _ := strings.Cut(made, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	ask(c.ben, http.MethodDelete, "/api/v1/shares/"+id, "", http.StatusNotFound)
	ask(c.ann, http.MethodDelete, "/api/v1/shares/"+id, "", http.StatusOK)
	if got := strings.Join(audited, ", "); got != "share.create job job1, share.remove job job1" {
		t.Errorf("audited: %s", got)
	}
}
