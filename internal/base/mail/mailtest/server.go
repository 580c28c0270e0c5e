// Package mailtest is a mail server for tests. It speaks SMTP with STARTTLS and AUTH PLAIN,
// and keeps what it accepts.
package mailtest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// The account of the server.
const (
	User     = "hub"
	Password = "mail-password"
)

// Mail is a message that the server accepted.
type Mail struct {
	From, To string // of the envelope
	Header   mail.Header
	Subject  string // decoded
	Text     string // decoded
}

// Server is a mail server. It ends with the test.
type Server struct {
	Address string
	Trust   *tls.Config // of clients that trust it

	certificate tls.Certificate
	received    chan Mail

	mu       sync.Mutex
	plain    bool
	refusals int
	accepted func()
}

// New starts a server.
func New(t testing.TB) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: listener.Addr().String(), received: make(chan Mail, 100)}
	s.certify(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			stop := make(chan struct{})
			all.Go(func() { // a client that stays connected does not hold up the test
				select {
				case <-t.Context().Done():
				case <-stop:
				}
				_ = c.Close()
			})
			all.Go(func() {
				defer close(stop)
				(&session{server: s, conn: c}).serve()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return s
}

// certify makes the server's certificate.
func (s *Server) certify(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	s.certificate = tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
	pool := x509.NewCertPool()
	pool.AddCert(own)
	s.Trust = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Plain makes the server offer no encryption.
func (s *Server) Plain() { s.mu.Lock(); defer s.mu.Unlock(); s.plain = true }

// Refuse makes the server refuse the next messages.
func (s *Server) Refuse(count int) { s.mu.Lock(); defer s.mu.Unlock(); s.refusals = count }

// Refusals returns how many messages it will still refuse.
func (s *Server) Refusals() int { s.mu.Lock(); defer s.mu.Unlock(); return s.refusals }

// OnAccept has f called when a message was accepted, before its sender is told.
func (s *Server) OnAccept(f func()) { s.mu.Lock(); defer s.mu.Unlock(); s.accepted = f }

// Next returns the next message that was accepted, if there is one.
func (s *Server) Next() (Mail, bool) {
	select {
	case m := <-s.received:
		return m, true
	default:
		return Mail{}, false
	}
}

func (s *Server) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals--
	return s.refusals >= 0
}

func (s *Server) onAccept() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepted == nil {
		return func() {}
	}
	return s.accepted
}

func (s *Server) isPlain() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.plain }

// session is one connection.
type session struct {
	server    *Server
	conn      net.Conn
	text      *textproto.Conn
	encrypted bool
	loggedIn  bool
	from, to  string
}

func (s *session) serve() {
	s.text = textproto.NewConn(s.conn)
	s.say("220 mailtest ESMTP")
	for {
		line, err := s.text.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		if strings.EqualFold(verb, "QUIT") {
			s.say("221 bye")
			return
		}
		if !s.command(strings.ToUpper(verb), rest) {
			return
		}
	}
}

func (s *session) say(format string, args ...any) { _ = s.text.PrintfLine(format, args...) } // the client may be gone

// command does one command, and reports whether the connection goes on.
func (s *session) command(verb, rest string) bool {
	switch verb {
	case "EHLO":
		s.say("250-mailtest")
		if !s.encrypted && !s.server.isPlain() {
			s.say("250-STARTTLS")
		}
		s.say("250 AUTH PLAIN")
	case "STARTTLS":
		s.say("220 go ahead")
		secured := tls.Server(s.conn, &tls.Config{Certificates: []tls.Certificate{s.server.certificate}, MinVersion: tls.VersionTLS12})
		if secured.Handshake() != nil {
			return false
		}
		s.conn, s.text, s.encrypted = secured, textproto.NewConn(secured), true
	case "AUTH":
		if rest != "PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+User+"\x00"+Password)) {
			s.say("535 wrong password")
			return true
		}
		s.loggedIn = true
		s.say("235 welcome")
	case "MAIL", "RCPT":
		s.envelope(verb, rest)
	case "DATA":
		s.data()
	default:
		s.say("502 unknown command")
	}
	return true
}

// envelope takes the sender or the recipient.
func (s *session) envelope(verb, rest string) {
	_, address, _ := strings.Cut(rest, "<")
	address, _, _ = strings.Cut(address, ">")
	switch {
	case !s.loggedIn:
		s.say("530 log in first")
		return
	case verb == "MAIL":
		s.from = address
	default:
		s.to = address
	}
	s.say("250 ok")
}

// data takes the message.
func (s *session) data() {
	s.say("354 go on")
	message, err := mail.ReadMessage(bufio.NewReader(s.text.DotReader()))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(quotedprintable.NewReader(message.Body))
	}
	switch {
	case err != nil:
		s.say("554 %s", strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
		return
	case s.server.refuses():
		s.say("451 try again later")
		return
	}
	subject, _ := (&mime.WordDecoder{}).DecodeHeader(message.Header.Get("Subject")) // tests see what is wrong
	s.server.received <- Mail{s.from, s.to, message.Header, subject, string(body)}
	s.server.onAccept()()
	s.say("250 accepted")
}
