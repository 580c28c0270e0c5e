package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Device starts a login that a person confirms on another device, with the code and
// address of Begun. The returned function polls until the person has confirmed it, and
// stores the tokens.
func (l *Logins) Device(ctx context.Context, s Server) (begun Begun, wait func(context.Context) error, err error) {
	f, err := l.fetcher(s)
	if err != nil {
		return begun, nil, err
	}
	p, err := l.prepare(ctx, f, s, "")
	if err != nil {
		return begun, nil, err
	}
	if p.At.Device == "" {
		return begun, nil, fault.New(fault.Upstream, "%s does not support device logins", p.At.Issuer).
			WithHint("log in with a browser: omit --device")
	}
	got, err := l.deviceCode(ctx, f, p)
	if err != nil {
		return begun, nil, err
	}
	page := cmp.Or(got.Whole, got.Page)
	if _, err := f.parse(page); err != nil {
		return begun, nil, err
	}
	life := time.Duration(min(max(got.Seconds, 1), 3600) * float64(time.Second))
	begun = Begun{
		Upstream: s.Name, URL: page, Code: printable(got.Code), Issuer: p.At.Issuer, Scopes: p.Scopes,
		Expires: l.options.Clock.Now().Add(life),
	}
	every := 5 * time.Second
	if got.Interval > 0 {
		every = time.Duration(min(got.Interval, 60) * float64(time.Second))
	}
	return begun, func(ctx context.Context) error { return l.poll(ctx, f, p, got.Device, every, begun.Expires) }, nil
}

// deviceCode is the response to the start of a device login.
type deviceCode struct {
	Device   string  `json:"device_code"`
	Code     string  `json:"user_code"`
	Page     string  `json:"verification_uri"`
	Whole    string  `json:"verification_uri_complete"`
	Seconds  float64 `json:"expires_in"`
	Interval float64 `json:"interval"`
}

func (l *Logins) deviceCode(ctx context.Context, f *fetcher, p flow) (got deviceCode, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.At.Device, nil)
	if err != nil {
		return got, err
	}
	form := p.form(url.Values{})
	if len(p.Scopes) > 0 {
		form.Set("scope", strings.Join(p.Scopes, " "))
	}
	if err := l.addClientAuth(request, p.Server, p.At, p.Client, form); err != nil {
		return got, err
	}
	status, answer, err := f.post(request, form)
	if err != nil {
		return got, err
	}
	if status != http.StatusOK {
		return got, refusal(request.URL.Host, status, answer)
	}
	if json.Unmarshal(answer, &got) != nil || got.Device == "" || got.Code == "" {
		return got, fault.New(fault.Upstream, "the response of %s has no code", p.At.Issuer)
	}
	return got, nil
}

// poll requests the tokens until the person has confirmed or refused the login.
func (l *Logins) poll(ctx context.Context, f *fetcher, p flow, device string, every time.Duration, until time.Time) error {
	for {
		if err := l.options.Clock.Sleep(ctx, every); err != nil {
			return err
		}
		if l.options.Clock.Now().After(until) {
			return fault.New(fault.Timeout, "log in to %s: the login was not confirmed in time", p.Server.Name).WithHint("start the login again")
		}
		got, err := l.grant(ctx, f, p.Server, p.At, p.Client, p.form(url.Values{"grant_type": {grantDevice}, "device_code": {device}}))
		var no *refused
		switch {
		case err == nil:
			if got.Scopes == nil {
				got.Scopes = p.Scopes
			}
			return l.saveTokens(ctx, p, got)
		case errors.As(err, &no) && no.code == "authorization_pending":
		case errors.As(err, &no) && no.code == "slow_down":
			every += 5 * time.Second
		case fault.CodeOf(err) == fault.Unavailable: // the server may be reachable again before the code expires
		default:
			return fault.Wrap(fault.Denied, err, "log in to %s", p.Server.Name)
		}
	}
}
