package approval_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/mail"
	"github.com/luanette/luanette/internal/base/mail/mailtest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
)

// mailing opens a store that sends mail, and runs it until cancel is called.
func (of *staff) mailing(server *mailtest.Server) (o *approval.Store, cancel context.CancelFunc, stopped <-chan struct{}) {
	of.t.Helper()
	o, err := approval.Open(of.t.Context(), of.db, approval.Options{
		Policy: of.policy, Expire: 24 * time.Hour, Keep: 24 * time.Hour, Events: of.bus, Clock: of.time,
		People: of.people, Alone: func(context.Context) bool { return false },
		Mail: &approval.Mail{Page: "https://hub.example/#/approvals", Sender: &mail.Sender{
			Server: server.Address, From: "hub@example.com", User: mailtest.User, Password: secret.New(mailtest.Password), TLS: server.Trust,
		}},
	})
	if err != nil {
		of.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(of.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Watch(ctx, nil)
	}()
	of.t.Cleanup(func() { cancel(); <-done })
	return o, cancel, done
}

// tick lets the store run its checks once more.
func (of *staff) tick(by time.Duration) {
	of.t.Helper()
	of.looked(of.t, 1)
	of.time.Advance(by)
	of.looked(of.t, 1)
}

// received waits for so many mails that are due, until it is stored that they were sent, and
// returns them by recipient. Meanwhile no time passes: it would be taken for a crash of
// whoever sends them.
func (of *staff) received(server *mailtest.Server, count int) map[string]mailtest.Mail {
	of.t.Helper()
	of.tick(3 * time.Second)
	all := map[string]mailtest.Mail{}
	clocktest.Await(of.t, func() bool {
		for m, ok := server.Next(); ok; m, ok = server.Next() {
			if _, twice := all[m.To]; twice {
				of.t.Errorf("%s got a second mail: %s", m.To, m.Subject)
			}
			all[m.To] = m
		}
		return len(all) >= count && of.unsent() == 0
	}, func() string { return fmt.Sprintf("%d mails are on their way, and arrived are %v", of.unsent(), all) })
	return all
}

// unsent returns how many mails are on their way.
func (of *staff) unsent() (count int) {
	of.t.Helper()
	err := of.db.QueryRow(of.t.Context(), `SELECT count(*) FROM approval_mails WHERE tries > 0 AND next > 0`).Scan(&count)
	if err != nil {
		of.t.Fatal(err)
	}
	return count
}

// TestMailToTheRole checks who is told of a request, and what the mail says.
func TestMailToTheRole(t *testing.T) {
	t.Parallel()
	of, server := newStaff(t), mailtest.New(t)
	o, _, _ := of.mailing(server)
	of.store = o
	of.ask(of.as("ann"), "run:1", "secret-account")
	got := of.received(server, 1)
	m, ok := got["bob@example.com"] // ann asked, cleo's address is not verified, dan has another role
	if !ok || len(got) != 1 || m.Subject != "Approval needed: bank.pay" {
		t.Fatalf("%v", got)
	}
	for _, want := range []string{"bank.pay, asked by ann", "2 of the role finance", "https://hub.example/#/approvals"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("%q is not in %s", want, m.Text)
		}
	}
	if strings.Contains(m.Text, "secret-account") {
		t.Errorf("the mail has arguments: %s", m.Text)
	}
}

// TestMailToDelegates checks that those who decide in somebody's place are told, too, except
// of what that person asked for, and not after the delegation has ended.
func TestMailToDelegates(t *testing.T) {
	t.Parallel()
	of, server := newStaff(t), mailtest.New(t)
	o, _, _ := of.mailing(server)
	of.store = o
	of.signIn("eve", "", "user")
	if _, err := o.Delegate(of.as("ann"), "finance", "eve", of.time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	recipients := func(count int) string {
		t.Helper()
		return strings.Join(slices.Sorted(maps.Keys(of.received(server, count))), " ")
	}
	of.ask(of.as("ann"), "run:1", "x")
	if got := recipients(1); got != "bob@example.com" {
		t.Errorf("of ann's request: %s", got)
	}
	of.tick(6 * time.Minute)
	of.ask(of.as("dan"), "run:2", "x")
	if got := recipients(3); got != "ann@example.com bob@example.com eve@example.com" {
		t.Errorf("of dan's request: %s", got)
	}
	of.tick(2 * time.Hour)
	of.ask(of.as("dan"), "run:3", "x")
	if got := recipients(2); got != "ann@example.com bob@example.com" {
		t.Errorf("after the delegation: %s", got)
	}
}

// TestMailsAreMerged checks that somebody gets one mail for the requests of some minutes, and
// none for those that were decided meanwhile.
func TestMailsAreMerged(t *testing.T) {
	t.Parallel()
	of, server := newStaff(t), mailtest.New(t)
	o, _, _ := of.mailing(server)
	of.store = o
	of.ask(of.as("dan"), "run:1", "x")
	of.received(server, 2)
	decided := of.ask(of.as("dan"), "run:2", "x")
	of.ask(of.as("dan"), "run:3\r\nBcc: eve@example.com", "x")
	of.ask(of.as("dan"), "run:4", "x")
	for range 10 {
		of.tick(3 * time.Second)
	}
	if m, ok := server.Next(); ok {
		t.Fatalf("a second mail within minutes: %+v", m)
	}
	if _, err := o.Decide(of.as("ann"), "", decided, host.Answer{By: "ann"}); err != nil { // one who denies is enough
		t.Fatal(err)
	}
	of.tick(6 * time.Minute)
	for to, m := range of.received(server, 2) {
		if m.Subject != "2 approvals needed" || strings.Contains(m.Text, decided) {
			t.Errorf("%s got %s: %s", to, m.Subject, m.Text)
		}
	}
}

// TestMailIsTriedAgain checks that a mail that was refused is sent by the process after the
// next start.
func TestMailIsTriedAgain(t *testing.T) {
	t.Parallel()
	of, server := newStaff(t), mailtest.New(t)
	server.Refuse(2)
	o, cancel, stopped := of.mailing(server)
	of.store = o
	of.ask(of.as("dan"), "run:1", "x")
	of.tick(3 * time.Second)
	clocktest.Await(t, func() bool { return server.Refusals() <= 0 }, func() string { return "the server was not asked" })
	cancel()
	<-stopped
	of.mailing(server)
	of.tick(2 * time.Minute) // when the stopped process would have tried again, or has not
	if got := of.received(server, 2); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestMailAcceptedWhileStopping checks that a mail is not sent again if the process is
// stopped after the mail server accepted it, before the answer.
func TestMailAcceptedWhileStopping(t *testing.T) {
	t.Parallel()
	of, server := newStaff(t), mailtest.New(t)
	o, cancel, stopped := of.mailing(server)
	of.store = o
	server.OnAccept(cancel)
	of.ask(of.as("dan"), "run:1", "x")
	of.tick(3 * time.Second)
	<-stopped
	of.mailing(server)
	of.tick(2 * time.Minute) // when the stopped process would have given up
	if got := of.received(server, 2); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
