package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
)

// upstreamOrgFlag names the organisation whose own upstreams a command is about.
type upstreamOrgFlag struct {
	Org string `placeholder:"ORG" help:"The organisation that has it for itself; with --server."`
}

// checkServer refuses an organisation without a running server.
func (f *upstreamOrgFlag) checkServer(c *clientFlags) error {
	if f.Org == "" || c.Server != "" {
		return nil
	}
	return fault.New(fault.InvalidParams, "--org is for a running server").
		WithHint("name it with --server; in luanette.toml they are [orgs.%s.upstreams.NAME]", f.Org)
}

// find sets the organisation to that of the caller, unless one was given.
func (f *upstreamOrgFlag) find(ctx context.Context, api client.Client) error {
	if f.Org != "" {
		return nil
	}
	var me httpauth.Me
	if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/me", nil, &me); err != nil {
		return err
	}
	f.Org = me.Org
	return nil
}

// path is where the API has these upstreams.
func (f *upstreamOrgFlag) path() string {
	if f.Org == "" {
		return "/api/v1/upstreams"
	}
	return "/api/v1/orgs/" + url.PathEscape(f.Org) + "/upstreams"
}
