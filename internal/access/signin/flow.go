package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// flow is a sign-in whose person is at the provider.
type flow struct {
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Next     string `json:"next"` // where to go on
	provider string
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// begin sends the browser to a provider.
func (s *Service) begin(w http.ResponseWriter, r *http.Request) error {
	p, err := s.named(r.PathValue("provider"))
	if err != nil {
		return err
	}
	at, err := p.remote.Endpoints(r.Context())
	if err != nil {
		return err
	}
	browser := Browser(w, r, s.options.Browsers, s.options.Clock.Now())
	f := flow{Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Next: local(r.URL.Query().Get("next"))}
	state := rand.Text() + rand.Text()
	if err := s.save(r.Context(), p.Name, state, browser, f); err != nil {
		return err
	}
	u, err := url.Parse(at.Authorize)
	if err != nil || u.Host == "" {
		return fault.New(fault.Upstream, "%s has no authorization endpoint", p.Issuer)
	}
	challenge := sha256.Sum256([]byte(f.Verifier))
	query := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": p.ClientID, "redirect_uri": s.options.PublicURL + CallbackPath,
		"scope": strings.Join(slices.Concat([]string{"openid"}, p.Scopes), " "), "state": state, "nonce": f.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		query.Set(name, value)
	}
	if slices.Contains(p.Scopes, "offline_access") {
		query.Set("prompt", "consent") // OpenID providers give no refresh token without it
	}
	u.RawQuery = query.Encode()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
	return nil
}

func (s *Service) save(ctx context.Context, provider, state, browser string, f flow) error {
	now := s.options.Clock.Now()
	sealed, err := s.box.Seal(f, "signin", provider)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM signin_flows WHERE expires < $1", now.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO signin_flows (state, browser, provider, expires, sealed) VALUES ($1, $2, $3, $4, $5)",
			hashOf(state), hashOf(browser), provider, now.Add(cookie.FlowTime).UnixMicro(), sealed)
		return err
	})
}

// take returns the flow of a state, once. In another browser than the one that began it,
// it is neither found nor used up.
func (s *Service) take(ctx context.Context, state, browser string) (f flow, err error) {
	var sealed []byte
	var expires int64
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, "DELETE FROM signin_flows WHERE state = $1 AND browser = $2 RETURNING provider, expires, sealed", hashOf(state), hashOf(browser)).
			Scan(&f.provider, &expires, &sealed)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires < s.options.Clock.Now().UnixMicro() {
		return f, fault.New(fault.Denied, "this browser has not begun this sign-in, or it has ended").
			WithHint("sign in again; do not finish a sign-in that somebody sent you a link to")
	}
	if err != nil {
		return f, err
	}
	return f, s.box.Open(sealed, &f, "signin", f.provider)
}

// callback finishes a sign-in when the browser comes back from the provider.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) error {
	back := r.URL.Query()
	f, err := s.take(r.Context(), back.Get("state"), cookie.In(r, s.options.Browsers).Get(cookie.Flow))
	if err != nil {
		return s.refusal(r, err)
	}
	p, err := s.named(f.provider)
	if err != nil {
		return err
	}
	from := s.options.Browsers.Proxies.Client(r)
	begun, err := s.finish(r.Context(), p, f, back)
	if err != nil {
		return s.refusal(r, err)
	}
	session, expires, err := s.options.People.BeginSession(r.Context(), begun)
	if err != nil {
		return err
	}
	who, err := s.options.People.Session(r.Context(), session)
	if err != nil {
		return err
	}
	s.options.OnSignIn(principal.With(r.Context(), who), "login", from, true)
	cookie.In(r, s.options.Browsers).Set(w, cookie.Session, session, expires)
	page.Continue(w, r, f.Next)
	return nil
}

// refusalsAllowed is how many sign-ins of one address may fail in a minute until more are
// refused without a record.
const refusalsAllowed = 20

// refusal records that a sign-in failed, and returns why.
func (s *Service) refusal(r *http.Request, err error) error {
	from := s.options.Browsers.Proxies.Client(r)
	source := netguard.Source(from)
	if after, ok := s.refused.Allow(source, refusalsAllowed, s.options.Clock.Now()); !ok {
		return principal.Exceeded{What: "failed sign-ins", Of: "the address " + source, Most: refusalsAllowed, Per: "minute", After: after}.Fault()
	}
	s.options.OnSignIn(principal.With(r.Context(), principal.Anonymous()), "login", from, false)
	return err
}

// finish gets the tokens for the code of a redirect, and returns the session of the person
// whom they identify.
func (s *Service) finish(ctx context.Context, p *provider, f flow, back url.Values) (people.Begun, error) {
	at, err := p.remote.Endpoints(ctx)
	if err != nil {
		return people.Begun{}, err
	}
	if said := back.Get("iss"); said != p.Issuer && (back.Has("iss") || at.TellsIssuer) {
		return people.Begun{}, fault.New(fault.Denied, "the answer is not from %s", p.Issuer). // another provider may want its code
													WithHint("sign in again, and tell the operator if it is repeated")
	}
	if code := back.Get("error"); code != "" {
		return people.Begun{}, fault.New(fault.Denied, "%s refused: %s", p.Issuer, printable(code)).WithHint("sign in again")
	}
	got, err := s.exchange(ctx, p, at, url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "redirect_uri": {s.options.PublicURL + CallbackPath}, "code_verifier": {f.Verifier},
	})
	if err != nil {
		return people.Begun{}, err
	}
	begun, err := s.admit(ctx, p, at, got, f.Nonce)
	if err != nil {
		return begun, err
	}
	id, err := s.keep(ctx, p, begun, got)
	if got.Refresh != "" {
		begun.Tokens.Kept = id
	}
	return begun, err
}

// admit returns the session of the person whom tokens identify, with the roles that their
// groups have.
func (s *Service) admit(ctx context.Context, p *provider, at endpoints, got tokens, nonce string) (people.Begun, error) {
	claims, err := p.remote.VerifyID(ctx, got.ID, nonce)
	if err != nil {
		return people.Begun{}, err
	}
	about, err := s.userInfo(ctx, at, got.Access, claims)
	if err != nil {
		return people.Begun{}, err
	}
	arrival, err := p.arrival(claims, about)
	if err != nil {
		return people.Begun{}, err
	}
	person, err := s.options.People.SignIn(ctx, arrival)
	return people.Begun{
		Person: person.ID, Org: p.first(person), Provider: p.Name, Remote: claims.Text("sid"), Tokens: people.Tokens{ID: got.ID},
	}, err
}

// printable shortens what another server sent, for messages.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, text)
	return clean[:min(len(clean), 80)]
}
