package delivery_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/delivery"
)

// fixture is a store on a database, whose time the test moves.
type fixture struct {
	*delivery.Store
	db   *db.DB
	time *clock.Virtual
}

func open(t *testing.T, database *db.DB, at *clock.Virtual) fixture {
	t.Helper()
	s, err := delivery.Open(t.Context(), database, delivery.Options{Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	return fixture{s, database, at}
}

// run runs the store until the test, or the returned function, ends it.
func (f fixture) run(t *testing.T, c delivery.Channel) (stop func()) {
	t.Helper()
	f.Register("chat", c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (f fixture) add(t *testing.T, id, to string) {
	t.Helper()
	err := f.db.Write(t.Context(), func(tx *db.Tx) error {
		return f.Add(t.Context(), tx, delivery.Delivery{ID: id, Kind: "chat", Org: "acme", Person: "ann", Topic: "family", URL: to, Body: []byte(`{"text":"hi"}`)})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Wake()
}

func (f fixture) get(t *testing.T, id string) delivery.Status {
	t.Helper()
	s, err := f.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await moves the time on until a delivery has had so many tries.
func (f fixture) await(t *testing.T, id string, tries int) (s delivery.Status) {
	t.Helper()
	clocktest.Await(t, func() bool {
		s = f.get(t, id)
		if n := len(s.Tries); n > 0 && n < tries && n <= len(delivery.Pauses) && s.Next.Equal(s.Tries[n-1].At.Add(delivery.Pauses[n-1])) { // none is under way
			f.time.Advance(s.Next.Sub(f.time.Now()))
			f.Wake() // it may have read the time before
		}
		return len(s.Tries) >= tries
	}, func() string { return fmt.Sprintf("%+v", s) })
	return s
}

// receiver answers with a status that the test chooses, and passes on what it got.
func receiver(t *testing.T, status func(n int) int) (at string, got chan *http.Request, client *http.Client) {
	t.Helper()
	got = make(chan *http.Request, 100)
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Set("Body", string(body))
		got <- r
		w.WriteHeader(status(int(n.Add(1))))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	return server.URL, got, server.Client()
}

var began = time.Date(2026, 11, 17, 9, 30, 0, 0, time.UTC)

// TestDeliveryArrives checks, on both databases, that a delivery is tried until it is accepted,
// also by another process, and what the receiver gets.
func TestDeliveryArrives(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, database *db.DB) {
		at := clock.NewVirtual(began)
		to, got, client := receiver(t, func(n int) int { return []int{500, 503, 204}[n-1] })
		channel := delivery.Channel{Client: client, Secret: secret.New("whsec_bHVhbmV0dGU="), Header: http.Header{"X-To": {"us"}}}
		first := open(t, database, at)
		stop := first.run(t, channel)
		first.add(t, "msg_1", to+"/hook")
		first.await(t, "msg_1", 1)
		stop()
		second := open(t, database, at)
		second.run(t, channel)
		s := second.await(t, "msg_1", 3)
		if s.State != delivery.Delivered || s.Tries[0].Status != 500 || s.Tries[2].Status != 204 || s.Next != nil || s.Ended == nil || s.Origin != to {
			t.Errorf("%+v", s)
		}
		for n, pause := range []time.Duration{5 * time.Second, 30 * time.Second} {
			if got := s.Tries[n+1].At.Sub(s.Tries[n].At); got != pause {
				t.Errorf("pause %d is %v", n, got)
			}
		}
		for n := range 3 {
			r := <-got
			mac := hmac.New(sha256.New, []byte("luanette"))
			mac.Write([]byte("msg_1." + r.Header.Get("Webhook-Timestamp") + "." + `{"text":"hi"}`))
			if r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || r.Header.Get("Webhook-Id") != "msg_1" ||
				r.Header.Get("Webhook-Try") != fmt.Sprintf("%d of 12", n+1) || r.Header.Get("X-To") != "us" || r.URL.Path != "/hook" || r.Header.Get("Body") != `{"text":"hi"}` {
				t.Errorf("%v", r.Header)
			}
		}
		if list, err := second.List(t.Context(), "chat", "acme", delivery.Delivered, 10); err != nil || len(list) != 1 || list[0].ID != "msg_1" {
			t.Errorf("%v, %v", list, err)
		}
		if err := second.Again(t.Context(), "msg_1"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("again: %v", err)
		}
		topic := "family"
		if err := second.Forget(t.Context(), "chat", "acme", "ann", &topic); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Get(t.Context(), "msg_1"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("forgotten: %v", err)
		}
	})
}

// TestDeliveryFails checks that the tries end after more than a day, that a receiver can end
// them, and that somebody can begin again.
func TestDeliveryFails(t *testing.T) {
	t.Parallel()
	at := clock.NewVirtual(began)
	var well atomic.Bool
	to, _, client := receiver(t, func(int) int {
		if well.Load() {
			return 200
		}
		return 500
	})
	gone, _, _ := receiver(t, func(int) int { return http.StatusGone })
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), at)
	f.run(t, delivery.Channel{Client: client})
	f.add(t, "msg_1", to)
	s := f.await(t, "msg_1", len(delivery.Pauses)+1)
	if last := s.Tries[len(s.Tries)-1].At.Sub(began); s.State != delivery.Failed || last < 24*time.Hour {
		t.Errorf("%s after %v", s.State, last)
	}
	f.add(t, "msg_2", gone)
	if s := f.await(t, "msg_2", 1); s.State != delivery.Failed {
		t.Errorf("%+v", s)
	}
	well.Store(true)
	if err := f.Again(t.Context(), "msg_1"); err != nil {
		t.Fatal(err)
	}
	if s := f.await(t, "msg_1", len(delivery.Pauses)+2); s.State != delivery.Delivered {
		t.Errorf("%+v", s)
	}
}

// TestDeadReceiver checks that one that does not answer delays no other.
func TestDeadReceiver(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	t.Cleanup(dead.Close)
	to, got, client := receiver(t, func(int) int { return 200 })
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), clock.NewVirtual(began))
	for n := range 200 {
		f.add(t, fmt.Sprintf("dead_%d", n), dead.URL)
	}
	f.add(t, "msg_1", to)
	stop := f.run(t, delivery.Channel{Client: client})
	<-got
	close(hold)
	stop()
}

// TestHangingDeliveries checks that what a receiver does not accept, try after try, does not
// delay what else it gets.
func TestHangingDeliveries(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var refused atomic.Int32
	const hanging = 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/well":
		case refused.Add(1) <= hanging:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			<-hold
		}
	}))
	t.Cleanup(server.Close)
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), clock.NewVirtual(began))
	stop := f.run(t, delivery.Channel{Client: server.Client()})
	defer stop()
	defer close(hold)
	for n := range hanging {
		f.add(t, fmt.Sprintf("msg_%d", n), server.URL+"/hangs")
		f.await(t, fmt.Sprintf("msg_%d", n), 1)
	}
	f.time.Advance(delivery.Pauses[0])
	f.add(t, "msg_well", server.URL+"/well")
	f.await(t, "msg_well", 1)
	for n := range hanging {
		if s := f.get(t, fmt.Sprintf("msg_%d", n)); len(s.Tries) != 1 {
			t.Errorf("it waited for %+v", s)
		}
	}
}

// TestReplacedDelivery checks that receivers can tell a later outcome from an earlier one.
func TestReplacedDelivery(t *testing.T) {
	t.Parallel()
	to, got, client := receiver(t, func(int) int { return 200 })
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), clock.NewVirtual(began))
	f.run(t, delivery.Channel{Client: client})
	for _, want := range []string{"msg_1", "msg_1_2"} {
		f.add(t, "msg_1", to)
		if id := (<-got).Header.Get("Webhook-Id"); id != want {
			t.Errorf("got %s, want %s", id, want)
		}
	}
}

// TestUnwantedDelivery checks that what nobody wants any more is not sent.
func TestUnwantedDelivery(t *testing.T) {
	t.Parallel()
	to, got, client := receiver(t, func(int) int { return 200 })
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), clock.NewVirtual(began))
	f.add(t, "msg_1", to)
	f.add(t, "msg_2", to)
	f.run(t, delivery.Channel{Client: client, Wanted: func(_ context.Context, id string) (bool, error) { return id == "msg_2", nil }})
	if r := <-got; r.Header.Get("Webhook-Id") != "msg_2" {
		t.Errorf("got %s", r.Header.Get("Webhook-Id"))
	}
	clocktest.Await(t, func() bool {
		_, err := f.Get(t.Context(), "msg_1")
		return fault.CodeOf(err) == fault.NotFound
	}, func() string { return "still there" })
}

// TestDeliveryOfAStoppedProcess checks that what a stop has cut is due at once.
func TestDeliveryOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	f := open(t, dbtest.Open(t, dbtest.In(t, t.TempDir())), clock.NewVirtual(began))
	ctx, stop := context.WithCancel(t.Context())
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		stop()
		return nil, io.ErrUnexpectedEOF
	})}
	f.Register("chat", delivery.Channel{Client: client})
	f.add(t, "msg_1", "http://127.0.0.1:1")
	f.Run(ctx)
	if s := f.get(t, "msg_1"); s.State != delivery.Waiting || s.Next == nil || !s.Next.Equal(began) || len(s.Tries) != 0 {
		t.Errorf("%+v", s)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
