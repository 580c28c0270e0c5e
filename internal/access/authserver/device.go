package authserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Times of device codes (RFC 8628).
const (
	deviceTime  = 10 * time.Minute
	devicePause = 5 // seconds between two requests of a device
)

// The states of a device code.
const (
	statePending = "pending"
	stateAllowed = "allowed"
	stateDenied  = "denied"
	stateUsed    = "used"
)

// codeLetters are those of user codes: no vowels, which make words, and none that look
// like digits.
const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

func newUserCode() string {
	code := make([]byte, 8)
	for i := range code {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(codeLetters)))) // never fails
		code[i] = codeLetters[n.Int64()]
	}
	return string(code)
}

// shownCode is a code as people read it.
func shownCode(code string) string { return code[:4] + "-" + code[4:] }

// typedCode is a code as people type it.
func typedCode(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeLetters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(text))
}

// device begins the login of a program that has no browser.
func (s *Server) device(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(w, r)
	if err != nil {
		return err
	}
	if tooMany, err := s.attempts.add(r.Context(), devices, s.source(r), s.options.Now()); err != nil {
		return err
	} else if tooMany {
		return refusal{http.StatusTooManyRequests, "slow_down", "too many logins begin"}
	}
	c, err := s.client(r.Context(), form.Get("client_id"))
	if err != nil {
		return refusal{http.StatusUnauthorized, "invalid_client", err.Error()}
	}
	resource, ours := s.resource(form["resource"])
	if !ours {
		return refusal{http.StatusBadRequest, "invalid_target", "the resource is not of this server"}
	}
	wanted, ok := scopes(form.Get("scope"))
	if !ok {
		return refusal{http.StatusBadRequest, "invalid_scope", "no such scope"}
	}
	ctx := r.Context()
	secret, code, now := "lnd_"+rand.Text()+rand.Text(), newUserCode(), s.options.Now()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM as_devices WHERE expires < $1", now.Add(-time.Hour).UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO as_devices (hash, code, client, name, resource, scopes, expires, pause, asked, state, grant_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, '')",
			hashOf(secret), code, c.ID, c.Name, resource, strings.Join(wanted, " "), now.Add(deviceTime).UnixMicro(), devicePause, statePending)
		return err
	})
	if err != nil {
		return err
	}
	at := s.options.Issuer + DevicePage
	writeJSON(w, http.StatusOK, map[string]any{
		"device_code": secret, "user_code": shownCode(code), "verification_uri": at, "verification_uri_complete": at + "?user_code=" + shownCode(code),
		"expires_in": int(deviceTime.Seconds()), "interval": devicePause,
	})
	return nil
}

// byDevice answers a device that asks whether the person has allowed it.
func (s *Server) byDevice(ctx context.Context, tx *db.Tx, form url.Values, got *tokens) error {
	now, hash := s.options.Now(), hashOf(form.Get("device_code"))
	var client, state, id string
	var expires, pause, asked int64
	err := tx.QueryRow(ctx, "SELECT client, state, grant_id, expires, pause, asked FROM as_devices WHERE hash = $1", hash).Scan(&client, &state, &id, &expires, &pause, &asked)
	if errors.Is(err, sql.ErrNoRows) || err == nil && client != form.Get("client_id") {
		return badGrant
	}
	if err != nil {
		return err
	}
	switch {
	case state == stateUsed:
		return endReused(ctx, tx, id, now)
	case expires <= now.UnixMicro():
		return refusal{http.StatusBadRequest, "expired_token", "the code has expired"}
	case state == stateDenied:
		return refusal{http.StatusBadRequest, "access_denied", "the person has denied it"}
	case state == statePending:
		return s.askAgain(ctx, tx, hash, now.Sub(time.UnixMicro(asked)) < time.Duration(pause)*time.Second)
	}
	g, err := live(ctx, tx, id, form)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE as_devices SET state = $2 WHERE hash = $1", hash, stateUsed); err != nil {
		return err
	}
	return s.give(ctx, tx, g, now, got)
}

// askAgain tells a device to wait, and longer if it asks too often.
func (s *Server) askAgain(ctx context.Context, tx *db.Tx, hash []byte, tooSoon bool) error {
	more, no := 0, refusal{http.StatusBadRequest, "authorization_pending", "the person has not decided yet"}
	if tooSoon {
		more, no = 5, refusal{http.StatusBadRequest, "slow_down", "ask less often"}
	}
	if _, err := tx.Exec(ctx, "UPDATE as_devices SET asked = $2, pause = pause + $3 WHERE hash = $1", hash, s.options.Now().UnixMicro(), more); err != nil {
		return err
	}
	return ended{no}
}

// showDevice asks the person for the code of a device, or whether to allow it.
func (s *Server) showDevice(w http.ResponseWriter, r *http.Request) error {
	typed := r.URL.Query().Get("user_code")
	org := r.URL.Query().Get("org")
	who, session, err := s.person(w, r, DevicePage+"?user_code="+url.QueryEscape(typed)+"&org="+url.QueryEscape(org))
	if err != nil || session == "" {
		return err
	}
	if typed == "" {
		page.Write(w, http.StatusOK, codePage, nil)
		return nil
	}
	d, err := s.waiting(r, who, typed)
	if err != nil {
		return err
	}
	page.Write(w, http.StatusOK, devicePageTemplate, map[string]any{
		"Person": who.Name, "Client": d.name, "Code": shownCode(d.code), "Scopes": described(d.scopes, who), "Orgs": s.choices(who, org), "CSRF": apikey.CSRF(session),
	})
	return nil
}

var codePage = page.New("code", `<h1>Connect a device</h1>
<form method="get"><p><label>The code that it shows: <input name="user_code" autocomplete="off" autofocus required></label></p><button>Next</button></form>`)

var devicePageTemplate = page.New("device", `<h1>Allow {{.Client}}?</h1>
<p>You are signed in as <b>{{.Person}}</b>. A program that you have just started shows the code</p><p><b><code>{{.Code}}</code></b></p>
<p>If it does not, or if somebody sent you this link, deny it. Otherwise it may act for you:</p>
<ul>{{range .Scopes}}<li><b>{{.Name}}</b>: {{.Text}}</li>{{end}}</ul>
<form method="post"><input type="hidden" name="csrf" value="{{.CSRF}}"><input type="hidden" name="user_code" value="{{.Code}}">
`+orgFields+`<button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>`)

// waitingDevice is a device that waits for a person.
type waitingDevice struct {
	code, client, name, resource string
	scopes                       []string
}

// source is what attempts of a request's address are counted for.
func (s *Server) source(r *http.Request) string {
	return netguard.Source(s.options.Browsers.Proxies.Client(r))
}

// waiting returns the device with a code. Each wrong code counts against the person who
// types it, in whichever organisation, and against their address, so that codes cannot be
// guessed.
func (s *Server) waiting(r *http.Request, who principal.Principal, typed string) (d waitingDevice, err error) {
	ctx, now := r.Context(), s.options.Now()
	guesses := map[limit]string{personGuesses: people.PersonOf(who), addressGuesses: s.source(r)}
	tooMany := false
	for of, name := range guesses {
		over, err := s.attempts.exhausted(ctx, of, name, now)
		if tooMany = tooMany || over; err != nil {
			return d, err
		}
	}
	if tooMany {
		return d, fault.New(fault.Limit, "too many wrong codes").WithHint("wait for ten minutes, and begin again")
	}
	var scopes string
	err = s.db.QueryRow(ctx, "SELECT code, client, name, resource, scopes FROM as_devices WHERE code = $1 AND state = $2 AND expires > $3",
		typedCode(typed), statePending, now.UnixMicro()).Scan(&d.code, &d.client, &d.name, &d.resource, &scopes)
	if errors.Is(err, sql.ErrNoRows) {
		for of, name := range guesses {
			if _, err := s.attempts.add(ctx, of, name, now); err != nil {
				return d, err
			}
		}
		s.options.OnGrant(principal.With(ctx, who), "device.wrong_code", s.source(r), nil)
		return d, fault.New(fault.NotFound, "no device waits with this code").WithHint("look at the code again; it is valid for ten minutes")
	}
	d.scopes = strings.Fields(scopes)
	return d, err
}

// decideDevice carries out what the person decided about a device.
func (s *Server) decideDevice(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	who, session, err := s.person(w, r, "")
	if err != nil {
		return err
	}
	if !apikey.SameCSRF(session, r.PostFormValue("csrf")) {
		return fault.New(fault.Denied, "the form does not repeat the session's CSRF token").WithHint("open %s again", DevicePage)
	}
	d, err := s.waiting(r, who, r.PostFormValue("user_code"))
	if err != nil {
		return err
	}
	state := stateDenied
	if r.PostFormValue("decision") == "allow" {
		state = stateAllowed
		if who, err = s.chosen(r, who); err != nil {
			return err
		}
	}
	g := grant{id: newGrantID(d.client), person: people.PersonOf(who), org: who.Org, client: d.client, name: d.name, resource: d.resource, scopes: d.scopes}
	if err := s.settle(r.Context(), d.code, state, g); err != nil {
		return err
	}
	if state == stateAllowed {
		s.audit(principal.With(r.Context(), who), "client.allow", g)
	}
	page.Write(w, http.StatusOK, decidedPage, state)
	return nil
}

var decidedPage = page.New("decided", `<h1>{{if eq . "allowed"}}Allowed{{else}}Denied{{end}}</h1><p>You can close this page.</p>`)

// settle stores a decision, once.
func (s *Server) settle(ctx context.Context, code, state string, g grant) error {
	now := s.options.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE as_devices SET state = $2, grant_id = $3 WHERE code = $1 AND state = $4 AND expires > $5", code, state, g.id, statePending, now.UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.NotFound, "no device waits with this code any more")
		}
		if state != stateAllowed {
			return nil
		}
		return g.insert(ctx, tx, now)
	})
}
