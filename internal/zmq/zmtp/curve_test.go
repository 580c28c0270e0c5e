package zmtp

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

// side says whether our socket listens.
type side bool

const (
	listens side = true
	dials   side = false
)

// mechanism is the security of a connection to libzmq.
type mechanism struct{ server, client Key } // secret keys; zero: none

// eachMechanism runs a test without security and with CURVE.
func eachMechanism(t *testing.T, test func(*testing.T, mechanism)) {
	t.Run("null", func(t *testing.T) { t.Parallel(); test(t, mechanism{}) })
	t.Run("curve", func(t *testing.T) { t.Parallel(); test(t, newMechanism()) })
}

func newMechanism() mechanism { return mechanism{NewSecretKey(), NewSecretKey()} }

// ours is the configuration of our socket.
func (m mechanism) ours(s side) *Curve {
	switch {
	case m == mechanism{}:
		return nil
	case s == listens:
		return &Curve{Secret: m.server, Clients: []Key{NewSecretKey().Public(), m.client.Public()}}
	}
	return &Curve{Secret: m.client, Server: m.server.Public()}
}

// theirs is the environment of peer.py when ours is on that side.
func (m mechanism) theirs(s side) []string {
	switch {
	case m == mechanism{}:
		return nil
	case s == listens:
		return []string{"PEER_SECRET=" + m.client.Text(), "PEER_SERVER=" + m.server.Public().Text()}
	}
	return []string{"PEER_SECRET=" + m.server.Text()}
}

// The key of the specification of Z85, and libzmq's own conversion and public keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	const secret, public = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6", "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
	key, err := ParseKey(secret + "\n")
	if err != nil || key.Text() != secret || key.Public().Text() != public {
		t.Errorf("key %q with public key %q, %v", key.Text(), key.Public().Text(), err)
	}
	for _, bad := range []string{"", "short", strings.Repeat("~", 40), strings.Repeat("#", 40), secret + "0"} {
		if _, err := ParseKey(bad); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := hasZMQ(); err != nil {
		t.Skip(err)
	}
	for range 3 {
		key := NewSecretKey()
		out, err := exec.Command(python, "-c", "import sys, zmq; print(zmq.curve_public(sys.argv[1].encode()).decode())", key.Text()).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != key.Public().Text() {
			t.Errorf("libzmq derives %q, we %q: %v", got, key.Public().Text(), err)
		}
	}
}

// Heartbeats are encrypted as well: a connection survives longer than their timeout.
func TestLibzmqCurveHeartbeats(t *testing.T) {
	t.Parallel()
	m := newMechanism()
	var lost []string
	for range 3 { // a slow machine can delay a heartbeat for too long
		peer := startWith(t, m.theirs(dials), "router", "tcp://127.0.0.1:*", "100")
		dealer := dial(t, Dealer, peer.addr, Options{Curve: m.ours(dials), limits: beating(100*time.Millisecond, time.Second)})
		peer.waitLine(t, "up")
		time.Sleep(1500 * time.Millisecond) // longer than either end waits for a heartbeat
		if lost = peer.printed(); len(lost) == 0 {
			send(t, dealer, "still there")
			expect(t, dealer, "still there")
			return
		}
	}
	t.Errorf("libzmq printed %q", lost)
}

// Without the right keys there is no connection, and the error says why.
func TestCurveRefuses(t *testing.T) {
	t.Parallel()
	m := newMechanism()
	refused := newWatch()
	router := listen(t, Router, anyPort, Options{Curve: m.ours(listens), OnEvent: refused.on})
	for name, c := range map[string]struct {
		curve       *Curve
		here, there string // what the ends say
	}{
		"no security":       {nil, `the peer uses the security mechanism "CURVE", this end NULL`, `the peer uses the security mechanism "NULL", this end CURVE`},
		"another server":    {&Curve{Secret: m.client, Server: NewSecretKey().Public()}, "EOF", "another public key of this server"},
		"a stranger":        {&Curve{Secret: NewSecretKey(), Server: m.server.Public()}, `the peer refused the connection: "400"`, "is not allowed"},
		"an unnamed client": {&Curve{Server: m.server.Public()}, `the peer refused the connection: "400"`, "is not allowed"},
	} {
		seen := newWatch()
		dealer := dial(t, Dealer, router.Addr(), Options{Curve: c.curve, OnEvent: seen.on, Reconnect: backoff.Policy{First: time.Hour}})
		if e := seen.next(t, Refused); !strings.Contains(e.Err.Error(), c.here) {
			t.Errorf("%s: the client says %v", name, e.Err)
		}
		if e := refused.next(t, Refused); !strings.Contains(e.Err.Error(), c.there) {
			t.Errorf("%s: the server says %v", name, e.Err)
		}
		dealer.Close()
	}
	for _, bad := range []*Curve{{}, {Secret: m.client}} {
		if _, err := Dial(t.Context(), Dealer, router.Addr(), Options{Curve: bad}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("dial with %v: %v", bad.Server, err)
		}
	}
	if _, err := Listen(t.Context(), Router, anyPort, Options{Curve: &Curve{Server: m.server}}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("listen without a secret key: %v", err)
	}
}

// Both ends ours; a server without a list of clients accepts any.
func TestCurve(t *testing.T) {
	t.Parallel()
	secret := NewSecretKey()
	router := listen(t, Router, anyPort, Options{Curve: &Curve{Secret: secret}})
	dealer := dial(t, Dealer, router.Addr(), Options{Curve: &Curve{Server: secret.Public()}})
	if err := dealer.Send(t.Context(), mixed()); err != nil {
		t.Fatal(err)
	}
	got, err := router.Recv(t.Context())
	if err != nil || len(got) != len(mixed())+1 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	send(t, router, string(got[0]), "", "answer")
	expect(t, dealer, "", "answer")
}
