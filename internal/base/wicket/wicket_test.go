package wicket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// served is a server with a handler, and where it is. Main counts what net/http
// answers.
type served struct {
	*Server
	address string
	main    *atomic.Int32
	ended   chan error
}

func serve(t *testing.T, limit Limits, handler http.HandlerFunc) served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int32
	main := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, ours := w.(*answer); !ours {
				count.Add(1)
			}
			handler(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s := served{New(main, limit), listener.Addr().String(), &count, make(chan error, 1)}
	go func() { s.ended <- s.Serve(listener) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("ended with %v", err)
		}
	})
	return s
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s %s %s", r.URL.Path, r.Host, r.Header.Get("X-Word"), body)
}

// wireTo is a raw connection with a reader for answers.
func wireTo(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

func post(path, extra, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: here\r\n%sContent-Length: %d\r\n\r\n%s", path, extra, len(body), body)
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// hear reads one answer.
func hear(t *testing.T, in *bufio.Reader) (status int, body string) {
	t.Helper()
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

func wantAnswer(t *testing.T, in *bufio.Reader, want string) {
	t.Helper()
	if status, body := hear(t, in); status != http.StatusOK || body != want {
		t.Fatalf("answered %d %q, want %q", status, body, want)
	}
}

func TestSmallRequestsStayInside(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{}, echo)
	conn, in := wireTo(t, s.address)
	for i := range 20 {
		say(t, conn, post("/a", "x-word: yes\r\n", strings.Repeat("b", i*100)))
		wantAnswer(t, in, "/a here yes "+strings.Repeat("b", i*100))
	}
	say(t, conn, post("/one", "", "1")+post("/two", "", "2")+post("/three", "", "3")) // without waiting for answers
	wantAnswer(t, in, "/one here  1")
	wantAnswer(t, in, "/two here  2")
	wantAnswer(t, in, "/three here  3")
	head, body, _ := strings.Cut(post("/late", "", "the body comes later"), "\r\n\r\n")
	say(t, conn, head+"\r\n\r\n")
	say(t, conn, body)
	wantAnswer(t, in, "/late here  the body comes later")
	large := strings.Repeat("c", 3*usual)
	say(t, conn, post("/large", "", large))
	wantAnswer(t, in, "/large here  "+large)
	if n := s.main.Load(); n != 0 {
		t.Errorf("net/http answered %d of them", n)
	}
}

func TestOtherRequestsAreHandedOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, want string }{
		"GET":              {"GET /a HTTP/1.1\r\nHost: here\r\n\r\n", "/a here  "},
		"chunks":           {"POST /a HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "/a here  abc"},
		"a large body":     {post("/a", "", strings.Repeat("d", largest)), "/a here  " + strings.Repeat("d", largest)},
		"a large head":     {post("/a", "X-Long: "+strings.Repeat("e", 2*usual)+"\r\n", "f"), "/a here  f"},
		"the last request": {post("/a", "Connection: close\r\n", "g"), "/a here  g"},
		"an upgrade":       {post("/a", "Connection: upgrade\r\nUpgrade: h2c\r\n", "h"), "/a here  h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Limits{}, echo)
			conn, in := wireTo(t, s.address)
			say(t, conn, post("/first", "", "")) // it may have been ours before
			wantAnswer(t, in, "/first here  ")
			say(t, conn, c.said)
			wantAnswer(t, in, c.want)
			if n := s.main.Load(); n != 1 {
				t.Errorf("net/http answered %d requests, want 1", n)
			}
		})
	}
}

// A head that comes in pieces is net/http's too, which knows how long to wait.
func TestSlowHeadIsHandedOver(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{}, echo)
	conn, in := wireTo(t, s.address)
	text := post("/slow", "", "x")
	s.waitFor(t, 1)
	say(t, conn, text[:10])
	s.waitFor(t, 0)
	say(t, conn, text[10:])
	wantAnswer(t, in, "/slow here  x")
}

func TestOddRequestsAreRefused(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"no host":            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"two hosts":          "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
		"two lengths":        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a length of sorts":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na",
		"length and chunks":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: xchunked\r\n\r\na",
		"a space in a name":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\na",
		"a folded header":    "POST / HTTP/1.1\r\nHost: a\r\n folded\r\nbad\r\nContent-Length: 0\r\n\r\n",
		"a control in value": "POST / HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Limits{}, echo)
			conn, in := wireTo(t, s.address)
			say(t, conn, said)
			if status, _ := hear(t, in); status < 400 {
				t.Errorf("answered %d", status)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/silent":
		case "/typed":
			w.Header().Set("X-Evil", "a\r\nX-Injected: b")
			_, _ = io.WriteString(w, "<html>")
		case "/much":
			for range 100 {
				_, _ = w.Write(make([]byte, 1000))
			}
		case "/at-once":
			_, _ = w.Write(make([]byte, 5_000_000))
		case "/promised":
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "1234")
		}
	})
	conn, in := wireTo(t, s.address)
	ask := func(path string) (*http.Response, string) {
		say(t, conn, post(path, "", ""))
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(path, err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response, string(body)
	}
	if r, body := ask("/nothing"); r.StatusCode != http.StatusNoContent || body != "" || r.Header.Get("Content-Length") != "" {
		t.Errorf("nothing: %v %q", r.Header, body)
	}
	if r, body := ask("/silent"); r.StatusCode != http.StatusOK || body != "" || r.ContentLength != 0 || r.Header.Get("Date") == "" {
		t.Errorf("silent: %v %q", r.Header, body)
	}
	if r, body := ask("/typed"); !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || body != "<html>" || r.Header.Get("X-Injected") != "" {
		t.Errorf("typed: %v %q", r.Header, body)
	}
	if r, body := ask("/much"); r.ContentLength != -1 || len(body) != 100_000 {
		t.Errorf("much: length %d, %d bytes", r.ContentLength, len(body))
	}
	if r, body := ask("/at-once"); r.ContentLength != -1 || len(body) != 5_000_000 {
		t.Errorf("at once: length %d, %d bytes", r.ContentLength, len(body))
	}
	if _, body := ask("/promised"); body != "1234" {
		t.Errorf("promised: %q", body)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after a broken promise the connection goes on: %v", err)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for text := range next {
			_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(w, text)
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	conn, in := wireTo(t, s.address)
	say(t, conn, post("/", "", "{}"))
	next <- "one "
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for _, text := range []string{"two ", "three "} {
		next <- text
	}
	close(next)
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "one two three " {
		t.Errorf("%q, %v", body, err)
	}
}

// A client that leaves is noticed while it waits for its answer; one that says the
// next thing instead is answered in turn.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	gone := make(chan error)
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		gone <- context.Cause(r.Context())
	})
	conn, _ := wireTo(t, s.address)
	say(t, conn, post("/", "", "{}"))
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; !errors.Is(err, errLeft) {
		t.Errorf("ended with %v", err)
	}
}

func TestWatchedClientGoesOn(t *testing.T) {
	t.Parallel()
	watched := make(chan struct{})
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-watched
		}
		echo(w, r)
	})
	conn, in := wireTo(t, s.address)
	for range 3 {
		say(t, conn, post("/slow", "", "1"))
		s.waitFor(t, 1, isWatched)
		watched <- struct{}{}
		wantAnswer(t, in, "/slow here  1")
	}
	say(t, conn, post("/slow", "", "2"))
	s.waitFor(t, 1, isWatched)
	say(t, conn, post("/next", "", "3"))
	watched <- struct{}{}
	wantAnswer(t, in, "/slow here  2")
	wantAnswer(t, in, "/next here  3")
}

func isWatched(c *conn) bool { return c.watching != nil }

// waitFor waits until so many connections are inside that are as they should be.
// There is nothing else to see of it from outside.
func (s served) waitFor(t *testing.T, want int, as ...func(*conn) bool) {
	t.Helper()
	clocktest.Await(t, func() bool {
		n := 0
		s.conns.Range(func(key, _ any) bool {
			c := key.(*conn)
			c.mu.Lock()
			defer c.mu.Unlock()
			if !slices.ContainsFunc(as, func(is func(*conn) bool) bool { return !is(c) }) {
				n++
			}
			return true
		})
		return n == want
	})
}

func TestPanicCostsOneConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
		echo(w, r)
	})
	conn, in := wireTo(t, s.address)
	say(t, conn, post("/panic", "", ""))
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
	conn, in = wireTo(t, s.address)
	say(t, conn, post("/a", "", "b"))
	wantAnswer(t, in, "/a here  b")
}

func TestSlowClientsAreLeft(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	for name, c := range map[string]struct {
		limit      Limits
		said, want string
	}{
		"says nothing": {Limits{Fresh: short}, "", ""},
		"half a body":  {Limits{Body: short}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 408 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, in := wireTo(t, serve(t, c.limit, echo).address)
			say(t, conn, c.said)
			if text, _ := io.ReadAll(in); !strings.HasPrefix(string(text), c.want) {
				t.Errorf("it was told %q, want %q", text, c.want)
			}
		})
	}
	t.Run("does not read", func(t *testing.T) {
		t.Parallel()
		left := make(chan error)
		s := serve(t, Limits{Write: short}, func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					left <- err
					return
				}
			}
		})
		conn, _ := wireTo(t, s.address)
		say(t, conn, post("/", "", ""))
		<-left
	})
	t.Run("says nothing more", func(t *testing.T) {
		t.Parallel()
		s := serve(t, Limits{Idle: short}, echo)
		conn, in := wireTo(t, s.address)
		say(t, conn, post("/a", "", "b"))
		wantAnswer(t, in, "/a here  b")
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection goes on: %v", err)
		}
	})
}

// Whoever is served is answered; whoever says nothing is sent away.
func TestShutdown(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-finish
		echo(w, r)
	})
	silent, nothing := wireTo(t, s.address)
	busy, in := wireTo(t, s.address)
	say(t, busy, post("/a", "", "b"))
	<-begun
	var over sync.WaitGroup
	over.Go(func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, err := nothing.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the silent one: %v", err)
	}
	_ = silent.Close()
	close(finish)
	wantAnswer(t, in, "/a here  b")
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the busy one goes on: %v", err)
	}
	over.Wait()
}
