package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/core/principal"
)

// SignIns are the servers at which the user of this machine is signed in. Their tokens are
// in a file that only the user may read.
type SignIns struct {
	Path  string      // empty: there are none
	Clock clock.Clock // nil: the machine's
}

// signedIn is the login at one server.
type signedIn struct {
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token"`
	Expires time.Time `json:"expires"`
	Token   string    `json:"token_endpoint"`
	Revoke  string    `json:"revocation_endpoint"`
}

// Device is what a person has to do to sign in.
type Device struct {
	Code     string  `json:"user_code"`
	URL      string  `json:"verification_uri_complete"`
	Secret   string  `json:"device_code"`
	Seconds  float64 `json:"expires_in"`
	Interval float64 `json:"interval"`
}

// endpoints is the metadata of a server's authorization server.
type endpoints struct {
	Issuer string `json:"issuer"`
	Token  string `json:"token_endpoint"`
	Revoke string `json:"revocation_endpoint"`
	Device string `json:"device_authorization_endpoint"`
}

// refreshEarly is how long before its end a token is renewed.
const refreshEarly = time.Minute

func (s SignIns) clock() clock.Clock {
	if s.Clock == nil {
		return clock.Real()
	}
	return s.Clock
}

// SignIn signs in at the server at address with a device code. It passes to show what the
// person has to do, and waits until it is done. If org is not empty, the login must be for
// that organisation.
func (s SignIns) SignIn(ctx context.Context, address, org string, access Access, show func(Device)) error {
	api, err := serverapi.Connect(address, access)
	if err != nil {
		return err
	}
	var at endpoints
	if err := api.SendInto(ctx, http.MethodGet, authserver.MetadataPath, nil, &at); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "sign in at %s", api.Base).WithHint("the server has to be configured for people: docs/people.md")
	}
	if at.Issuer != api.Base { // tokens belong to the address that issued them (RFC 8414)
		return fault.New(fault.Denied, "the server at %s calls itself %s", api.Base, at.Issuer).WithHint("luanette login %s", at.Issuer)
	}
	var scopes []string
	for _, scope := range principal.Scopes {
		scopes = append(scopes, string(scope))
	}
	var device Device
	if code, err := sendForm(ctx, api, at.Device, url.Values{"client_id": {authserver.CommandLine}, "scope": {strings.Join(scopes, " ")}}, &device); err != nil || code != "" {
		return errors.Join(err, refusedForm(api.Base, code))
	}
	if org != "" {
		device.URL += "&org=" + url.QueryEscape(org) // the page proposes it
	}
	show(device)
	got, err := s.await(ctx, api, at, device)
	if err == nil && org != "" {
		err = checkOrg(ctx, api, got, org)
	}
	if err != nil {
		return err
	}
	return s.change(ctx, func(all map[string]signedIn) error {
		all[api.Base] = got
		return nil
	})
}

// checkOrg refuses a login that the person allowed for another organisation, and revokes it.
func checkOrg(ctx context.Context, a serverapi.API, got signedIn, org string) error {
	a.Key = secret.New(got.Access)
	var me struct{ Org string }
	err := a.SendInto(ctx, http.MethodGet, "/api/v1/me", nil, &me)
	if err == nil && me.Org == org {
		return nil
	}
	var nothing json.RawMessage
	_, revoking := sendForm(ctx, a, got.Revoke, url.Values{"token": {got.Refresh}, "client_id": {authserver.CommandLine}}, &nothing)
	if err == nil {
		err = fault.New(fault.Denied, "the login was allowed for the organisation %q, not for %q", me.Org, org).
			WithHint("choose it on the page; you are not in an organisation that it does not show")
	}
	return errors.Join(err, revoking)
}

// await asks until the person has decided.
func (s SignIns) await(ctx context.Context, api serverapi.API, at endpoints, device Device) (got signedIn, err error) {
	pause := time.Duration(max(device.Interval, 1) * float64(time.Second))
	until := s.clock().Now().Add(time.Duration(device.Seconds * float64(time.Second)))
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device.Secret}, "client_id": {authserver.CommandLine}}
	for {
		if err := s.clock().Sleep(ctx, pause); err != nil {
			return got, err
		}
		got, code, err := s.tokens(ctx, api, at, form)
		switch {
		case code == "slow_down":
			pause += 5 * time.Second
		case code == "authorization_pending" || fault.CodeOf(err) == fault.Unavailable: // it may be reachable again
		case code == "access_denied":
			return got, fault.New(fault.Denied, "the login at %s was denied", api.Base)
		case err != nil || code != "":
			return got, errors.Join(err, refusedForm(api.Base, code))
		default:
			return got, nil
		}
		if s.clock().Now().After(until) {
			return got, errNoConsent
		}
	}
}

// tokens requests tokens. It returns the server's error code if it refuses.
func (s SignIns) tokens(ctx context.Context, api serverapi.API, at endpoints, form url.Values) (got signedIn, code string, err error) {
	var answer struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Seconds float64 `json:"expires_in"`
	}
	code, err = sendForm(ctx, api, at.Token, form, &answer)
	expires := s.clock().Now().Add(time.Duration(answer.Seconds * float64(time.Second)))
	return signedIn{answer.Access, answer.Refresh, expires, at.Token, at.Revoke}, code, err
}

// form sends a form to an endpoint of the server. It returns the server's error code if it
// refuses.
func sendForm(ctx context.Context, a serverapi.API, endpoint string, form url.Values, into any) (code string, err error) {
	if !strings.HasPrefix(endpoint, a.Base+"/") {
		return "", fault.New(fault.Denied, "the server at %s names an endpoint of another server", a.Base)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := a.HTTP.Do(request)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, errors.Unwrap(err), "connect to %s", a.Base).WithHint(serverapi.StartHint)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "read the response of %s", a.Base)
	}
	var refusal struct {
		Error string `json:"error"`
	}
	if response.StatusCode != http.StatusOK && json.Unmarshal(raw, &refusal) == nil && refusal.Error != "" {
		return refusal.Error, nil
	}
	if response.StatusCode != http.StatusOK {
		return "", fault.New(fault.Unavailable, "the server responded with status %d", response.StatusCode)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read the response of %s", a.Base)
	}
	return "", nil
}

func refusedForm(base, code string) error {
	if code == "" {
		return nil
	}
	return fault.New(fault.NeedsAuth, "the server at %s refuses: %s", base, code).WithHint("luanette login %s", base)
}

// Token returns the token for the server at address, renewed if it is about to end; zero
// if the user is not signed in there. It is for this address only.
func (s SignIns) Token(ctx context.Context, address string, access Access) (secret.Text, error) {
	api, err := serverapi.Connect(address, access)
	if err != nil {
		return secret.Text{}, nil //nolint:nilerr // not an HTTP server; whoever connects says so
	}
	all, err := s.read()
	have, ok := all[api.Base]
	if err != nil || !ok {
		return secret.Text{}, err
	}
	if s.clock().Now().Before(have.Expires.Add(-refreshEarly)) {
		return secret.New(have.Access), nil
	}
	err = s.change(ctx, func(all map[string]signedIn) error {
		have, err = s.renew(ctx, api, all[api.Base])
		if err == nil {
			all[api.Base] = have
		}
		return err
	})
	return secret.New(have.Access), err
}

// renew renews a login, unless another process has just done it.
func (s SignIns) renew(ctx context.Context, api serverapi.API, have signedIn) (signedIn, error) {
	if s.clock().Now().Before(have.Expires.Add(-refreshEarly)) {
		return have, nil
	}
	at := endpoints{Token: have.Token, Revoke: have.Revoke}
	got, code, err := s.tokens(ctx, api, at, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {have.Refresh}, "client_id": {authserver.CommandLine}})
	if err != nil || code != "" {
		return signedIn{}, errors.Join(err, refusedForm(api.Base, code))
	}
	if got.Refresh == "" { // an earlier answer was lost
		got.Refresh = have.Refresh
	}
	return got, nil
}

// SignOut ends the login at the server at address, and reports whether there was one. A
// server that cannot be reached does not keep the tokens here.
func (s SignIns) SignOut(ctx context.Context, address string, access Access) (was bool, err error) {
	api, err := serverapi.Connect(address, access)
	if err != nil {
		return false, err
	}
	var have signedIn
	err = s.change(ctx, func(all map[string]signedIn) error {
		have, was = all[api.Base]
		delete(all, api.Base)
		return nil
	})
	if err != nil || !was {
		return was, err
	}
	_, err = sendForm(ctx, api, have.Revoke, url.Values{"token": {have.Refresh}, "client_id": {authserver.CommandLine}}, &struct{}{})
	return was, err
}

func (s SignIns) read() (map[string]signedIn, error) {
	all := map[string]signedIn{}
	if s.Path == "" {
		return all, nil
	}
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read %s", s.Path).WithHint("remove the file, and sign in again with `luanette login`")
	}
	return all, nil
}

// change reads, changes and writes the file while no other process does.
func (s SignIns) change(ctx context.Context, edit func(map[string]signedIn) error) error {
	if s.Path == "" {
		return fault.New(fault.Config, "store the login: there is no folder for it").WithHint("set HOME")
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "store the login")
	}
	lock, err := filelock.Wait(ctx, s.Path+".lock")
	if err != nil {
		return fault.Wrap(fault.Config, err, "store the login")
	}
	defer func() { _ = lock.Unlock() }() // nothing is lost with it
	all, err := s.read()
	if err != nil {
		return err
	}
	if err := edit(all); err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	fresh := s.Path + ".new"
	_ = os.Remove(fresh) // of a process that was killed, perhaps with other rights
	if err = os.WriteFile(fresh, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(fresh, s.Path)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "store the login")
	}
	return nil
}
