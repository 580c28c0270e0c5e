package mail_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/mail"
	"github.com/luanette/luanette/internal/base/mail/mailtest"
	"github.com/luanette/luanette/internal/base/secret"
)

func sender(s *mailtest.Server) *mail.Sender {
	return &mail.Sender{Server: s.Address, From: "Hub <hub@example.com>", User: mailtest.User, Password: secret.New(mailtest.Password), TLS: s.Trust}
}

// TestSend checks that a message arrives as it was written, over an encrypted connection.
func TestSend(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t)
	text := "Grüße, an approval waits.\n.\nA line that begins with a dot, and a long one: " + strings.Repeat("x", 200) + "\n"
	err := sender(server).Send(t.Context(), mail.Message{To: "Ada <ada@example.com>", Subject: "Für dich: bank.pay", Text: text, ID: "a-1", Date: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := server.Next()
	if !ok || got.From != "hub@example.com" || got.To != "ada@example.com" || got.Subject != "Für dich: bank.pay" || got.Text != text {
		t.Errorf("%+v", got)
	}
	if got.Header.Get("Message-Id") != "<a-1@example.com>" || got.Header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("%v", got.Header)
	}
}

// TestRefused checks what is not sent.
func TestRefused(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t)
	for name, m := range map[string]mail.Message{
		"a header in the subject":   {To: "ada@example.com", Subject: "hello\r\nBcc: eve@example.com"},
		"a header in the recipient": {To: "ada@example.com\r\nBcc: eve@example.com", Subject: "hello"},
		"a header in the id":        {To: "ada@example.com", Subject: "hello", ID: "a\r\nBcc: eve@example.com"},
		"two recipients":            {To: "ada@example.com, eve@example.com", Subject: "hello"},
		"a command":                 {To: "<ada@example.com>\r\nRCPT TO:<eve@example.com>", Subject: "hello"},
		"no address":                {To: "ada", Subject: "hello"},
	} {
		if err := sender(server).Send(t.Context(), m); err == nil {
			t.Errorf("%s is sent", name)
		}
	}
	wrong := sender(server)
	wrong.Password = secret.New("guess")
	untrusted := sender(server)
	untrusted.TLS = nil
	for name, s := range map[string]*mail.Sender{"with a wrong password": wrong, "to a server that nobody vouches for": untrusted} {
		if err := s.Send(t.Context(), mail.Message{To: "ada@example.com", Subject: "hello"}); err == nil {
			t.Errorf("sent %s", name)
		}
	}
	if got, ok := server.Next(); ok {
		t.Errorf("the server got %+v", got)
	}
}

// TestPlain checks that mail is sent in plain text to this machine only.
func TestPlain(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t)
	server.Plain()
	if err := sender(server).Send(t.Context(), mail.Message{To: "ada@example.com", Subject: "hello"}); err != nil {
		t.Errorf("to this machine: %v", err)
	}
	other := sender(server)
	other.Server = "smtp.example:587"
	other.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Address)
	}
	if err := other.Send(t.Context(), mail.Message{To: "ada@example.com", Subject: "hello"}); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("in plain text to another machine: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, s := range []mail.Sender{
		{Server: "smtp.example", From: "hub@example.com"}, {Server: "smtp.example:587", From: "hub"}, {Server: "smtp.example:587", From: "hub@example.com\r\nX: y"}, {Server: "smtp.example:587", From: "hub@example.com", User: "hub"},
	} {
		if s.Check() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if err := (&mail.Sender{Server: "smtp.example:587", From: "Hub <hub@example.com>"}).Check(); err != nil {
		t.Error(err)
	}
}
