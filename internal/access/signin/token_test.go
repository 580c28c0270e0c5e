package signin

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

// Providers close connections that were not used for some time, as Node does after five
// seconds. A request that meets such an end is made again.
func TestTokenIsAskedForAgainOnAnotherConnection(t *testing.T) {
	t.Parallel()
	type used struct{}
	corp := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(used{}).(*atomic.Int32).Add(1) == 1 {
			_, _ = io.WriteString(w, `{"access_token":"good"}`)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // it is reset
		conn.Close()
	}))
	corp.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, used{}, new(atomic.Int32))
	}
	corp.Start()
	t.Cleanup(corp.Close)
	first, err := corp.Client().Get(corp.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Fatal(err)
	}
	first.Body.Close()

	s := &Service{options: Options{Client: corp.Client()}}
	var got struct {
		Token string `json:"access_token"`
	}
	if err := s.ask(t.Context(), &provider{Provider: Provider{ClientID: "hub"}}, endpoints{Token: corp.URL}, url.Values{}, &got); err != nil || got.Token != "good" {
		t.Errorf("%q, %v", got.Token, err)
	}
}
