package turn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// sharing is a service with conversations of Ann and Ben, who use keys of acme, and of others.
type sharing struct {
	*turn.Service
	t      *testing.T
	shares *share.Store
}

func openSharing(t *testing.T, a script, o turn.Options) sharing {
	t.Helper()
	url := store(t)
	database, err := db.Open(t.Context(), url, dbtest.Options(url))
	if err != nil {
		t.Fatal(err)
	}
	shares, err := share.Open(t.Context(), database, share.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Conversations.Shares = shares
	service, err := turn.Open(t.Context(), database, a, o)
	if err != nil {
		t.Fatal(err)
	}
	shares.Register(principal.Conversation, service.Conversations.SharedConversation)
	t.Cleanup(func() {
		service.Close()
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return sharing{service, t, shares}
}

// as is a context of a key with which somebody chats; an empty user is everybody.
func as(t *testing.T, org, user string) context.Context {
	t.Helper()
	return principal.With(t.Context(), principal.Principal{ID: "key:" + org + user, Org: org, User: user, Scopes: []principal.Scope{principal.Chat}})
}

var ben = profile.Person{Org: "acme", User: "ben"}

func (o sharing) say(who context.Context, m conversation.Message) (agent.Reply, error) {
	o.t.Helper()
	m.RequestID = "r"
	turn, err := o.Send(who, m)
	if err != nil {
		return agent.Reply{}, err
	}
	return turn.Wait(o.t.Context())
}

// mustSay sends a message of Ann.
func (o sharing) mustSay(id, text string, files ...llm.Media) {
	o.t.Helper()
	m := conversation.Message{Person: ann, Conversation: id, Text: text, Key: text, Asker: &principal.Principal{ID: "key:acmeann", Org: "acme", User: "ann"}}
	for _, file := range files {
		m.Attach(file)
	}
	if _, err := o.say(as(o.t, "acme", "ann"), m); err != nil {
		o.t.Fatal(err)
	}
}

// share shares a conversation of Ann's with everybody of acme.
func (o sharing) share(id string, may principal.Level) {
	o.t.Helper()
	if _, err := o.shares.Create(as(o.t, "acme", "ann"), principal.Conversation, id, share.Everybody, may); err != nil {
		o.t.Fatal(err)
	}
}

// read returns the messages that an id means to somebody, and their owner and level.
func (o sharing) read(who context.Context, p profile.Person, id string) (text string) {
	o.t.Helper()
	access, err := o.Conversations.Access(who, p, id)
	if err != nil {
		o.t.Fatal(err)
	}
	records, err := o.Conversations.Records(who, access.Person, access.ID, 100)
	if err != nil {
		o.t.Fatal(err)
	}
	text = strings.TrimSpace(access.Owner+" "+string(access.Shared)) + ":"
	for _, record := range records {
		text += " " + record.Message.Text
	}
	return text
}

// TestSharedConversationIsRead checks who reads a shared conversation, and until when.
func TestSharedConversationIsRead(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	o.mustSay("plans/a", "hello")
	o.mustSay("plans/a", "again")
	o.mustSay("", "secret")
	annsKey, bens := as(t, "acme", "ann"), as(t, "acme", "ben")
	const id = "acme/ann/plans/a"
	if got := o.read(bens, ben, id); got != ":" {
		t.Errorf("before it is shared: %q", got)
	}
	o.share("plans/a", principal.See)
	if got := o.read(bens, ben, id); got != "ann see: hello again" {
		t.Errorf("shared: %q", got)
	}
	for name, got := range map[string]string{
		"another conversation": o.read(bens, ben, "acme/ann/"), "of another organisation": o.read(as(t, "other", "ben"), profile.Person{Org: "other", User: "ben"}, id),
		"of no organisation": o.read(as(t, "", "ben"), profile.Person{Org: "default", User: "ben"}, id),
	} {
		if got != ":" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := o.read(annsKey, ann, id); got != ": hello again" {
		t.Errorf("the owner, by the name that shares have: %q", got)
	}
	list, err := o.Conversations.List(bens, ben)
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].Title != "hello" || list[0].Owner != "ann" || list[0].Shared != principal.See || list[0].Messages != 2 {
		t.Errorf("Ben's list: %+v, %v", list, err)
	}
	if list, err := o.Conversations.List(annsKey, ann); err != nil || len(list) != 2 || list[0].Owner+list[1].Owner != "" {
		t.Errorf("Ann's list: %+v, %v", list, err)
	}
	if list, err := o.Conversations.List(as(t, "", ""), ben); err != nil || len(list) != 0 {
		t.Errorf("Ben's list for a key of no organisation: %+v, %v", list, err)
	}
	if _, err := o.Conversations.ForgetConversation(annsKey, ann, "plans/a"); err != nil {
		t.Fatal(err)
	}
	o.mustSay("plans/a", "new")
	if got := o.read(bens, ben, id); got != ":" {
		t.Errorf("another conversation with the id of a deleted one: %q", got)
	}
	o.share("plans/a", principal.See)
	if _, err := o.Conversations.Forget(annsKey, ann); err != nil {
		t.Fatal(err)
	}
	if list, err := o.shares.OfCaller(annsKey); err != nil || len(list) > 0 {
		t.Errorf("shares of a deleted history: %+v, %v", list, err)
	}
}

// TestMessagesOfSharedConversations checks who reads one message.
func TestMessagesOfSharedConversations(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	o.mustSay("a", "hello")
	o.share("a", principal.See)
	for id, want := range map[string]bool{"a": true, "b": false} {
		if may, err := o.Conversations.MayRead(as(t, "acme", "ben"), conversation.Message{Person: ann, Conversation: id}); may != want || err != nil {
			t.Errorf("%s: %v, %v", id, may, err)
		}
	}
	if may, err := o.Conversations.MayRead(as(t, "other", "ben"), conversation.Message{Person: ann, Conversation: "a"}); may || err != nil {
		t.Errorf("in another organisation: %v, %v", may, err)
	}
}

// TestNobodyWritesInASharedConversation checks that a message to one is refused, and that
// nothing of it is stored.
func TestNobodyWritesInASharedConversation(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	o.mustSay("a", "hello")
	o.share("a", principal.Use)
	bens := as(t, "acme", "ben")
	_, err := o.say(bens, conversation.Message{Person: ben, Conversation: "acme/ann/a", Text: "ignore that"})
	if fault.CodeOf(err) != fault.Denied || !strings.Contains(fault.HintOf(err), "copy") {
		t.Errorf("written: %v", err)
	}
	if got := o.read(bens, ben, "acme/ann/a"); got != "ann use: hello" {
		t.Errorf("%q", got)
	}
	if _, err := o.shares.Create(as(t, "acme", "ann"), principal.Conversation, "a", share.Everybody, principal.Edit); fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("shared to edit it: %v", err)
	}
}

// TestCopyOfASharedConversation checks that the copy is its maker's own: it has the messages
// and files also after the original is deleted, and nothing of the owner's rights.
func TestCopyOfASharedConversation(t *testing.T) {
	t.Parallel()
	var copies []string
	var history []agent.Exchange
	o := openSharing(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		history = r.History
		reply, err := echo(ctx, r, emit)
		reply.Trace = "trace"
		return reply, err
	}, turn.Options{Conversations: conversation.Options{
		Stored: conversation.StoredMedia{Count: 3},
		OnCopy: func(_ context.Context, from profile.Person, id string, to profile.Person, _ string) error {
			copies = append(copies, from.User+"/"+id+" to "+to.User)
			return nil
		},
	}})
	o.mustSay("a", "hello", llm.Media{Name: "a.txt", MIME: "text/plain", Data: []byte("attached")})
	o.mustSay("a", "again", llm.Media{Name: "b.txt", MIME: "text/plain", Data: []byte("more")})
	o.share("a", principal.See)
	bens := as(t, "acme", "ben")
	if _, err := o.Conversations.Copy(bens, ben, "acme/ann/a"); fault.CodeOf(err) != fault.Denied || !strings.Contains(fault.HintOf(err), "ask ann") {
		t.Errorf("copied what may only be seen: %v", err)
	}
	if _, err := o.Conversations.Copy(as(t, "other", "eve"), profile.Person{Org: "other", User: "eve"}, "acme/ann/a"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("copied in another organisation: %v", err)
	}
	o.share("a", principal.Use)
	id, err := o.Conversations.Copy(bens, ben, "acme/ann/a")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(copies, ", ") != "ann/a to ben" {
		t.Errorf("labels of %v", copies)
	}
	if _, err := o.Conversations.Copy(bens, ben, "acme/ann/a"); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a second copy, with more files than Ben may have: %v", err)
	}
	if _, err := o.Conversations.Forget(as(t, "acme", "ann"), ann); err != nil {
		t.Fatal(err)
	}
	records, err := o.Conversations.Records(bens, ben, id, 100)
	if err != nil || len(records) != 2 {
		t.Fatalf("%+v, %v", records, err)
	}
	first := records[0]
	if first.Message.Text != "hello" || first.Message.Conversation != id || first.Message.Asker != nil || first.Reply.Text() != "re: hello" || first.Reply.Trace != "" || first.Reply.Usage != (llm.Usage{}) {
		t.Errorf("copied %+v", first)
	}
	if media, err := o.Conversations.Media(bens, first.ID, "in.1"); err != nil || string(media.Data) != "attached" {
		t.Errorf("its file: %q, %v", media.Data, err)
	}
	if _, err := o.say(bens, conversation.Message{Person: ben, Conversation: id, Text: "go on"}); err != nil || len(history) != 2 || history[1].User != "again\n[attached: b.txt]" {
		t.Errorf("it goes on after %+v: %v", history, err)
	}
}

// TestOwnConversationIsCopied checks copies of one's own, and that old ones are deleted for new ones.
func TestOwnConversationIsCopied(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	o.mustSay("a", "hello")
	who := as(t, "acme", "ann")
	if _, err := o.Conversations.Copy(who, ann, "b"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("copied nothing: %v", err)
	}
	var err error
	for copied := 0; err == nil; copied++ { // until the original is the one that was not continued for the longest time
		if copied > 200 {
			t.Fatal("old conversations are not deleted for new ones")
		}
		_, err = o.Conversations.Copy(who, ann, "a")
	}
	list, err := o.Conversations.List(who, ann)
	if err != nil || len(list) != 200 {
		t.Errorf("%d conversations, %v", len(list), err)
	}
	if got := o.read(who, ann, list[0].ID); got != ": hello" {
		t.Errorf("%q", got)
	}
}

// TestWhoSharesAConversation checks that administrators do not: they could read it then.
func TestWhoSharesAConversation(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	o.mustSay("a", "hello")
	signedIn := principal.Principal{ID: "person:boss/acme", Org: "acme", User: "boss", Scopes: []principal.Scope{principal.Chat, principal.Org}}
	for name, one := range map[string]struct {
		ctx  context.Context
		id   string
		want fault.Code
	}{
		"the owner":                           {as(t, "acme", "ann"), "a", ""},
		"the owner, by its whole name":        {as(t, "acme", "ann"), "acme/ann/a", ""},
		"a key that chats for everybody":      {as(t, "acme", ""), "acme/ann/a", ""},
		"a key of no organisation":            {as(t, "", "ann"), "acme/ann/a", ""},
		"a colleague":                         {as(t, "acme", "ben"), "acme/ann/a", fault.NotFound},
		"an administrator":                    {principal.With(t.Context(), signedIn), "acme/ann/a", fault.NotFound},
		"the same user elsewhere":             {as(t, "other", "ann"), "acme/ann/a", fault.NotFound},
		"a key that chats for others":         {as(t, "other", ""), "acme/ann/a", fault.NotFound},
		"a short id without a user":           {as(t, "acme", ""), "a", fault.NotFound},
		"a conversation that does not exist":  {as(t, "acme", "ann"), "b", fault.NotFound},
		"another's that does not exist":       {as(t, "acme", "ann"), "acme/ben/b", fault.NotFound},
		"a name that is none":                 {as(t, "acme", "ann"), "acme/%zz/b", fault.NotFound},
		"the same conversation of no company": {as(t, "acme", "ann"), "/ann/a", fault.NotFound},
	} {
		made, err := o.shares.Create(one.ctx, principal.Conversation, one.id, share.Everybody, principal.See)
		if one.want != "" && fault.CodeOf(err) != one.want || one.want == "" && (err != nil || made.Thing != "acme/ann/a" || made.Owner != "ann" || made.Title != "hello") {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
		if err != nil {
			continue
		}
		if list, err := o.shares.Of(one.ctx, principal.Conversation, one.id); err != nil || len(list) != 1 {
			t.Errorf("%s lists %+v, %v", name, list, err)
		}
		if _, err := o.shares.Remove(as(t, "acme", "ben"), made.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a colleague ends the share: %v", err)
		}
		if _, err := o.shares.Remove(one.ctx, made.ID); err != nil {
			t.Errorf("%s does not end the share: %v", name, err)
		}
	}
}

// TestConversationsWithoutAnOrganisation checks that they are not shared with an organisation
// that has the name under which they are stored, nor the other way round.
func TestConversationsWithoutAnOrganisation(t *testing.T) {
	t.Parallel()
	o := openSharing(t, echo, turn.Options{})
	mine := profile.Person{Org: profile.DefaultOrg, User: "ann"}
	yours := profile.Person{Org: profile.DefaultOrg, User: "ben"}
	if _, err := o.say(as(t, "", "ann"), conversation.Message{Person: mine, Conversation: "a", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	for _, org := range []string{"", profile.DefaultOrg} {
		made, err := o.shares.Create(as(t, org, "ann"), principal.Conversation, "a", share.Everybody, principal.See)
		if err != nil || made.Thing != org+"/ann/a" {
			t.Fatalf("%+v, %v", made, err)
		}
		for _, other := range []string{"", profile.DefaultOrg} {
			want := ":"
			if other == org {
				want = "ann see: hello"
			}
			if got := o.read(as(t, other, "ben"), yours, made.Thing); got != want {
				t.Errorf("shared in %q, read in %q: %q", org, other, got)
			}
		}
		if _, err := o.shares.Remove(as(t, org, "ann"), made.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// labels is a Flow that stores the labels of one context at a time.
type labels struct {
	stored map[string]string
	now    *string
}

func (l labels) Begin(ctx context.Context) context.Context {
	*l.now = ""
	return ctx
}

func (l labels) Recall(_ context.Context, name string) error {
	*l.now += l.stored[name]
	return nil
}

func (l labels) Remember(_ context.Context, name string) error {
	l.stored[name] += *l.now
	return nil
}

// TestCopyInheritsLabels checks that a copy counts as having read what the original has.
func TestCopyInheritsLabels(t *testing.T) {
	t.Parallel()
	flow := labels{map[string]string{"talk:acme/ann/a": "secret"}, new(string)}
	if err := turn.NewAssistant(flow).Inherit(t.Context(), ann, "a", ben, "b"); err != nil || flow.stored["talk:acme/ben/b"] != "secret" || len(flow.stored) != 2 {
		t.Errorf("%v, %v", flow.stored, err)
	}
}
