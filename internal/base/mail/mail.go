// Package mail sends short texts by SMTP. The connection is encrypted, unless the server is
// on this machine.
package mail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
)

// Sender sends mail through one server.
type Sender struct {
	Server   string // host and port; on 465 the connection is encrypted from the start, on others by STARTTLS
	From     string // an address, with a name if you like
	User     string // empty: the server wants no password
	Password secret.Text
	TLS      *tls.Config // nil: the default
	// Dial connects to the server; nil: like everybody.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Message is a text to one person.
type Message struct {
	To      string
	Subject string
	Text    string
	ID      string // the same for a message that is sent again; empty: any
	Date    time.Time
}

// Check returns why the sender cannot work.
func (s *Sender) Check() error {
	host, _, err := net.SplitHostPort(s.Server)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not a host and port, such as smtp.example:587", s.Server)
	}
	if _, err := mail.ParseAddress(s.From); err != nil {
		return fmt.Errorf("%q is not a mail address: %w", s.From, err)
	}
	if s.User != "" && s.Password.IsZero() {
		return fmt.Errorf("the user %s has no password", s.User)
	}
	return nil
}

// Send sends a message. When it returns nil, the server has accepted it.
func (s *Sender) Send(ctx context.Context, m Message) (err error) {
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	to, err := mail.ParseAddress(m.To)
	if err != nil {
		return fmt.Errorf("recipient: %w", err)
	}
	content, err := m.content(from, to)
	if err != nil {
		return err
	}
	client, stop, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.Server, err)
	}
	defer stop()
	if err := deliver(client, from.Address, to.Address, content); err != nil {
		return fmt.Errorf("send mail through %s: %w", s.Server, err)
	}
	_ = client.Quit() // the message is accepted already
	return nil
}

// connect opens an encrypted and authenticated connection, which ends with ctx.
func (s *Sender) connect(ctx context.Context) (client *smtp.Client, stop func(), err error) {
	host, port, err := net.SplitHostPort(s.Server)
	if err != nil {
		return nil, nil, err
	}
	config := &tls.Config{}
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	config.ServerName, config.MinVersion = host, tls.VersionTLS12
	dial := s.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	connection, err := dial(ctx, "tcp", s.Server)
	if err != nil {
		return nil, nil, err
	}
	ended := context.AfterFunc(ctx, func() { _ = connection.Close() })
	stop = func() {
		ended()
		_ = connection.Close() // it may be closed already
	}
	if port == "465" {
		connection = tls.Client(connection, config)
	}
	if client, err = smtp.NewClient(connection, host); err == nil {
		err = s.prepare(client, host, config)
	}
	if err != nil {
		stop()
		return nil, nil, errors.Join(context.Cause(ctx), err)
	}
	return client, stop, nil
}

// prepare encrypts the connection and logs in.
func (s *Sender) prepare(client *smtp.Client, host string, config *tls.Config) error {
	if _, encrypted := client.TLSConnectionState(); !encrypted {
		switch offered, _ := client.Extension("STARTTLS"); {
		case offered:
			if err := client.StartTLS(config); err != nil {
				return err
			}
		case !isLoopback(host):
			return errors.New("the server does not offer STARTTLS, and mail is not sent in plain text")
		}
	}
	if s.User == "" {
		return nil
	}
	return client.Auth(smtp.PlainAuth("", s.User, s.Password.Reveal(), host))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func deliver(client *smtp.Client, from, to string, content []byte) error {
	if err := client.Mail(from); err != nil {
		return err
	}
	if err := client.Rcpt(to); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// content returns the message with its headers. A header with a line break would begin
// another one.
func (m Message) content(from, to *mail.Address) ([]byte, error) {
	id := m.ID
	if id == "" {
		id = rand.Text()
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	headers := [][2]string{
		{"From", from.String()}, {"To", to.String()}, {"Subject", mime.QEncoding.Encode("utf-8", m.Subject)},
		{"Date", m.Date.Format(time.RFC1123Z)}, {"Message-ID", "<" + id + "@" + domain + ">"}, {"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	}
	var out strings.Builder
	for _, h := range headers {
		if strings.ContainsAny(h[1]+m.Subject+id, "\r\n\x00") {
			return nil, fmt.Errorf("%s has a line break", h[0])
		}
		out.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	out.WriteString("\r\n")
	w := quotedprintable.NewWriter(&out)
	if _, err := w.Write([]byte(m.Text)); err != nil {
		return nil, err
	}
	return []byte(out.String()), w.Close()
}
