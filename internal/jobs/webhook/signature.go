package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
)

// Scheme is a way to authenticate requests.
type Scheme string

// The schemes.
const (
	Secret   Scheme = "secret"   // the secret itself, in a header
	GitHub   Scheme = "github"   // X-Hub-Signature-256
	Stripe   Scheme = "stripe"   // Stripe-Signature
	Slack    Scheme = "slack"    // X-Slack-Signature
	Standard Scheme = "standard" // webhook-signature of Standard Webhooks
)

// Schemes lists all schemes.
func Schemes() []Scheme { return []Scheme{Secret, GitHub, Stripe, Slack, Standard} }

// Defaults of hooks.
const (
	DefaultHeader   = "X-Hook-Secret"
	DefaultWindow   = 5 * time.Minute
	DefaultKeep     = 7 * 24 * time.Hour
	DefaultMaxBytes = 1 << 20
)

// Why requests are refused. Only the log tells.
var (
	errUnsigned   = errors.New("it has no signature")
	errNotSecret  = errors.New("its secret is not the hook's")
	errNotSigned  = errors.New("its signature does not match the body and the hook's secret")
	errOutsideNow = errors.New("its signed time is too far from the server's")
)

// request is what a signature covers.
type request struct {
	header http.Header
	body   []byte
	now    time.Time
}

// verify checks that a request was signed with one of the hook's secrets, recently where
// the scheme has a time.
func (h *Hook) verify(r request) error {
	switch h.Scheme {
	case Secret:
		return h.verifySecret(r)
	case GitHub:
		return h.verifyGitHub(r)
	case Stripe:
		return h.verifyStripe(r)
	case Slack:
		return h.verifySlack(r)
	case Standard:
		return h.verifyStandard(r)
	}
	return fmt.Errorf("the hook's scheme %q is unknown", h.Scheme)
}

func (h *Hook) verifySecret(r request) error {
	sent := strings.TrimPrefix(r.header.Get(h.Header), "Bearer ")
	if sent == "" {
		return errUnsigned
	}
	got, valid := sha256.Sum256([]byte(sent)), 0 // of equal lengths, so that the comparison does not tell the secret's
	for _, s := range h.Secrets {
		want := sha256.Sum256([]byte(s.Reveal()))
		valid |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	if valid != 1 {
		return errNotSecret
	}
	return nil
}

func (h *Hook) verifyGitHub(r request) error {
	sent, ok := strings.CutPrefix(r.header.Get("X-Hub-Signature-256"), "sha256=")
	if !ok {
		return errUnsigned
	}
	return h.verifySums(hexSums(sent), plainKey, r.body)
}

func (h *Hook) verifyStripe(r request) error {
	var at string
	var sums []string
	for part := range strings.SplitSeq(r.header.Get("Stripe-Signature"), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			at = value
		case "v1":
			sums = append(sums, value)
		}
	}
	return h.verifyTimed(r, at, hexSums(sums...), plainKey, at+".")
}

func (h *Hook) verifySlack(r request) error {
	at := r.header.Get("X-Slack-Request-Timestamp")
	sent, ok := strings.CutPrefix(r.header.Get("X-Slack-Signature"), "v0=")
	if !ok {
		return errUnsigned
	}
	return h.verifyTimed(r, at, hexSums(sent), plainKey, "v0:"+at+":")
}

func (h *Hook) verifyStandard(r request) error {
	id, at := r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp")
	if id == "" {
		return errUnsigned // it could not be recognised when it comes again
	}
	var sums [][]byte
	for one := range strings.FieldsSeq(r.header.Get("Webhook-Signature")) {
		if text, ok := strings.CutPrefix(one, "v1,"); ok {
			if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
				sums = append(sums, sum)
			}
		}
	}
	return h.verifyTimed(r, at, sums, StandardKey, id+"."+at+".")
}

// verifyTimed checks the signatures of a prefix and the body, and the time that the
// prefix has.
func (h *Hook) verifyTimed(r request, at string, sums [][]byte, key keyReader, prefix string) error {
	if err := h.verifySums(sums, key, []byte(prefix), r.body); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || r.now.Sub(time.Unix(seconds, 0)).Abs() > h.Window {
		return errOutsideNow
	}
	return nil
}

// verifySums checks that one of the sums is the HMAC of the parts with one of the secrets.
func (h *Hook) verifySums(sums [][]byte, key keyReader, parts ...[]byte) error {
	if len(sums) == 0 {
		return errUnsigned
	}
	valid := false
	for _, s := range h.Secrets {
		bytes, err := key(s)
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, bytes)
		for _, part := range parts {
			mac.Write(part)
		}
		want := mac.Sum(nil)
		for _, sum := range sums {
			valid = hmac.Equal(sum, want) || valid
		}
	}
	if !valid {
		return errNotSigned
	}
	return nil
}

func hexSums(texts ...string) (sums [][]byte) {
	for _, text := range texts {
		if sum, err := hex.DecodeString(text); err == nil {
			sums = append(sums, sum)
		}
	}
	return sums
}

// keyReader returns the key that a secret stands for.
type keyReader func(secret.Text) ([]byte, error)

func plainKey(s secret.Text) ([]byte, error) { return []byte(s.Reveal()), nil }

// StandardKey is the key of a secret of Standard Webhooks: base64 after whsec_.
func StandardKey(s secret.Text) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("the secret is not base64 after whsec_")
	}
	return key, nil
}

// delivery identifies a delivery, so that one that comes again is recognised; "" if
// nothing does.
func (h *Hook) delivery(r request) string {
	if h.Delivery != "" {
		return r.header.Get(h.Delivery)
	}
	switch h.Scheme {
	case GitHub:
		return r.header.Get("X-Github-Delivery")
	case Standard:
		return r.header.Get("Webhook-Id")
	case Stripe:
		return cmp.Or(member(r.body, "id"), r.header.Get("Stripe-Signature"))
	case Slack:
		return cmp.Or(member(r.body, "event_id"), r.header.Get("X-Slack-Signature"))
	}
	return r.header.Get("Idempotency-Key")
}

// member is a text in a JSON object; "" if there is none.
func member(body []byte, name string) string {
	var object map[string]json.RawMessage
	var text string
	if json.Unmarshal(body, &object) == nil {
		_ = json.Unmarshal(object[name], &text) // another type is no text
	}
	return text
}
