package approval_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
)

// TestWebhookIsTold checks that the webhook gets a request, signed, and again after it
// failed.
func TestWebhookIsTold(t *testing.T) {
	t.Parallel()
	type delivery struct {
		header http.Header
		body   []byte
	}
	received := make(chan delivery, 100)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- delivery{r.Header, body}
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	b := newFixture(t)
	o, err := approval.Open(t.Context(), b.db, approval.Options{
		Policy: approval.Policy{Default: approval.Writes}, Events: b.bus, Clock: b.time,
		Webhook: &approval.Webhook{URL: server.URL, Secret: secret.New("whsec_bHVhbmV0dGU="), Client: client},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.watch(t, o)
	id := ask(t, o, paused("run:1", "", "ann"))
	for range 2 {
		var got delivery
		clocktest.Await(t, func() bool {
			b.time.Advance(3 * time.Second)
			b.looked(t, 1)
			select {
			case got = <-received:
				return true
			default:
				return false
			}
		}, func() string { return "the webhook was not told" })
		var n approval.Notice
		if err := json.Unmarshal(got.body, &n); err != nil || n.Type != "approval.requested" || n.Data.ID != id || n.Data.Subject != "bank.pay" || n.Data.Needed != 1 {
			t.Errorf("received %s, %v", got.body, err)
		}
		mac := hmac.New(sha256.New, []byte("luanette"))
		mac.Write([]byte(got.header.Get("webhook-id") + "." + got.header.Get("webhook-timestamp") + "." + string(got.body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.header.Get("webhook-signature") != want || got.header.Get("webhook-id") != id {
			t.Errorf("signed %v, want %s", got.header, want)
		}
	}
}
