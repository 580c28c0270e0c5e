package client

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/ui/login"
)

const ownLoginsPath = "/api/v1/me/logins"

// How long, and how often, to look whether a person has logged in.
const (
	ownLoginWait  = 15 * time.Minute
	ownLoginEvery = time.Second
)

// own returns the caller's own login to an upstream; known is false if the upstream is not
// used with the account of each person, or the caller is none.
func (l *remoteLogins) own(ctx context.Context, name string) (own login.OwnLogin, known bool, err error) {
	var answer struct {
		Logins []login.OwnLogin `json:"logins"`
	}
	err = l.api.sendInto(ctx, http.MethodGet, ownLoginsPath, nil, &answer)
	if fault.CodeOf(err) == fault.Denied { // a key of a machine
		return own, false, nil
	}
	i := slices.IndexFunc(answer.Logins, func(l login.OwnLogin) bool { return l.Upstream == name })
	if err != nil || i < 0 {
		return own, false, err
	}
	return answer.Logins[i], true, nil
}

// loginOwn waits until the person has logged in on the server's page. The page goes on
// without this process, and the server may be restarted meanwhile.
func (l *remoteLogins) loginOwn(ctx context.Context, own login.OwnLogin, show func(oauth.Begun)) error {
	if own.State == oauth.StateActive {
		return nil
	}
	begun := oauth.Begun{Upstream: own.Upstream, URL: own.Link, Expires: time.Now().Add(ownLoginWait)}
	show(begun)
	for time.Now().Before(begun.Expires) {
		if err := clock.Real().Sleep(ctx, ownLoginEvery); err != nil {
			return err
		}
		now, known, err := l.own(ctx, own.Upstream)
		switch {
		case fault.CodeOf(err) == fault.Unavailable && ctx.Err() == nil: // it may be reachable again
		case err != nil:
			return err
		case !known:
			return fault.New(fault.NotFound, "upstream %s is not used with accounts of people any more", own.Upstream)
		case now.State == oauth.StateActive:
			return nil
		}
	}
	return errNoConsent
}

// notOwn explains an error of the login that all callers share to somebody who may have
// meant one of their own.
func notOwn(name string, err error) error {
	if fault.CodeOf(err) != fault.Denied {
		return err
	}
	return fault.Wrap(fault.Denied, err, "upstream %s has one login for all callers", name).
		WithHint("an administrator logs in there. If it is used with the account of each person, sign in with luanette login")
}
